"""``$arg1`` at a static probe: what the program hands over there, by the notes of ``<sys/sdt.h>``.

The assembler writes where each value is, with its size and sign; of types there is nothing more.
A cast gives a pointer what it leads to: ``(struct request *)$arg1``.
"""

from __future__ import annotations

from fetchc.check.typed import Held
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, AtAddress, Constant, InMemory, InRegister
from fetchc.program.types import FloatType, IntType
from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister
from fetchc.record import assert_never
from fetchc.syntax.usdt_parser import (
    Immediate,
    Refused,
    Spelled,
    Stored,
    Sum,
    read_argument,
    split_arguments,
)
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.program.entities import Place, StaticProbe
    from fetchc.source import Span
    from fetchc.syntax.usdt_parser import Operand, StaticArgument
    from fetchc.target.machines import Architecture

__all__ = ["argument", "argument_type", "arguments"]

SIZES = (1, 2, 4, 8)
FLOATS = {4: "float", 8: "double"}
OF_TABLE = "@GOTOFF"
WIDEST_OFFSET = 1 << 31  # what the kernel keeps of an offset


def argument(checker: Checker, number: int, span: Span) -> Held:
    """The argument ``$argN`` of the probe at the site.

    Raises CompileError: FC0401 where the probe has fewer, FC0402 in a register that is not saved,
    FC0404 to FC0406 where no fetch can follow it, FC0904 where the note makes no sense.
    """
    probe = checker.site.static
    assert probe is not None
    texts = split_arguments(probe.arguments)
    if not 0 < number <= len(texts):
        has = "no arguments" if not texts else f"`$arg1` to `$arg{len(texts)}`"
        raise reject(
            "FC0401",
            f"`{probe.whole_name}` has no `$arg{number}`",
            span,
            "no such argument",
            notes=(f"it has {has}",),
        )
    text = texts[number - 1]
    try:
        read = read_argument(text)
        if read.size not in SIZES:
            raise ValueError(f"{read.size} bytes are no size of a number")
        place = _place(checker, read, read.operand)
    except ValueError as wrong:
        raise reject(
            "FC0904",
            f"`{text}`, what the note of `{probe.whole_name}` says of `$arg{number}`, "
            "makes no sense",
            span,
            str(wrong),
            help="have a look at it: `readelf --notes FILE`",
        ) from None
    if isinstance(place, Absent):
        raise reject(
            place.code,
            f"`$arg{number}` cannot be fetched here: {place.reason}",
            span,
            f"it is `{text}`",
        )
    return Held(place, f"$arg{number}", checker.program.intern(argument_type(read)), span)


def arguments(probe: StaticProbe) -> tuple[str, ...]:
    """The types of all arguments in words, ``?`` for what makes no sense."""
    named = []
    for text in split_arguments(probe.arguments):
        try:
            named.append(argument_type(read_argument(text)).name)
        except ValueError:
            named.append("?")
    return tuple(named)


def argument_type(read: StaticArgument) -> IntType | FloatType:
    """The number that an argument is, by its size and sign, or the ``f`` of floating point."""
    if read.floating and read.size in FLOATS:
        return FloatType(FLOATS[read.size], ByteSize(read.size))
    name = f"{'' if read.signed else 'u'}int{8 * read.size}_t"
    return IntType(name, ByteSize(read.size), read.signed)


def _place(checker: Checker, read: StaticArgument, operand: Operand) -> Place:
    # Raises ValueError for what no assembler of the machine would write.
    site = checker.site
    bare = table(f"arch/{site.architecture.name}").get("operands", {}).get("bare_number")
    match operand:
        case Refused(why=why):
            return Absent("FC0406", why)
        case Immediate(value=value):
            return _constant(read, value)
        case Stored(base=base, offset=offset):
            return _memory(checker, base.removeprefix("%"), offset)
        case Spelled(marked=False, sum=value) if bare == "register":
            return _numbered(site.architecture, read, value)
        case Spelled(text="", sum=value) if not value.symbol and bare != "address":
            return _constant(read, value)
        case Spelled(text="", sum=value):
            return _variable(checker, value)
        case Spelled(text=text, marked=marked):
            if not marked and not _is_register(site.architecture, text):
                return _variable(checker, operand.sum)
            return _register(site.architecture, read, text)
        case _:
            assert_never(operand)


def _numbered(machine: Architecture, read: StaticArgument, value: Sum) -> Place:
    # `3` is a register, `i3` and `i-3` are constants; of variables there is none alone.
    if not value.symbol:
        return _register(machine, read, f"r{value.number}")
    digits = value.symbol.removeprefix("i")
    if digits == value.symbol or (digits and not digits.isdecimal()):
        raise ValueError(f"`{value.symbol}` is no number")
    return _constant(read, Sum("", int(digits or 0) + value.number))


def _constant(read: StaticArgument, value: Sum) -> Place:
    if value.symbol:
        return Absent("FC0405", f"it is the address of `{value.symbol}`, which no fetch can give")
    bits = 8 * read.size
    low = value.number & (1 << bits) - 1
    return Constant(low - (1 << bits) if read.signed and low >> bits - 1 else low)


def _is_register(machine: Architecture, name: str) -> bool:
    return name in machine.named or name in machine.aliases or name in machine.refused


def _register(machine: Architecture, read: StaticArgument, name: str) -> Place:
    known, bits = machine.aliases.get(name, (name, 8 * machine.word_bytes))
    if name in machine.refused:
        return Absent("FC0402", f"it is in `%{name}`: {machine.refused[name]}")
    number = _number(machine, known)
    if read.size == 2 * machine.word_bytes == bits // 4:
        return Absent(
            "FC0404", f"`{name}` has one half of it, and nothing tells where the other is"
        )
    if 8 * read.size > bits:
        raise ValueError(f"`{name}` has {bits} bits")
    return InRegister(number)


def _number(machine: Architecture, kernel_name: str) -> DwarfRegister:
    for number, name in machine.registers.items():
        if name == kernel_name:
            return DwarfRegister(number)
    raise ValueError(f"`{kernel_name}` is no register of {machine.name} with a value")


def _memory(checker: Checker, base: str, offset: Sum) -> Place:
    machine = checker.site.architecture
    if base.isdecimal():
        base = f"r{base}"  # 8(1) of ppc
    known, bits = machine.aliases.get(base, (base, 8 * machine.word_bytes))
    if known in ("ip", "pc"):  # x86, others
        return _variable(checker, offset)
    if offset.symbol.endswith(OF_TABLE):  # i386: the register has the table's address
        return _variable(checker, Sum(offset.symbol.removesuffix(OF_TABLE), offset.number))
    if offset.symbol:
        why = f"its address is that of `{offset.symbol}` plus a register"
        return Absent("FC0406", f"{why}, and a fetch adds constants only")
    if base in machine.refused:
        return Absent("FC0402", f"its address is in `%{base}`: {machine.refused[base]}")
    number = _number(machine, known)
    if bits != 8 * machine.word_bytes:
        raise ValueError(f"`{base}` is no whole register")
    if not -WIDEST_OFFSET <= offset.number < WIDEST_OFFSET:
        raise ValueError(f"{offset.number} does not fit an offset")
    return InMemory(number, ByteOffset(offset.number))


def _variable(checker: Checker, value: Sum) -> Place:
    """``limit+8``: memory at a symbol."""
    if not value.symbol:
        return Absent("FC0406", "it is at a fixed address, which nothing holds against the file's")
    name, linked, how = value.symbol.partition("@")
    if linked:
        return Absent("FC0406", f"`{how}` of `{name}` is in a table of the linker's")
    found = checker.program.symbol_addresses(name)
    if not found:
        why = f"it is in the variable `{value.symbol}`, of which the file has no symbol"
        return Absent("FC0406", why)
    if len(found) > 1:
        why = f"it is in a variable `{value.symbol}`, and the file has {len(found)} of that name"
        return Absent("FC0406", why)
    return AtAddress(Address(found[0] + value.number))
