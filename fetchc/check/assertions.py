"""``e.(T)``: the value in an interface, as the type that it is said to have.

An interface is two words: its dynamic type, and the value or the address of a copy of it. Which of
the two, the run-time's description of the type says. Nothing at the probe compares types: so the
word with the dynamic type is fetched beside the value, and the reader compares.
"""

from __future__ import annotations

from fetchc.check import members, scope
from fetchc.check.typed import Asserted, Dispatched, Follow, Held, Part, Typed
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.entities import AtAddress
from fetchc.program.types import InterfaceType, PointerType, StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import RuntimeType
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["assertion", "dynamic_type", "first_type", "held_as", "member_of_value"]

# Of the run-time's structure that the first word of an interface with methods leads to.
# Source: Go 1.15 to 1.27, runtime/runtime2.go (itab), internal/abi/iface.go (ITab).
_DESCRIPTOR = ("_type", "Type")
_TABLE = "runtime.firstmoduledata"
# What describes a plugin or a shared library of Go, and a program that is linked to one: the other
# name is there the first file's. Source: Go, cmd/link/internal/ld/lib.go (moduledata).
_OF_A_PLUGIN = "local.moduledata"


def assertion(checker: Checker, base: Typed, wanted: TypeId, span: Span) -> Typed:
    """The value of ``base.(wanted)``; what has to hold for it goes to the checker's assertions.

    Raises CompileError FC0313 where ``base`` cannot hold a value of the type.
    """
    made = checker.resolved(base.type)
    if not isinstance(made, InterfaceType):
        raise _refused(checker, f"`{checker.spell(base.type)}` is not an interface", base, span)
    name = checker.spell(wanted)
    if isinstance(checker.resolved(wanted), InterfaceType):
        raise _refused(
            checker,
            f"`{name}` is an interface, and no value has it as its dynamic type",
            base,
            span,
            "name the type itself that you expect: `.(*T)`",
        )
    descriptor = _descriptor(checker, wanted, name)
    if descriptor is None:
        raise _refused(
            checker, f"no value of `{name}` is in any interface of this program", base, span
        )
    checker.assertions.append(_asserted(checker, base, made, descriptor, span))
    return _value(base, made, wanted, descriptor, checker, span)


def _asserted(
    checker: Checker, base: Typed, made: InterfaceType, wanted: RuntimeType, span: Span
) -> Asserted:
    word = dynamic_type(checker, base, made, span)
    start = first_type(checker, span)
    if word is None or start is None:
        raise _refused(checker, "the debug information does not describe interfaces", base, span)
    return Asserted(word, start, wanted, made.empty, span)


def member_of_value(
    checker: Checker, base: Typed, made: InterfaceType, name: str, name_span: Span
) -> Typed | None:
    """The field ``name`` of what the interface ``base`` holds: ``e.f`` as ``e.(T).f`` would be.

    T is each type that has such a field and whose values the program makes this interface of.
    None where there is none. Raises CompileError FC0313 where there are too many.
    """
    cases: list[tuple[Asserted, Typed]] = []
    named: list[str] = []
    for wanted in _made_of(checker, made):
        target = members.promoted_from(checker, wanted)
        if members.find(checker, target, name, name_span) is None:
            continue
        spelled = checker.spell(wanted)
        descriptor = _descriptor(checker, wanted, spelled)
        if descriptor is not None:
            named.append(spelled)
            value = _value(base, made, wanted, descriptor, checker, base.span)
            asserted = _asserted(checker, base, made, descriptor, base.span)
            cases.append((asserted, members.member(checker, value, name, name_span)))
    if len(cases) > _MOST_CASES:
        known = ", ".join([f"`{one}`" for one in named[:_MOST_CASES]])
        what = f"{len(cases)} types that a `{checker.spell(base.type)}` can hold have `{name}`"
        raise _refused(
            checker,
            f"{what}: {known}, …",
            base,
            name_span,
            f"name the one you expect: `.(T).{name}`",
        )
    if not cases:
        return None
    (asserted, value), *others = cases
    if others:
        return Dispatched(tuple(cases), value.type, base.span.to(name_span))
    checker.assertions.append(asserted)
    return value


def _made_of(checker: Checker, made: InterfaceType) -> tuple[TypeId, ...]:
    # By the linker's tables of methods, one for each type that is converted to the interface.
    found: dict[TypeId, None] = {}
    for interface, name in checker.program.interface_tables():
        if interface == made.name:
            known = checker.program.types_named(name.removeprefix("*"), checker.site.function)
            for one in known:
                found[checker.pointer_to(one) if name.startswith("*") else one] = None
    return tuple(found)


_MOST_CASES = 8


def held_as(
    checker: Checker, base: Typed, made: InterfaceType, name: str
) -> tuple[RuntimeType, Typed] | None:
    """The descriptor of the type ``name`` (``*net.OpError``), and the interface's value as one.

    None where the program has no such type, or none of its values is in an interface. Whether
    ``base`` holds one, nothing says.
    """
    pointed = name.startswith("*")
    for wanted in checker.program.types_named(name.removeprefix("*"), checker.site.function):
        held = checker.pointer_to(wanted) if pointed else wanted
        descriptor = _descriptor(checker, held, name)
        if descriptor is not None:
            return descriptor, _value(base, made, held, descriptor, checker, base.span)
    return None


def dynamic_type(checker: Checker, node: Typed, made: InterfaceType, span: Span) -> Typed | None:
    """The word with the address of the dynamic type's descriptor, 0 of a nil interface.

    None where the debug information does not say how to reach it.
    """
    first = members.part(node, made.members[0], span)
    if made.empty:
        return first
    table = checker.resolved(first.type)
    if not isinstance(table, PointerType):
        return None
    inside = checker.resolved(table.target)
    if not isinstance(inside, StructType):
        return None
    word = next((one for one in inside.members if one.name in _DESCRIPTOR), None)
    return None if word is None else members.part(Follow(first, table.target, span), word, span)


def first_type(checker: Checker, span: Span) -> Typed | None:
    """The address from which the run-time counts its types, wherever the program is loaded.

    It is a variable of the program (runtime.firstmoduledata.types), so that a reader need
    not know where that is. None where the debug information does not have it.
    """
    variable = scope.find_global(checker, _TABLE, None, span)
    if variable is None:
        return None
    own = checker.program.symbol_addresses(_OF_A_PLUGIN)
    if own:
        held: Typed = Held(AtAddress(own[0]), _TABLE, variable.type, span)
    else:
        held = scope.held(checker, variable, span)
    path = members.find(checker, held.type, "types", span)
    return None if path is None else members.through(checker, held, path, span)


def _descriptor(checker: Checker, wanted: TypeId, name: str) -> RuntimeType | None:
    known = checker.program.runtime_types()
    if known is None:
        return None
    # `*T` and `[4]T` are made of their parts: the program's own types stand under their names.
    named = checker.program.types_named(name, checker.site.function) if wanted < 0 else (wanted,)
    return next((found for found in map(known.of, named) if found is not None), None)


def _value(
    base: Typed,
    made: InterfaceType,
    wanted: TypeId,
    descriptor: RuntimeType,
    checker: Checker,
    span: Span,
) -> Typed:
    data = made.members[1]
    if descriptor.direct:
        return Part(base, data.offset, None, wanted, span)
    return Follow(Part(base, data.offset, None, checker.pointer_to(wanted), span), wanted, span)


def _refused(
    checker: Checker, message: str, base: Typed, span: Span, help: str | None = None
) -> CompileError:
    label = Label(base.span, f"this is `{checker.spell(base.type)}`")
    return reject("FC0313", message, span, "type assertion", secondary=(label,), help=help)
