"""Plans of values that a program which decodes them prints in a form of their language.

Times, IP addresses and UUIDs of Go are composed of their parts; ``targets/runtime`` lists the full
names of the types, and their members are checked too. A function value of Go is its code. A
variable in no place may still be a register and a constant.
"""

from __future__ import annotations

from fetchc.check import scope
from fetchc.check.conversions import type_named
from fetchc.check.members import find, follow_path, subobject
from fetchc.check.typed_tree import Address, Convert, Located, Pointee, Subobject
from fetchc.ir.fetch import Decode
from fetchc.lower.fetches import Plain, bit_field_of, plain, unwidened
from fetchc.program.entities import (
    AtAddress,
    Indirect,
    InMemory,
    InRegister,
    PointerTo,
)
from fetchc.program.entities import Constant as ConstantPlace
from fetchc.program.types import (
    ArrayType,
    BoolType,
    FunctionType,
    InterfaceType,
    IntType,
    PointerType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.record import Record
from fetchc.syntax.tree import NamedType
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.entities import Place
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span


__all__ = [
    "ClosurePlan",
    "FormPlan",
    "PartPlan",
    "SumPlan",
    "code_of_closure",
    "is_closure",
    "length_of_time",
    "named_scalar",
    "passed_object",
    "printed",
    "printed_scalar",
    "variable_sum",
]


class ClosurePlan(Record):
    """A function value of Go: the object that it points to begins with the address of ``code``."""

    code: Typed


class SumPlan(Record):
    """``word`` plus a constant, or the constant; ``scalar`` describes the number.

    ``from_file``: the constant is an address as the file states it.
    """

    word: Typed | None
    addend: int
    scalar: Plain
    from_file: bool = False


class PartPlan(Record):
    """A part of a printed value: at most ``most`` bytes of ``node`` (0: a number).

    It is there if the word ``reference`` is not 0.
    """

    name: str
    node: Typed
    most: int = 0
    reference: Typed | None = None


class FormPlan(Record):
    """A value in a form of its own, composed of its parts; ``beside`` are values from elsewhere."""

    form: str
    parts: tuple[PartPlan, ...]
    beside: tuple[PartPlan, ...] = ()


def printed(
    checker: Checker, node: Typed, resolved: Type, scalar: Plain | None
) -> PrintedPlan | None:
    """The plan of a value that is printed in a form of its own; None of all others.

    ``resolved`` is its type, ``scalar`` describes it where it is a number.
    """
    if (form := _form(checker, resolved)) and (found := _formed(checker, form, node, resolved)):
        return found
    code = code_of_closure(checker, node)
    return None if code is None else ClosurePlan(code)


def is_closure(checker: Checker, resolved: Type) -> bool:
    """Whether a value of the type points to a closure: code and captures."""
    if not checker.site.language.closures or not isinstance(resolved, PointerType):
        return False
    return isinstance(checker.resolved(resolved.target), FunctionType)


def _code(checker: Checker, node: Typed) -> Typed:
    return Pointee(Convert(node, checker.pointer_to(node.type), node.span), node.type, node.span)


def printed_scalar(checker: Checker, type_id: TypeId, found: Plain | None) -> Plain | None:
    """How a scalar of a type is printed: as a duration, or as a constant's name (Go).

    ``found`` is how it is fetched.
    """
    if found is None or found.decode.kind != "integer":
        return found
    resolved = checker.resolved(type_id)
    if found.size == 8 and found.decode.signed and _form(checker, resolved) == "duration":
        return Plain(found.store, Decode("duration", 64, True), 8)
    return _with_names(checker, type_id, resolved, found)


def _with_names(checker: Checker, type_id: TypeId, resolved: Type, found: Plain) -> Plain:
    # Of a number of Go whose type has constants, their names.
    go = checker.program.go
    if go is None or not isinstance(resolved, IntType) or "." not in resolved.name:
        return found
    names = go.named_constants(checker.bare(type_id))
    if not names:
        return found
    bits, signed = found.decode.bits, found.decode.signed
    return Plain(found.store, Decode("enum", bits, signed, None, names), found.size)


def named_scalar(checker: Checker, node: Typed, found: Plain) -> Plain:
    """``found``, how the scalar ``node`` of Go is fetched, with the names that its values have."""
    resolved = checker.resolved(node.type)
    if found.decode.kind != "integer" or _form(checker, resolved) == "duration":
        return found
    return _with_names(checker, node.type, resolved, found)


def code_of_closure(checker: Checker, node: Typed) -> Typed | None:
    """The address of the code of ``node``, a function value of Go; None of other values."""
    if not is_closure(checker, checker.resolved(node.type)) or bit_field_of(node) is not None:
        return None
    return _code(checker, node)


def length_of_time(
    checker: Checker, node: Typed, resolved: StructType
) -> tuple[Typed, Plain] | None:
    """The number of a ``std::chrono`` object, and how it is printed: with its unit."""
    if "::chrono::" not in resolved.name:
        return None
    from fetchc.check.cpp_reader_values import ticks

    counted = ticks(checker, node)
    scalar = None if counted is None else plain(checker, counted[0].type)
    if counted is None or scalar is None:
        return None
    kind = "duration" if scalar.decode.kind == "integer" else scalar.decode.kind
    decode = scalar.decode.replaced(kind=kind, unit=counted[1])
    return counted[0], scalar.replaced(decode=decode)


# ------------------------------------------------------------------------------
# Variables in no place: DW_OP_bregN and DW_OP_stack_value.


def variable_sum(checker: Checker, node: Typed, variable: Located, scalar: Plain) -> SumPlan | None:
    """The number ``node``, a cast of ``variable``, of a constant or of a word and a constant.

    ``scalar`` describes it. None where the variable is in another kind of place.
    """
    scalar = unwidened(checker, node, scalar)  # of a cast to a wider type the number itself
    match variable.place:
        case ConstantPlace(value=value, size=room):
            fits = room is None or room >= scalar.size
            return SumPlan(None, value, scalar) if fits else None
        case PointerTo(target=AtAddress(address=address), offset=offset):
            return SumPlan(None, address + offset, scalar, from_file=True)
        case PointerTo(target=InMemory(register=register, offset=base), offset=offset):
            place: Place = InRegister(register)
        case PointerTo(target=Indirect(pointer=place, offset=base), offset=offset):
            pass
        case _:
            return None
    word = Located(place, variable.name, checker.word(), variable.span)
    return SumPlan(word, base + offset, scalar)


def passed_object(checker: Checker, variable: Located) -> Typed:
    """The variable; of an implicit pointer the address of what it points to."""
    place = variable.place
    if not isinstance(place, PointerTo):
        return variable
    resolved = checker.resolved(variable.type)
    if not isinstance(resolved, PointerType):
        return variable
    target: Typed = Located(place.target, variable.name, resolved.target, variable.span)
    if place.offset:
        target = Subobject(target, place.offset, None, resolved.target, variable.span)
    return Address(target, variable.type, variable.span)


# ------------------------------------------------------------------------------
# Times, IP addresses, UUIDs.

_ADDRESS = 16  # bytes of the longest
_ZONE = 32  # bytes of an address' zone, the name of an interface of the machine
_WORDS = (Decode("integer", 64), Decode("pointer", 64))


def _form(checker: Checker, resolved: Type) -> str:
    # What the language's own table calls the form of a type; empty where it has none.
    listed = checker.site.language.written
    name = (
        resolved.name if isinstance(resolved, StructType | ArrayType | SliceType | IntType) else ""
    )
    return table(listed)["types"].get(name, "") if listed and "." in name else ""


def _formed(checker: Checker, form: str, node: Typed, resolved: Type) -> FormPlan | None:
    match form, resolved:
        case "time", StructType():
            return _time(checker, node, resolved)
        case "ip", SliceType(element=element) if _is_byte(checker, element):
            return FormPlan(form, (PartPlan("bytes", node, most=_ADDRESS),))
        case "uuid", ArrayType(element=element, count=16) if _is_byte(checker, element):
            return FormPlan(form, (PartPlan("bytes", node),))
        case "addr", StructType():
            return _internet_address(checker, node)
        case _:
            return None


def _is_byte(checker: Checker, element: TypeId) -> bool:
    found = plain(checker, element)
    return found is not None and found.size == 1 and found.decode == Decode("integer", 8)


def _time(checker: Checker, node: Typed, resolved: StructType) -> FormPlan | None:
    wanted = {"wall": Decode("integer", 64), "ext": Decode("integer", 64, True)}
    found = []
    for member in resolved.members:
        simple = plain(checker, member.type)
        if simple is not None and wanted.get(member.name) == simple.decode:
            found.append(PartPlan(member.name, subobject(node, member, node.span)))
    return FormPlan("time", tuple(found)) if len(found) == len(wanted) else None


def _internet_address(checker: Checker, node: Typed) -> FormPlan | None:
    # From Go 1.23 on `z` is a handle of the address's details; before, it is one of
    # two variables' values, or a pointer to the name of the zone.
    words = [_inside(checker, node, "addr", "hi"), _inside(checker, node, "addr", "lo")]
    kind = _inside(checker, node, "z")
    if kind is not None and isinstance(checker.resolved(kind.type), PointerType):
        own = [_variable(checker, name, node.span) for name in ("net/netip.z4", "net/netip.z6noz")]
        names = ("hi", "lo", "z", "z4", "z6noz")
        parts = _of_words(checker, names, [*words, kind, *own])
        if parts is None:
            return None
        return FormPlan("addr", (*parts[:3], *_interned_zone(checker, kind)), parts[3:])
    handle = None if kind is None else _inside(checker, kind, "value")
    kind_of_handle = None if handle is None else checker.resolved(handle.type)
    parts = _of_words(checker, ("hi", "lo"), words)
    if handle is None or parts is None or not isinstance(kind_of_handle, PointerType):
        return None
    detail = Pointee(handle, kind_of_handle.target, node.span)
    six, zone = _inside(checker, detail, "isV6"), _inside(checker, detail, "zoneV6")
    if six is None or not isinstance(checker.resolved(six.type), BoolType):
        return None
    if zone is None or not isinstance(checker.resolved(zone.type), StringType):
        return None
    zoned = PartPlan("zone", zone, _ZONE, handle)
    return FormPlan("addr", (*parts, PartPlan("six", six, reference=handle), zoned))


def _interned_zone(checker: Checker, pointer: Typed) -> tuple[PartPlan, ...]:
    # The zone, in an interface that ``pointer`` leads to; nothing where there is none.
    # Source: internal/intern/intern.go (Go 1.18 to 1.22).
    resolved = checker.resolved(pointer.type)
    assert isinstance(resolved, PointerType)
    held = _inside(checker, Pointee(pointer, resolved.target, pointer.span), "cmpVal")
    interface = None if held is None else checker.resolved(held.type)
    if held is None or not isinstance(interface, InterfaceType):
        return ()
    data = subobject(held, interface.members[1], held.span)
    text = type_named(checker, NamedType(None, "string", (), "", held.span))
    address = Convert(data, checker.pointer_to(text), held.span)
    return (PartPlan("zone", Pointee(address, text, held.span), _ZONE, data),)


def _of_words(
    checker: Checker, names: tuple[str, ...], words: list[Typed | None]
) -> tuple[PartPlan, ...] | None:
    # None where one is no number of 64 bits.
    found = []
    for name, word in zip(names, words, strict=True):
        simple = None if word is None else plain(checker, word.type)
        if word is None or simple is None or simple.decode not in _WORDS:
            return None
        found.append(PartPlan(name, word))
    return tuple(found)


def _inside(checker: Checker, node: Typed, *names: str) -> Typed | None:
    # The member of that name, in the member of the name before.
    for name in names:
        if not isinstance(checker.resolved(node.type), StructType):
            return None
        path = find(checker, node.type, name, node.span)
        if path is None:
            return None
        node = follow_path(checker, node, path, node.span)
    return node


def _variable(checker: Checker, name: str, span: Span) -> Typed | None:
    variable = scope.find_global(checker, name, None, span)
    return None if variable is None else scope.variable_object(checker, variable, span)


if TYPE_CHECKING:
    PrintedPlan = SumPlan | ClosurePlan | FormPlan
