"""``e.(T)``: the value in an interface, as the type that it is said to have.

An interface is two words: its dynamic type, and the value or the address of a copy of it. Which of
the two, the run-time's description of the type says. Nothing at the probe compares types: so the
word with the dynamic type is fetched beside the value, and the reader compares.
"""

from __future__ import annotations

from fetchc.abi import argument_place, convention_for
from fetchc.check import members, scope
from fetchc.check.typed_tree import (
    AssumedDynamicType,
    Convert,
    Dispatched,
    Located,
    Pointee,
    Special,
    Subobject,
    Typed,
)
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.entities import AtAddress, InMemory, Piece, Pieces
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    FloatType,
    InterfaceType,
    IntType,
    Member,
    PointerType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.checker import Checker
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import RuntimeType
    from fetchc.program.types import ChannelType
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.target.machines import Convention

__all__ = [
    "assertion",
    "bytes_of_string",
    "channel_structure",
    "dynamic_type",
    "from_argument_word",
    "held_values",
    "is_convertible",
    "member_of_value",
    "refuse_runes",
    "types_start",
    "value_as_type",
]

# Of the run-time's structure that the first word of an interface with methods leads to.
# Source: Go 1.15 to 1.27, runtime/runtime2.go (itab), internal/abi/iface.go (ITab).
_DESCRIPTOR = ("_type", "Type")
_TABLE = "runtime.firstmoduledata"
# What describes a plugin or a shared library of Go, and a program that is linked to one: the other
# name is there the first file's. Source: Go, cmd/link/internal/ld/lib.go (moduledata).
_OF_A_PLUGIN = "local.moduledata"


def assertion(checker: Checker, base: Typed, wanted: TypeId, span: Span) -> Typed:
    """The value of ``base.(wanted)``; the checker notes what it assumes.

    Raises CompileError FC0313 where ``base`` cannot hold a value of the type.
    """
    resolved = checker.resolved(base.type)
    assert isinstance(resolved, InterfaceType)
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
    checker.assumptions.append(_asserted(checker, base, resolved, descriptor, span))
    return _value(base, resolved, wanted, descriptor, checker, span)


def _asserted(
    checker: Checker, base: Typed, resolved: InterfaceType, wanted: RuntimeType, span: Span
) -> AssumedDynamicType:
    word = dynamic_type(checker, base, resolved, span)
    start = types_start(checker, span)
    if word is None or start is None:
        raise _refused(checker, "the debug information does not describe interfaces", base, span)
    return AssumedDynamicType(word, start, wanted, resolved.empty, span)


def member_of_value(
    checker: Checker, base: Typed, resolved: InterfaceType, name: str, name_span: Span
) -> Typed | None:
    """The field ``name`` of what the interface ``base`` holds: ``e.f`` as ``e.(T).f`` would be.

    T is each type that has such a field and whose values the program makes this interface of.
    None where there is none. Raises CompileError FC0313 where there are too many.
    """
    cases: list[tuple[AssumedDynamicType, Typed]] = []
    named: list[str] = []
    for descriptor, value in held_values(checker, base, resolved):
        target = checker.promoted_from(value.type)
        if members.find(checker, target, name, name_span) is not None:
            named.append(checker.spell(value.type))
            asserted = _asserted(checker, base, resolved, descriptor, base.span)
            cases.append((asserted, members.named_member(checker, value, name, name_span)))
    if len(cases) > _MOST_CASES:
        listed = ", ".join([f"`{one}`" for one in named[:_MOST_CASES]])
        what = f"{len(cases)} types that a `{checker.spell(base.type)}` can hold have `{name}`"
        raise _refused(
            checker,
            f"{what}: {listed}, …",
            base,
            name_span,
            f"name the one you expect: `.(T).{name}`",
        )
    if not cases:
        return None
    (asserted, value), *others = cases
    if others:
        return Dispatched(tuple(cases), value.type, base.span.to(name_span))
    checker.assumptions.append(asserted)
    return value


def held_values(
    checker: Checker, base: Typed, resolved: InterfaceType
) -> Iterator[tuple[RuntimeType, Typed]]:
    """The value in the interface ``base`` as each type that the program converts to it.

    Each has the type's descriptor; which of them ``base`` holds is not known.
    """
    for wanted in _converted_types(checker, resolved):
        descriptor = _descriptor(checker, wanted, checker.spell(wanted))
        if descriptor is not None:
            yield descriptor, _value(base, resolved, wanted, descriptor, checker, base.span)


def _converted_types(checker: Checker, resolved: InterfaceType) -> tuple[TypeId, ...]:
    # By the linker's tables of methods, one for each type that is converted to the interface.
    found: dict[TypeId, None] = {}
    for interface, name in checker.program.go.interface_tables() if checker.program.go else ():
        if interface == resolved.name:
            types = checker.program.types_named(name.removeprefix("*"), checker.site.function)
            for one in types:
                found[checker.pointer_to(one) if name.startswith("*") else one] = None
    return tuple(found)


_MOST_CASES = 8


def value_as_type(
    checker: Checker, base: Typed, resolved: InterfaceType, name: str
) -> tuple[RuntimeType, Typed] | None:
    """The descriptor of the type ``name`` (``*net.OpError``), and the interface's value as one.

    None where the program has no such type, or none of its values is in an interface. Whether
    ``base`` holds one is not known.
    """
    pointed = name.startswith("*")
    for wanted in checker.program.types_named(name.removeprefix("*"), checker.site.function):
        dynamic = checker.pointer_to(wanted) if pointed else wanted
        descriptor = _descriptor(checker, dynamic, name)
        if descriptor is not None:
            return descriptor, _value(base, resolved, dynamic, descriptor, checker, base.span)
    return None


def dynamic_type(
    checker: Checker, node: Typed, resolved: InterfaceType, span: Span
) -> Typed | None:
    """The word with the address of the dynamic type's descriptor, 0 of a nil interface.

    None where the debug information does not say how to reach it.
    """
    first = members.subobject(node, resolved.members[0], span)
    if resolved.empty:
        return first
    table = checker.resolved(first.type)
    if not isinstance(table, PointerType):
        return None
    inside = checker.resolved(table.target)
    if not isinstance(inside, StructType):
        return None
    word = next((one for one in inside.members if one.name in _DESCRIPTOR), None)
    return (
        None if word is None else members.subobject(Pointee(first, table.target, span), word, span)
    )


def types_start(checker: Checker, span: Span) -> Typed | None:
    """The address from which the run-time counts its types, wherever the program is loaded.

    It is a variable of the program (runtime.firstmoduledata.types), so that a reader need
    not know where that is. None where the debug information does not have it.
    """
    variable = scope.find_global(checker, _TABLE, None, span)
    if variable is None:
        return None
    own = checker.program.elf.symbol_addresses(_OF_A_PLUGIN)
    if own:
        table: Typed = Located(AtAddress(own[0]), _TABLE, variable.type, span)
    else:
        table = scope.variable_object(checker, variable, span)
    path = members.find(checker, table.type, "types", span)
    return None if path is None else members.follow_path(checker, table, path, span)


def _descriptor(checker: Checker, wanted: TypeId, name: str) -> RuntimeType | None:
    runtime_types = None if checker.program.go is None else checker.program.go.runtime_types()
    if runtime_types is None:
        return None
    # `*T` and `[4]T` are built from their parts: the program's own types have these names.
    named = checker.program.types_named(name, checker.site.function) if wanted < 0 else (wanted,)
    return next((found for found in map(runtime_types.of, named) if found is not None), None)


def _value(
    base: Typed,
    resolved: InterfaceType,
    wanted: TypeId,
    descriptor: RuntimeType,
    checker: Checker,
    span: Span,
) -> Typed:
    data = resolved.members[1]
    if descriptor.direct:
        return Subobject(base, data.offset, None, wanted, span)
    return Pointee(
        Subobject(base, data.offset, None, checker.pointer_to(wanted), span), wanted, span
    )


def _refused(
    checker: Checker, message: str, base: Typed, span: Span, help: str | None = None
) -> CompileError:
    label = Label(base.span, f"this is `{checker.spell(base.type)}`")
    return reject("FC0313", message, span, "type assertion", secondary=(label,), help=help)


# ------------------------------------------------------------------------------
# What is inside a channel: ``ch.qcount``, ``ch.buf[0]``.
#
# A channel is a pointer to the run-time's structure. ``buf`` leads to room for ``dataqsiz``
# elements, which values take in turn: the next one is received from ``buf[recvx]``. Source: Go
# 1.15 to 1.27, src/runtime/chan.go (hchan).

_BUFFER, _ROOM = "buf", "dataqsiz"


def channel_structure(checker: Checker, channel: Typed, resolved: ChannelType) -> Typed:
    """The structure behind ``channel``, with its buffer as a slice of elements."""
    inside = checker.resolved(resolved.header)
    if not isinstance(inside, StructType):
        return Pointee(channel, resolved.header, channel.span)
    by_name = {member.name: member for member in inside.members}
    if not {_BUFFER, _ROOM} <= by_name.keys():
        return Pointee(channel, resolved.header, channel.span)
    start = by_name[_BUFFER].offset
    first = Member("array", checker.pointer_to(resolved.element), ByteOffset(0))
    count = Member("len", by_name[_ROOM].type, ByteOffset(by_name[_ROOM].offset - start))
    word = ByteSize(checker.program.word_bytes)
    elements = checker.program.intern(SliceType("", word, resolved.element, (first, count)))
    buffer = Member(_BUFFER, elements, start)
    members = tuple([buffer if one.name == _BUFFER else one for one in inside.members])
    whole = StructType(inside.name, inside.kind, inside.size, members)
    return Pointee(channel, checker.program.intern(whole), channel.span)


# ------------------------------------------------------------------------------
# Conversions of Go that leave the bytes as they are: ``Celsius(t)``, ``B(a)``, ``string(bytes)``.
#
# A value converts to any type of the same underlying type, tags of fields aside. A string has the
# first two words of the slice of bytes that it comes from. The bytes of a string are a slice
# without a capacity: that of the copy that Go makes is not in the string. Source: Go
# specification, "Conversions", "Type identity".


def is_convertible(checker: Checker, wanted: TypeId, given: TypeId) -> bool:
    """Whether a value of the type ``given`` is one of ``wanted``, byte for byte."""
    target, source = checker.resolved(wanted), checker.resolved(given)
    match target, source:
        case StringType(), SliceType(element=element):
            byte = checker.resolved(element)
            return isinstance(byte, IntType) and byte.size == 1 and not byte.signed
        case StringType(), StringType():
            return True
        case (FloatType(size=one), FloatType(size=other)) | (
            ComplexType(size=one),
            ComplexType(size=other),
        ):
            return one == other
        case SliceType(element=inner), SliceType(element=element):
            return _identical(checker, inner, element)
        case ArrayType(element=inner, count=first), ArrayType(element=element, count=second):
            return first == second and _identical(checker, inner, element)
        case InterfaceType(empty=True), InterfaceType(empty=True):
            return True
        case StructType(members=parts, size=one), StructType(members=others, size=other):
            return (
                one == other
                and len(parts) == len(others)
                and all(
                    (part.name, part.offset, part.embedded)
                    == (same.name, same.offset, same.embedded)
                    and _identical(checker, part.type, same.type)
                    for part, same in zip(parts, others, strict=True)
                )
            )
        case _:
            return False


def bytes_of_string(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> Typed | None:
    """``[]byte(text)``; None of other conversions."""
    row, source = checker.resolved(wanted), checker.resolved(base.type)
    if not isinstance(row, SliceType) or not isinstance(source, StringType):
        return None
    element = checker.resolved(row.element)
    if not isinstance(element, IntType) or element.size != 1 or element.signed:
        return None
    size = ByteSize(2 * checker.program.word_bytes)
    slice_type = SliceType(row.name, size, row.element, source.members[:2])
    return Convert(base, checker.program.intern(slice_type), span)


def refuse_runes(checker: Checker, wanted: tree.SliceOf, base: Typed, span: Span) -> None:
    """Raise CompileError FC0308 for ``[]rune(text)``, a type that the file may not even have."""
    element = wanted.element
    if not isinstance(element, tree.NamedType) or element.name not in ("rune", "int32"):
        return
    if isinstance(checker.resolved(base.type), StringType):
        raise reject(
            "FC0308",
            "Go decodes the text for that, and a fetch-arg cannot run code",
            span,
            "decoded at run time",
            help="fetch the string itself, or its bytes: `[]byte(s)`",
        )


def _identical(checker: Checker, one: TypeId, other: TypeId) -> bool:
    # Types without a name of their own have the same parts, wherever they are described.
    if checker.bare(one) == checker.bare(other):
        return True
    name = checker.spell(one)
    return name == checker.spell(other) and "{...}" not in name


# ------------------------------------------------------------------------------
# ``(string)($arg2)``, ``(error)(%bx)``: what takes several words of Go's convention.
#
# Without debug information, parameters and results of a function are not known. A person who knows
# the source names the type; the convention says where its words are. Source: Go,
# src/cmd/compile/abi-internal.md.

_ARGUMENT = "$arg"


def from_argument_word(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> Typed | None:
    """The string, slice or interface whose first word is ``base``; None if that is no such word.

    Raises CompileError FC0404 where its words would be in registers and in memory: Go passes each
    of these whole.
    """
    site = checker.site
    resolved = checker.resolved(wanted)
    if not isinstance(resolved, StringType | SliceType | InterfaceType) or site.function is None:
        return None
    if site.static or not (site.entry or site.leaving):
        return None

    convention = convention_for(site.program, site.function, span)
    first = _number(checker, base, convention)
    if first is None:
        return None
    word = checker.program.word_bytes
    count = resolved.size // word
    places = [argument_place(convention, first + index) for index in range(count)]
    taken = sum(not isinstance(place, InMemory) for place in places)
    if taken == 0:
        return Located(places[0], checker.spell(wanted), wanted, span)
    if taken < count:
        raise reject(
            "FC0404",
            f"`{checker.spell(wanted)}` takes {count} words, {taken} of them would be in registers",
            span,
            "in two places",
            notes=("Go passes it in registers or on the stack, never in both",),
            help=f"its first word there is `$arg{first + taken}`" if site.entry else None,
        )
    pieces = [
        Piece(ByteOffset(index * word), ByteSize(word), place) for index, place in enumerate(places)
    ]
    return Located(Pieces(tuple(pieces)), checker.spell(wanted), wanted, span)


def _number(checker: Checker, base: Typed, convention: Convention) -> int | None:
    # Of the word, counted from 1: `$arg2`, or `%bx`, which at a return holds the second result.
    if isinstance(base, Located) and base.name.startswith(_ARGUMENT):
        return int(base.name.removeprefix(_ARGUMENT))
    if not isinstance(base, Special) or base.kind != "register":
        return None
    registers = checker.site.architecture.registers
    names = [registers[register] for register in convention.integer_registers]
    return names.index(base.text) + 1 if base.text in names else None
