"""``%ax``, ``$arg1``, ``$stack3``, ``$retval``, ``$ret1``: what has a name of its own."""

from __future__ import annotations

from fetchc.check.probe_site import has_own_returns
from fetchc.check.typed_tree import Located, Pointee, Special
from fetchc.check.variable_places import kernel_argument
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, AtAddress, Constant, InMemory, InRegister, Named
from fetchc.program.types import CharType, FloatType, IntType, UnknownType
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
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Place, StaticProbe
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.syntax.usdt_parser import Operand, StaticArgument
    from fetchc.target.machines import Architecture

__all__ = [
    "argument",
    "argument_by_number",
    "argument_type",
    "arguments",
    "current_task",
    "register",
    "special",
]

_OF_TASK = ("pid", "tid")
_OF_READER = (*_OF_TASK, "cpu", "time", "function", "latency")
_NOTES = (
    "each event has the thread's number as `common_pid`",
    "an event of `--format bpf-c` has `pid`, `tid`, `time` and `comm`",
)
_SEVERAL = {
    "args": "all parameters at once",
    "locals": "all variables at once",
    "results": "all results at once",
}


def register(checker: Checker, name: str, span: Span) -> Typed:
    """A register by the kernel's name, as a machine word."""
    machine = checker.site.architecture
    if name in machine.named:
        return Special("register", name, checker.word(), span)
    if name in machine.refused:
        raise reject(
            "FC0402",
            f"`%{name}` cannot be fetched: {machine.refused[name]}",
            span,
            "a probe cannot read it",
        )
    help = None
    if name in machine.aliases:
        kernel, bits = machine.aliases[name]
        low = "" if bits == 8 * machine.word_bytes else f":u{bits}"
        help = f"the kernel calls it `%{kernel}{low}`"
    else:
        from fetchc.check.suggestions import nearest

        close = nearest(name, sorted(machine.named))
        help = f"write `%{close[0]}`" if close else None
    raise reject(
        "FC0205",
        f"the kernel has no register `%{name}` on {machine.name}",
        span,
        "unknown register",
        notes=(f"it knows {', '.join('%' + each for each in sorted(machine.named))}",),
        help=help,
    )


def special(checker: Checker, name: str, span: Span) -> Typed:
    """What ``$name`` means at the site."""
    if name == "stack":
        return Special("stack", "", checker.word(), span)
    if name == "comm":
        if checker.site.probe_kind == "eprobe":  # `$comm` is a field's there, if it has one
            return Special("text", "$COMM", _text(checker), span)
        return Special("comm", "", _text(checker), span)
    if name == "current":
        return current_task(checker, span)
    stem, number = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    name = "retval" if name == "ret" else name
    if name == "retval" or (stem == "ret" and number):
        if checker.site.leaving and has_own_returns(checker.site):
            from fetchc.check.go_results import result_by_number

            return result_by_number(checker, name, int(number) if number else None, span)
        return _result(checker, name, span)
    if stem == "stack" and number:
        return Special("entry", number, checker.word(), span)
    if stem == "arg" and number:
        return _argument(checker, int(number), span)
    if name == "goid":
        from fetchc.check.goroutine import goroutine_number

        return goroutine_number(checker, span)
    if name in _OF_READER:
        raise reject(
            "FC0103",
            f"only a reader of events knows `${name}`: no fetch-arg gives it, no operator takes it",
            span,
            "known to the reader",
            notes=_NOTES[: 2 * (name in _OF_TASK)],
            help="`fetchc trace --latency` shows it; filters and tables take `$latency`"
            if name == "latency"
            else f"`fetchc trace '${name}'` shows it by itself, and `--filter` compares it",
        )
    if name in _SEVERAL:
        raise reject(
            "FC0103",
            f"`${name}`, {_SEVERAL[name]}, is not one value",
            span,
            "several values",
            help=f"write `${name}` alone; `fetchc variables FUNCTION` lists them",
        )
    task = "`$current`, " if checker.program.in_kernel else ""
    machine = checker.site.architecture
    if name in machine.named or name in machine.aliases:
        kernel, bits = machine.aliases.get(name, (name, 8 * machine.word_bytes))
        low = "" if bits == 8 * machine.word_bytes else f":u{bits}"
        raise reject(
            "FC0201", f"there is no `${name}`", span, "a register", help=f"write `%{kernel}{low}`"
        )
    raise reject(
        "FC0201",
        f"there is no `${name}`",
        span,
        "unknown name",
        help=f"there are `$arg1`, `$arg2`, …, {task}`$retval`, `$stack`, `$stack0`, … and `$comm`",
    )


def _text(checker: Checker) -> TypeId:
    character = checker.program.intern(CharType("char", ByteSize(1), True))
    return checker.pointer_to(character)


def _argument(checker: Checker, number: int, span: Span) -> Typed:
    site = checker.site
    if site.static is not None:
        return argument(checker, number, span)
    from fetchc.abi import argument_place, convention_for

    if number == 0:
        raise reject(
            "FC0201",
            "arguments are counted from `$arg1`",
            span,
            "no such argument",
            help="write `$arg1` for the first",
        )
    if site.by_name:
        return argument_by_number(checker, number, span)
    if site.function is None or not site.entry:
        raise reject(
            "FC0401",
            f"`$arg{number}` is valid only at the function's entry",
            span,
            "not at this address",
            help="probe the entry: leave `--at` out",
        )
    convention = convention_for(site.program, site.function, span)
    if site.function.foreign:
        from fetchc.check.abi_evidence import refuse_other_convention

        raise refuse_other_convention(site.function.name, span)
    if site.language.stack_check:
        from fetchc.check.go_parameters import require_certain_convention

        require_certain_convention(site, site.function, span)
    place = argument_place(convention, number)
    if site.language.stack_check and isinstance(place, InRegister):
        from fetchc.check.go_parameters import loses_registers_in_growth, stack_growth_warning

        if loses_registers_in_growth(site, site.function):
            name = f"$arg{number}"
            checker.warnings.append(stack_growth_warning(site, site.function, name, span))
    return Located(place, f"$arg{number}", checker.word(), span)


def _result(checker: Checker, name: str, span: Span) -> Typed:
    site = checker.site
    if not (site.returns or site.leaving):
        raise reject(
            "FC0410",
            f"`${name}` exists when the function returns, this probe is at its entry",
            span,
            "not yet computed",
            help="probe the return: `--return`",
            reason="at return",
        )
    word = checker.word()
    if site.function is None or site.function.die is None:
        return Special("result", "", word, span)
    result = site.program.result(site.function)
    if result is None:
        raise _no_result(site.function.name, span)
    if name not in ("retval", "ret0"):
        raise reject(
            "FC0401",
            f"`{site.function.name}` returns one value, there is no `${name}`",
            span,
            "no such result",
            help="it is `$retval`",
        )
    if isinstance(checker.resolved(result), UnknownType) and checker.size(result) is None:
        return Special("result", "", word, span)  # assembly: only the register is known
    if not site.language.promises_convention:
        from fetchc.check.abi_evidence import require_unchanged_signature
        from fetchc.check.unspecified_abi import result_value

        require_unchanged_signature(site.function, span)
        return result_value(checker, name, result, span)
    from fetchc.abi import convention_for, result_place
    from fetchc.check.abi_evidence import require_returned

    convention = convention_for(site.program, site.function)
    place = result_place(site.program, convention, result)
    require_returned(site, site.function, place, convention.result_integer_registers, span)
    size = checker.size(result)
    alone = size is not None and size <= 8
    if alone and place == InRegister(convention.result_integer_registers[0]):
        return Special("result", "", result, span)
    if isinstance(place, InMemory):
        pointer = Special("result", "", checker.pointer_to(result), span)
        return Pointee(pointer, result, span)
    return Located(place, f"${name}", result, span)


def _no_result(function: str, span: Span) -> CompileError:
    return reject("FC0401", f"`{function}` returns nothing", span, "no result")


# ------------------------------------------------------------------------------
# ``$arg1`` at a static probe: what the program hands over there, by the notes of ``<sys/sdt.h>``.
#
# The assembler writes where each value is, with its size and sign; of types there is nothing
# more. A cast gives a pointer what it leads to: ``(struct request *)$arg1``.

SIZES = (1, 2, 4, 8)
FLOATS = {4: "float", 8: "double"}
OF_TABLE = "@GOTOFF"
WIDEST_OFFSET = 1 << 31  # what the kernel keeps of an offset


def argument(checker: Checker, number: int, span: Span) -> Located:
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
            raise ValueError(f"{read.size} bytes are not the size of a number")
        place = _place(checker, read, read.operand)
    except ValueError as wrong:
        raise reject(
            "FC0904",
            f"`{text}`, what the note of `{probe.whole_name}` says of `$arg{number}`, "
            "makes no sense",
            span,
            str(wrong),
            help="look at it: `readelf --notes FILE`",
        ) from None
    if isinstance(place, Absent):
        raise reject(
            place.code,
            f"`$arg{number}` cannot be fetched here: {place.reason}",
            span,
            f"it is `{text}`",
            reason=place.kind,
        )
    return Located(place, f"$arg{number}", checker.program.intern(argument_type(read)), span)


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
            return Absent("computed", why)
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
        raise ValueError(f"`{value.symbol}` is not a number")
    return _constant(read, Sum("", int(digits or 0) + value.number))


def _constant(read: StaticArgument, value: Sum) -> Place:
    if value.symbol:
        return Absent(
            "no address", f"it is the address of `{value.symbol}`, which a fetch-arg cannot return"
        )
    bits = 8 * read.size
    low = value.number & (1 << bits) - 1
    return Constant(low - (1 << bits) if read.signed and low >> bits - 1 else low)


def _is_register(machine: Architecture, name: str) -> bool:
    return name in machine.named or name in machine.aliases or name in machine.refused


def _register(machine: Architecture, read: StaticArgument, name: str) -> Place:
    kernel_name, bits = machine.aliases.get(name, (name, 8 * machine.word_bytes))
    if name in machine.refused:
        return Absent("vector register", f"it is in `%{name}`: {machine.refused[name]}")
    number = _number(machine, kernel_name)
    if read.size == 2 * machine.word_bytes == bits // 4:
        return Absent(
            "in pieces",
            f"`{name}` has one half of it, and the note does not say where the other is",
        )
    if 8 * read.size > bits:
        raise ValueError(f"`{name}` has {bits} bits")
    return InRegister(number)


def _number(machine: Architecture, kernel_name: str) -> DwarfRegister:
    for number, name in machine.registers.items():
        if name == kernel_name:
            return DwarfRegister(number)
    raise ValueError(f"`{kernel_name}` is not a register of {machine.name} with a value")


def _memory(checker: Checker, base: str, offset: Sum) -> Place:
    machine = checker.site.architecture
    if base.isdecimal():
        base = f"r{base}"  # 8(1) of ppc
    kernel_name, bits = machine.aliases.get(base, (base, 8 * machine.word_bytes))
    if kernel_name in ("ip", "pc"):  # x86, others
        return _variable(checker, offset)
    if offset.symbol.endswith(OF_TABLE):  # i386: the register has the table's address
        return _variable(checker, Sum(offset.symbol.removesuffix(OF_TABLE), offset.number))
    if offset.symbol:
        why = f"its address is that of `{offset.symbol}` plus a register"
        return Absent("computed", f"{why}, and a fetch adds constants only")
    if base in machine.refused:
        return Absent("vector register", f"its address is in `%{base}`: {machine.refused[base]}")
    number = _number(machine, kernel_name)
    if bits != 8 * machine.word_bytes:
        raise ValueError(f"`{base}` is not a whole register")
    if not -WIDEST_OFFSET <= offset.number < WIDEST_OFFSET:
        raise ValueError(f"{offset.number} does not fit an offset")
    return InMemory(number, ByteOffset(offset.number))


def _variable(checker: Checker, value: Sum) -> Place:
    """``limit+8``: memory at a symbol."""
    if not value.symbol:
        return Absent(
            "computed",
            "it is at an absolute address, which does not depend on where the file is loaded",
        )
    name, linked, how = value.symbol.partition("@")
    if linked:
        return Absent("computed", f"`{how}` of `{name}` is in a table of the linker's")
    found = checker.program.elf.symbol_addresses(name)
    if not found:
        why = f"it is in the variable `{value.symbol}`, and the file has no symbol of that name"
        return Absent("computed", why)
    if len(found) > 1:
        why = f"it is in a variable `{value.symbol}`, and the file has {len(found)} of that name"
        return Absent("computed", why)
    return AtAddress(Address(found[0] + value.number))


# ------------------------------------------------------------------------------
# Parameters where the kernel names them itself: ``$arg2`` of a function or a tracepoint.
#
# At a function's return its registers have other values, and probes by fprobe or tracepoint save
# none that a definition can name. The kernel counts arguments by the registers of its calling
# convention, and remembers them for the return. Source: parse_probe_vars,
# kernel/trace/trace_probe.c; regs_get_kernel_argument, asm/ptrace.h.

_TASK = "struct task_struct"


def argument_by_number(checker: Checker, number: int, span: Span) -> Typed:
    """``$argN``, a word. Raises CompileError FC0401 where the kernel has none of that number."""
    from fetchc.abi import convention_for

    site = checker.site
    assert site.function is not None
    if site.probe_kind == "eprobe":
        fields = ", ".join(f"`{one.name}`" for one in site.program.parameters(site.function))
        raise reject(
            "FC0401",
            f"an event has fields, and no `$arg{number}`",
            span,
            "no such argument",
            notes=(f"its fields are {fields}",),
        )
    place = kernel_argument(
        site, number, len(convention_for(site.program, site.function).integer_registers)
    )
    if isinstance(place, Absent):
        what = f"`$arg{number}` cannot be fetched here: {place.reason}"
        raise reject(place.code, what, span, "no such argument", reason=place.kind)
    return Located(place, f"$arg{number}", checker.word(), span)


def current_task(checker: Checker, span: Span) -> Typed:
    """``$current``, the task that runs: a pointer to its structure, or a word without a type.

    Raises CompileError FC0201 in a program. Whether a kernel has it is for its rules to say.
    """
    program = checker.site.program
    if not program.in_kernel:
        raise reject(
            "FC0201",
            "there is no `$current` in a program",
            span,
            "for kernel probes",
            help="the name of the task is `$comm`",
        )
    found = program.types_named(_TASK, None)
    type_id = checker.pointer_to(found[0]) if found else checker.word()
    return Located(Named("current", "$current"), "$current", type_id, span)
