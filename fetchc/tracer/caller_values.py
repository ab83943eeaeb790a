"""The shape of an argument's value: by the call site, where the caller alone has the value.

The caller of a function, found by the return address, has the value that an entry value
(DW_OP_entry_value) means. For each call site (``Program.callers``) the variable has another
location, so the expression is fetched for each of them; call sites with the same location share
what is fetched.
"""

from __future__ import annotations

from fetchc.check.go_parameters import lost_register_marker
from fetchc.check.typed_tree import (
    AssumedClass,
    AssumedCount,
    AssumedDynamicType,
    AssumedVariant,
    Convert,
    Located,
)
from fetchc.debuginfo.dwarf.enclosing_frames import entered_with
from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch import Decode, Fetch, Register, Word
from fetchc.lower.fetches import is_string_pointer, plain
from fetchc.lower.no_fetch import lost, register_of
from fetchc.lower.printed_values import passed_object, variable_sum
from fetchc.lower.value_plan import is_array
from fetchc.program.entities import AtAddress, Pieces, PointerTo, is_on_entry
from fetchc.record import assert_never
from fetchc.tracer.shaper import Shaper
from fetchc.tracer.value_shapes import (
    CallerShape,
    GrowthCheckShape,
    Leaf,
    StructShape,
    SumShape,
    WalkShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Assumption, Typed
    from fetchc.lower.extents import Limits
    from fetchc.program.entities import Callers
    from fetchc.syntax.tree import Format
    from fetchc.tracer.event_fields import Fields
    from fetchc.tracer.value_shapes import Shape

__all__ = ["argument_shape"]

_MOST_PLACES = 24  # of one variable, each fetched for itself


def argument_shape(
    checker: Checker, fields: Fields, node: Typed, format: Format | None, limits: Limits
) -> Shape:
    """The shape of what an argument asks for; raises CompileError where it cannot be fetched."""
    shaper = Shaper(checker, fields)
    if is_array(checker, node):
        limits = limits.of_array()
    if checker.walk is not None:
        return _elements(checker, fields, node, format, limits)
    variable = _variable_on_entry(node)
    if variable is not None:
        with fields.assuming():
            shape: Shape = _by_caller(shaper, node, variable, format, limits)
    else:
        assertions = reversed(checker.assumptions)
        shape = shaper.within(shaper.shape(node, format, limits), limits, assertions)
    return _checked_for_growth(checker, fields, shape)


def _elements(
    checker: Checker, fields: Fields, node: Typed, format: Format | None, limits: Limits
) -> Shape:
    # Of a container that is walked: the shape of each, of fields of its own.
    from fetchc.lower.walks import walk

    assert checker.walk is not None
    of_each = fields.of_elements(walk(checker, checker.walk))
    shaper = Shaper(checker, of_each)
    if checker.walk.wanted is None:
        limits = limits.inner().replaced(copied=of_each.copies)
    given: dict[bool, list[Assumption]] = {True: [], False: []}
    for one in reversed(checker.assumptions):
        given[_of_element(one)].append(one)
    inner = shaper.within(shaper.shape(node, format, limits), limits, given[True])
    single = checker.walk.wanted is not None
    if checker.walk.key is not None and not single:
        key = shaper.shape(checker.walk.key, None, limits)
        inner = StructShape((("key", key), ("value", inner)))
    found = of_each.walk_of_these()
    shape = WalkShape(fields.walk(found), inner, found.count is not None, single)
    return Shaper(checker, fields).within(shape, limits, given[False])


def _of_element(one: Assumption) -> bool:
    match one:
        case AssumedCount(holder=node) | AssumedVariant(tag=node):
            pass
        case AssumedClass(reference=node) | AssumedDynamicType(word=node):
            pass
        case _:
            assert_never(one)
    return not isinstance(_start(node), Located)


def _start(node: Typed) -> Typed:
    # What the node is a part of, or is found from.
    while hasattr(node, "base"):
        node = node.base
    return node


def _variable_on_entry(node: Typed) -> Located | None:
    # The variable that is an entry value; None where it has a location.
    node = _start(node)
    if not isinstance(node, Located):
        return None
    in_one = not isinstance(node.place, Pieces)
    return node if in_one and is_on_entry(node.place) else None


def _by_caller(
    shaper: Shaper, node: Typed, variable: Located, format: Format | None, limits: Limits
) -> CallerShape:
    # FC0406 where no call site describes the value.
    site = shaper.checker.site
    assert site.function is not None
    callers = site.program.evidence.callers(site.function, site.address)
    found = None if callers.reason else _called(shaper, node, variable, callers, format, limits)
    if found is None:
        reason = callers.reason or "no call site in the file describes what it passes"
        raise lost(site, register_of(variable.place), variable.span, variable.name, reason)
    return found


def _called(
    shaper: Shaper,
    node: Typed,
    variable: Located,
    callers: Callers,
    format: Format | None,
    limits: Limits,
) -> CallerShape | None:
    # None where no call site describes the value.
    checker, fields = shaper.checker, shaper.fields
    stem, fields.stem = fields.stem, None
    mark = fields.mark()
    returned = shaper.word(Located(callers.return_address, "", checker.word(), variable.span))
    fields.stem = stem
    shapes: dict[object, Shape | None] = {}
    cases: list[tuple[int, Shape]] = []
    for call in callers.calls:
        place = entered_with(variable.place, dict(call.values))
        if place is None:
            continue
        outer = call.outer if is_on_entry(place) else None
        moved = place.target if isinstance(place, PointerTo) else None
        key = (place, outer, call.returns_to if isinstance(moved, AtAddress) else 0)
        if key not in shapes:
            if len(shapes) == _MOST_PLACES:
                continue
            one = Located(place, variable.name, variable.type, variable.span)
            if not is_on_entry(place):
                start = returned, -call.returns_to
                shapes[key] = _passed(shaper, node, one, start, format, limits)
            elif outer is None or outer.reason:
                shapes[key] = None
            else:
                shapes[key] = _called(shaper, _with(node, one), one, outer, format, limits)
        shape = shapes[key]
        if shape is not None:
            cases.append((call.returns_to - checker.site.address, shape))
    if not cases:
        fields.forget(mark)
        return None
    return CallerShape(returned, tuple(cases))


def _with(node: Typed, inner: Typed) -> Typed:
    # ``node`` with ``inner`` in place of its variable.
    if isinstance(node, Located):
        return inner
    fields = {name: getattr(node, name) for name in type(node).__match_args__}
    moved: Typed = type(node)(**{**fields, "base": _with(fields["base"], inner)})
    return moved


def _passed(
    shaper: Shaper,
    node: Typed,
    variable: Located,
    start: tuple[Leaf, int],
    format: Format | None,
    limits: Limits,
) -> Shape | None:
    # What is fetched where the variable is in that place; None where it cannot be.
    checker, fields = shaper.checker, shaper.fields
    mark = fields.mark()
    stem = fields.stem
    try:
        if format is None and (number := _number(shaper, node, variable, start)) is not None:
            return number
        return shaper.shape(_with(node, passed_object(checker, variable)), format, limits)
    except CompileError:
        fields.forget(mark)
        fields.stem = stem
        return None


def _number(
    shaper: Shaper, node: Typed, variable: Located, start: tuple[Leaf, int]
) -> SumShape | None:
    # The value of a variable without a location: a constant, an address, a register and a constant.
    checker = shaper.checker
    simple, inner = plain(checker, node.type), node
    if simple is None or is_string_pointer(checker, checker.resolved(node.type)):
        return None
    while isinstance(inner, Convert):
        inner = inner.base
    if not isinstance(inner, Located):
        return None
    found = variable_sum(checker, node, variable, simple)
    if found is None:
        return None
    if not found.from_file:
        return shaper.sum(found)
    word, distance = start
    return SumShape(word, found.addend + distance, found.scalar.size, found.scalar.decode)


# ------------------------------------------------------------------------------
# Parameters of Go that are lost when the stack grows: the reader detects these calls.


def _checked_for_growth(checker: Checker, fields: Fields, shape: Shape) -> Shape:
    # ``shape``, or a fault in calls that run again after the stack has grown.
    site = checker.site
    if site.function is None or not any(
        one.reason == "lost by stack growth" for one in checker.warnings
    ):
        return shape
    found = lost_register_marker(site, site.function)
    assert found is not None
    register, address = found
    machine = site.architecture
    field = fields.add(Fetch(Register(machine.registers[register]), Word()))
    word = Leaf(field, Decode("address", 8 * machine.word_bytes))
    return GrowthCheckShape(word, address - site.address, shape)
