"""A whole program: one probe an event, which prints the values as the kernel's text form does.

A line of output is ``COMM-THREAD EVENT: NAME=VALUE ...``; an event whose values are more than one
``printf`` can hold prints several. The BPF stack (512 bytes) holds what a ``printf`` prints and the
strings on the way there, so a line has one text at most.

Where the probe sits: bpftrace takes an address of the file, looks for the symbol around it, and
wants a disassembler for any address but a symbol's own. Debian's build (0.17) has none and
refuses. A number that lies in no symbol it takes, with ``--unsafe``, for an offset in the file
(src/attached_probe.cpp, ``resolve_offset_uprobe``): so inside of a function the offset is given,
where it cannot be mistaken for an address. A static probe in one place goes by its name where it
can be, and where a counter has to be raised, by which the program knows that somebody looks:
bpftrace does so. Of a library that a command loads (``-c``) it does not find the name.

In the kernel it has a kind of probe for each of ours but raw tracepoints, which 0.17 does not
take although it lists them (tried). A function probe is one of BPF's own there (``fentry``, which
was ``kfunc``).

What differs between its versions is in targets/backend/bpftrace.toml. A program is for a range of
versions, which it names: ``str(p, 4)`` has four characters up to 0.22, and three since then.
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import Diagnostic, reject
from fetchc.emit.bpftrace_terms import Place, TermWriter, literal, pointer
from fetchc.emit.output_formats import Written, total
from fetchc.ir.arithmetic import RULES, Calculation, Fetched, Number
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    ThreadPointer,
    Walk,
    Word,
    fixed_bytes,
    is_address,
)
from fetchc.record import Record, assert_never
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import CompileError
    from fetchc.emit.output_formats import Event, Item, KernelPoint
    from fetchc.ir.fetch import Decode, Store, Value

__all__ = ["SETTLED", "Shown", "shown", "write"]

# ------------------------------------------------------------------------------
# From a fetch to the expression of bpftrace that has the same value.
#
# Every load is a dereference of a pointer to an integer type of the load's width and sign, so that
# bpftrace reads exactly what the kernel's fetch program reads: words on the way, the type's size at
# the end. A string is read by ``str``; a counted one with its length, which no fetch-arg can do.
# A probe of the kernel reads the kernel's memory, and a program's (``+u``) through ``uptr``.
# Source: bpftrace, docs/reference_guide (casts, ``reg``, ``str``, ``uptr``, ``kaddr``); tried with
# 0.17, 0.23 and 0.27.

_WORD_BYTES = 8
_PRINTED = {"u": "%llu", "s": "%lld", "x": "0x%llx"}
_TEXT = '\\"%s\\"'
_BYTES = '\\"%r\\"'
_NAMES = {"u": "uint", "s": "int", "x": "uint"}


class Shown(Record):
    """A value to print: its expression and conversion, ``text`` where it is one.

    ``before`` are variables that the expression needs, each with its value.
    """

    expression: str
    conversion: str
    text: bool = False
    before: tuple[tuple[str, str], ...] = ()


def shown(
    item: Item, event: Event, machine: Mapping[str, Any], version: Mapping[str, Any]
) -> tuple[Shown, ...]:
    """What ``item`` prints: one value, or one for each element of an array.

    ``machine`` and ``version`` are of targets/backend/bpftrace.toml. Raises CompileError (FC0514)
    for what bpftrace cannot do.
    """
    values = _Values(item, event, machine, version)
    found = values.all()
    if item.computed is None and not values.before:
        return found
    used = f"{[one.expression for one in found]} {values.before}"
    before = [(f"$reg_{name}", f'reg("{name}")') for name in dict.fromkeys(_REGISTER.findall(used))]
    before += [(name, _REGISTER.sub(r"$reg_\1", value)) for name, value in values.before]
    found = tuple(
        [one.replaced(expression=_REGISTER.sub(r"$reg_\1", one.expression)) for one in found]
    )
    return (found[0].replaced(before=tuple(before)), *found[1:])


class _Values:
    def __init__(
        self, item: Item, event: Event, machine: Mapping[str, Any], version: Mapping[str, Any]
    ) -> None:
        self.item = item
        self.event = event
        self.machine = machine
        self.version = version
        self.before: list[tuple[str, str]] = []  # variables, each with its value
        self._elements: dict[ElementAddress, str] = {}

    def of(self, item: Item) -> _Values:
        """The values of another item, with the same variables."""
        other = _Values(item, self.event, self.machine, self.version)
        other.before, other._elements = self.before, self._elements
        return other

    def variable(self, expression: str) -> str:
        """A variable with that value; its name is one that no other value of the event has."""
        name = f"${self.item.name}_{len(self.before)}"
        self.before.append((name, expression))
        return name

    def all(self) -> tuple[Shown, ...]:
        if self.item.computed is not None:
            return (_Calculated(self, *self.item.computed).shown(),)
        value, store = self.item.fetch.value, self.item.fetch.store
        if isinstance(value, Comm):
            return (Shown("comm", _TEXT, True),)
        if self.item.counts_bytes and isinstance(store, Array | Text):
            return (self._counted(value, isinstance(store, Text) and store.user),)
        match store:
            case Text() if isinstance(value, KernelValue):
                return (self._field(value),)
            case Text(user):
                base, offset, of_user = self.address(value)
                return (self._text((base, offset, of_user or user)),)
            case Symbol() if self.event.point is not None:
                return (Shown(f"ksym({self._word(value)})", "%s"),)
            case Array(element, count):
                start = self.address(value)
                return tuple([self._element(start, element, index) for index in range(count)])
            case _:
                return (self._scalar(value, store),)

    def _element(self, start: Place, element: Scalar | Char | Bits | Text, index: int) -> Shown:
        base, offset, user = start
        if isinstance(element, Text):
            start_of_text = self._load((base, offset + _WORD_BYTES * index, user))
            return self._text((start_of_text, 0, element.user))
        place = (base, offset + fixed_bytes(element) * index, user)
        return self._number(place, element)

    def _counted(self, value: Value, of_user: bool) -> Shown:
        length = next(each for each in self.event.items if each.name == self.item.length)
        (count,) = self.of(length).all()
        base, offset, user = self.address(value)
        address = pointer((base, offset, user or of_user))
        if self.item.decode.kind == "bytes":
            # A NUL is a byte like others, and what is no character of ASCII is escaped.
            return Shown(f"buf({address}, {count.expression})", _BYTES, True)
        characters = count.expression
        if self.version["counts_nul"]:  # as wide as a sum that does not overflow
            characters = f"(uint64)({characters}) + 1"
        return Shown(f"str({address}, {characters})", _TEXT, True)

    def _text(self, place: Place) -> Shown:
        limit = self.item.decode.limit
        bound = "" if limit is None else f", {limit + self.version['counts_nul']}"
        return Shown(f"str({pointer(place)}{bound})", _TEXT, True)

    def _field(self, value: KernelValue) -> Shown:
        # Characters in the record are a string by themselves, others are after an address.
        assert self.event.point is not None
        if value.text == "$COMM":  # the task's, whether or not the event has a field `comm`
            return Shown("comm", _TEXT, True)
        held = value.text.removeprefix("$") in self.event.point.arrays
        word = self._named(value, whole=held)
        return Shown(word if held else f"str({word})", _TEXT, True)

    def _scalar(self, value: Value, store: Store) -> Shown:
        if isinstance(value, Immediate):
            return _constant(value.value, store)
        if isinstance(value, Deref):
            return self._number(self.address(value), store)
        word = self._word(value)
        match store:
            case Word():
                return Shown(word, "0x%llx")
            case Scalar(kind, bits):
                cast = word if bits == 64 and kind != "s" else f"({_NAMES[kind]}{bits}){word}"
                return Shown(cast, _PRINTED[kind])
            case Char():
                return Shown(f"(uint8){word}", "'%c'")
            case Bits():
                return self._bits(word, store)
            case Symbol() | Text() | Array():
                raise self.cannot("it names addresses of the kernel")
            case _:
                assert_never(store)

    def _number(self, place: Place, store: Store) -> Shown:
        address = pointer(place)
        match store:
            case Word():
                return Shown(f"*(uint64*)({address})", "0x%llx")
            case Scalar(kind, bits):
                return Shown(f"*({_NAMES[kind]}{bits}*)({address})", _PRINTED[kind])
            case Char():
                return Shown(f"*(uint8*)({address})", "'%c'")
            case Bits(_, _, container):
                return self._bits(f"*(uint{container}*)({address})", store)
            case Symbol() | Text() | Array():
                raise self.cannot("it names addresses of the kernel")
            case _:
                assert_never(store)

    def _bits(self, container: str, store: Bits) -> Shown:
        text = f"({container} >> {store.offset})" if store.offset else container
        if store.width < 64:
            text = f"{text} & {(1 << store.width) - 1:#x}"
        if not self.item.decode.signed:
            return Shown(text, "%llu")
        if store.width == 64:
            return Shown(f"(int64){text}", "%lld")
        sign = 1 << (store.width - 1)
        # Two's complement of `width` bits: bpftrace shifts without a sign.
        return Shown(f"(int64)(({text}) ^ {sign:#x}) - {sign:#x}", "%lld")

    def _word(self, value: Value) -> str:
        match value:
            case Register(name):
                if name not in self.machine["registers"]:
                    raise self.cannot(f"it has no register `{name}`")
                return f'reg("{name}")'
            case StackPointer():
                return f'reg("{self.machine["stack_pointer"]}")'
            case StackEntry(index):
                stack = f'reg("{self.machine["stack_pointer"]}")'
                return f"*(uint64*)({total(stack, _WORD_BYTES * index)})"
            case ReturnValue():
                return "retval"
            case Immediate(constant):
                return literal(constant)
            case Deref():
                return self._load(self.address(value))
            case KernelValue():
                return f"(uint64){self._named(value)}"
            case ThreadPointer():
                raise self.cannot("it is thread-local", "use `fetchc trace` or `--format bpf-c`")
            case ElementAddress():
                return self._element_address(value)
            case Absolute() | Image() | Comm() | Cursor() | Walk() | Contents():
                raise AssertionError(f"not a word: {value!r}")
            case _:
                assert_never(value)

    def _named(self, value: KernelValue, whole: bool = False) -> str:
        # What the kernel gives by a name: a function's argument, an event's field; an array of an
        # event only as a `whole`, which is a string.
        point = self.event.point
        assert point is not None
        if value.rule == "current":
            return "curtask"
        own = dict(point.arguments).get(value.text)
        if value.rule == "event_array" or (own in point.arrays and not whole):
            field = value.text.removeprefix("$")
            raise self.cannot(
                "it has the elements of an event's array alone",
                f"add one to the program by hand: `args{self.version['field']}{field}[0]`",
            )
        if self.event.kind == "kprobe" and value.rule == "argument":
            return f"arg{int(value.text.removeprefix('$arg')) - 1}"
        if own is None or self.event.kind == "kretprobe":
            raise self.cannot(
                f"it has no `{value.text}` here",
                "probe with `fprobe:` before the function's name, or use `--format probe`",
            )
        return f"args{self.version['field']}{own}"

    def _element_address(self, value: ElementAddress) -> str:
        found = self._elements.get(value)
        if found is None:
            writer = TermWriter(self._word, self.address, self.variable)
            found = self._elements[value] = writer.element(value)
        return found

    def _load(self, place: Place) -> str:
        return f"*(uint64*)({pointer(place)})"

    def address(self, value: Value) -> Place:
        """What the outermost load reads at: an expression and a constant."""
        # Chains are as deep as a kernel takes (16), which a recursion can be.
        assert isinstance(value, Deref)
        base = value.base
        if isinstance(base, Absolute):
            if self.event.point is not None:
                return f"{base.address + value.offset:#x}", 0, value.user
            return f"uptr({base.address + value.offset:#x})", 0, False
        if isinstance(base, Image):
            if self.event.kind == "uretprobe":
                raise self.cannot(
                    "the load address of the file is not known when a function returns",
                    "probe the entry, or use `--format probe`",
                )
            # `@+OFF` counts from the probed instruction less its offset in the file.
            counter = f'reg("{self.machine["instruction_pointer"]}")'
            return counter, base.offset + value.offset - self.event.offset, False
        if isinstance(base, KernelValue) and is_address(base):
            return f'kaddr("{base.text.removeprefix("@")}")', value.offset, False
        of_program = isinstance(base, ElementAddress) and self.event.point is None
        return self._word(base), value.offset, value.user or of_program

    def cannot(self, why: str, help: str = "use `--format probe`") -> CompileError:
        """The refusal of the value, and why."""
        what = f"the format `bpftrace` cannot carry `{self.item.name}`: {why}"
        return reject("FC0514", what, help=help)


# ------------------------------------------------------------------------------
# What operators give, by bpftrace's own on numbers of 64 bits.
#
# Each operand and each result is cast to its width, and to 64 bits with its sign: bpftrace compares
# with a sign if both sides have one, shifts without, and divides unsigned numbers alone. Where the
# language has no value (a division by zero), all of it is 0; a sum of 64 bits in Rust that is too
# large wraps, as in a program that is built for release.
# Source: bpftrace, src/ast/passes/codegen_llvm.cpp (binop_int); tried with 0.17 and 0.27.

# A register is a variable, too: BPF's verifier refuses a load of one that a condition chooses.
_REGISTER = re.compile(r'reg\("(\w+)"\)')
_COMPARED = frozenset(("==", "!=", "<", "<=", ">", ">="))


class _Calculated:
    """Writes one calculation; operands that an expression has several times are variables."""

    def __init__(self, values: _Values, calculation: Calculation, decode: Decode) -> None:
        self._values = values
        self._calculation = calculation
        self._decode = decode
        # The fetches of the argument, each by its position.
        items = values.event.items
        start = items.index(values.item)
        self._items = [one for one in items[start:] if one.text == values.item.text]
        self._faults: list[str] = []  # conditions under which there is no value

    def shown(self) -> Shown:
        """The value and how it is printed."""
        expression = self._computed(self._calculation)
        if self._faults:
            none = _zero(self._calculation.result)
            expression = f"({' || '.join(self._faults)} ? {none} : {self._flat(expression)})"
        conversion = "%lld" if self._calculation.result.signed else "%llu"
        if self._decode.kind in ("pointer", "reference", "address", "symbol"):
            conversion = "0x%llx"
        return Shown(expression, conversion)

    def _computed(self, node: Calculation) -> str:
        number = node.number
        if number.floating or any(one.floating for _, one in node.operands):
            raise self._values.cannot(
                "bpftrace has no floating-point numbers", "use `fetchc trace`"
            )
        operator = node.operator
        if operator == "[]":
            return self._element(node)
        if operator in ("<<", ">>"):
            return _cast(self._shift(node), number)
        if operator == "?:":
            condition = self._flat(self._operand(node, 0))
            both = [
                self._flat(self._operand(node, at, number, f"{condition} {is_chosen} 0"))
                for at, is_chosen in ((1, "!="), (2, "=="))
            ]
            return f"({condition} != 0 ? {both[0]} : {both[1]})"
        if operator in ("&&", "||"):
            first = self._flat(self._operand(node, 0))
            decides = f"{first} {'!=' if operator == '&&' else '=='} 0"
            second = self._flat(self._operand(node, 1, node.operands[1][1], decides))
            return _truth(f"{first} != 0 {operator} {second} != 0", node.result)
        given = [self._operand(node, at, number) for at in range(len(node.operands))]
        if operator == "!" or operator in _COMPARED:
            given = list(map(self._flat, given))
        if operator == "!":
            return _truth(f"{given[0]} == 0", node.result)
        if operator == "convert":
            return given[0]
        if operator in _COMPARED:
            return _truth(f"{given[0]} {operator} {given[1]}", node.result)
        if operator in ("/", "%"):
            return _cast(self._quotient(node, *given), number)
        if operator in ("min", "max"):
            first, second = map(self._values.variable, given)
            better = f"{second} {'<' if operator == 'min' else '>'} {first}"
            return f"({better} ? {second} : {first})"
        if operator in ("~", "&^"):
            return _cast(f"{' & '.join([*given[:-1], f'~{given[-1]}'])}", number)
        sums = operator in "+-*" and RULES[node.rules].overflow == "fault"
        if sums:
            given = list(map(self._flat, given))
        whole = f"0 - {given[0]}" if len(given) == 1 else f"{given[0]} {operator} {given[1]}"
        if sums and number.bits < 64:
            self._faults.append(f"({whole}) != {_cast(whole, number)}")
        return _cast(whole, number)

    def _operand(
        self, node: Calculation, at: int, number: Number | None = None, condition: str = ""
    ) -> str:
        # With 64 bits, as `number` or with the sign of its own; evaluated only on a condition.
        mark = len(self._faults)
        value, own = node.operands[at]
        found = self._value(value, own)
        if condition and (faults := self._faults[mark:]):
            self._faults[mark:] = [f"({condition} && ({' || '.join(faults)}))"]
        return found if number is None or number == own else _cast(found, number)

    def _value(self, value: Calculation | Fetched | float, number: Number) -> str:
        match value:
            case Calculation():
                return self._computed(value)
            case Fetched(position=position):
                (found,) = self._values.of(self._items[position].replaced(computed=None)).all()
                return _cast(_widened(found, number), number)
            case int():
                return f"({'int64' if number.signed else 'uint64'}){literal(value)}"
            case _:
                raise self._values.cannot("bpftrace has no floating-point numbers")

    def _flat(self, expression: str) -> str:
        # bpftrace 0.27 ends by a signal at some that have `? :` inside of `? :`.
        return self._values.variable(expression) if "?" in expression else expression

    def _quotient(self, node: Calculation, first: str, second: str) -> str:
        operator, number = node.operator, node.number
        left, constant = self._values.variable(first), node.operands[1][0]
        if isinstance(constant, int) and constant > 0:  # which no fault can come of
            magnitude = self._values.variable(f"(uint64)({left} < 0 ? 0 - {left} : {left})")
            result = f"(int64)({magnitude} {operator} (uint64){literal(constant)})"
            unsigned = f"({left} {operator} (uint64){literal(constant)})"
            return f"({left} < 0 ? 0 - {result} : {result})" if number.signed else unsigned
        right = self._values.variable(second)
        self._faults.append(f"{right} == 0")
        if not number.signed:
            return f"({right} == 0 ? (uint64)0 : {left} {operator} {right})"
        if RULES[node.rules].least_by_minus_one == "fault":
            least = "(int64)1 << 63" if number.bits == 64 else literal(-(1 << number.bits - 1))
            self._faults.append(f"({right} == -1 && {left} == ({least}))")
        magnitudes = [
            self._values.variable(f"(uint64)({one} < 0 ? 0 - {one} : {one})")
            for one in (left, right)
        ]
        quotient = self._values.variable(
            f"({right} == 0 ? (uint64)0 : {magnitudes[0]} {operator} {magnitudes[1]})"
        )
        negative = f"({left} ^ {right})" if operator == "/" else left
        return f"({negative} < 0 ? 0 - (int64){quotient} : (int64){quotient})"

    def _shift(self, node: Calculation) -> str:
        number = node.number
        rule = RULES[node.rules].shift
        value = self._values.variable(self._operand(node, 0, number))
        count = self._values.variable(f"(uint64){self._operand(node, 1)}")
        if rule == "masked":
            count = f"({count} & {number.bits - 1})"
        elif rule == "fault":
            self._faults.append(f"{count} >= {number.bits}")
        elif node.operands[1][1].signed:
            self._faults.append(f"(int64){count} < 0")
        sign = "int64" if number.signed else "uint64"
        shifted, empty = f"({sign})({value} {node.operator} {count})", f"({sign})0"
        if node.operator == ">>" and number.signed:
            shifted = self._values.variable(
                f"({value} < 0 ? (int64)~(~{value} >> {count}) : {shifted})"
            )
            if rule == "empties":
                empty = self._values.variable(f"({value} < 0 ? (int64)-1 : (int64)0)")
        return f"({count} >= {number.bits} ? {empty} : {shifted})"

    def _element(self, node: Calculation) -> str:
        # By its address, which the index is added to.
        first = node.operands[1][0]
        assert isinstance(first, Fetched)
        fetch = self._items[first.position].fetch
        if not isinstance(fetch.value, Deref) or not isinstance(fetch.store, Scalar):
            raise self._values.cannot("the elements are not in memory", "use `fetchc trace`")
        base, offset, user = self._values.address(fetch.value)
        index = self._values.variable(f"(uint64){self._operand(node, 0)}")
        self._faults.append(f"{index} >= {node.count}")
        bits = fetch.store.bits
        place = pointer((f"({total(base, offset)} + {index} * {bits // 8})", 0, user))
        element = Shown(
            f"*({_NAMES[fetch.store.kind]}{bits}*)({place})", _PRINTED[fetch.store.kind]
        )
        loaded = _cast(_widened(element, node.number), node.number)
        return f"({index} < {node.count} ? {loaded} : {_zero(node.number)})"


def _widened(fetched: Shown, number: Number) -> str:
    # bpftrace extends what it casts by the sign of the new type, not by that of its own.
    signed = fetched.conversion == "%lld"
    if signed == number.signed:
        return fetched.expression
    return f"({'int64' if signed else 'uint64'})({fetched.expression})"


def _cast(expression: str, number: Number) -> str:
    # The low bits of it, as 64 bits with the sign.
    sign = "int" if number.signed else "uint"
    if number.bits == 64:
        return f"({sign}64)({expression})"
    if number.bits == 1:
        return _truth(f"({expression}) != 0", number)
    return f"({sign}64)({sign}{number.bits})({expression})"


def _truth(condition: str, number: Number) -> str:
    sign = "int64" if number.signed else "uint64"
    return f"({condition} ? ({sign})1 : {_zero(number)})"


def _zero(number: Number) -> str:
    return f"({'int64' if number.signed else 'uint64'})0"


def _constant(value: int, store: Store) -> Shown:
    if isinstance(store, Bits):
        return Shown(literal(value >> store.offset & (1 << store.width) - 1), "%llu")
    kind, bits = (store.kind, store.bits) if isinstance(store, Scalar) else ("x", 64)
    number = value & (1 << bits) - 1
    if kind == "s" and number >> (bits - 1):
        number -= 1 << bits
    return Shown(literal(number), _PRINTED[kind])


# Arrays of characters end at their count, signs are extended.
SETTLED = ("FC0604", "FC0608")
# In quotes a path may hold the rest; bpftrace has no escapes there, and patterns of files.
_UNWRITABLE = re.compile(r'[\x00-\x1f\x7f"*?\[\]\\:]')


def write(events: Sequence[Event], version: str = "") -> Written:
    """The program for ``events``, for bpftrace of that version (``0.27``; empty: the newest).

    Raises CompileError for what bpftrace cannot do.
    """
    rules, until = _rules(version)
    warnings = []
    unsafe = False
    blocks = []
    for event in events:
        if event.point is not None:
            unsafe |= event.kind == "kprobe_inside"
            blocks.append(_probe(event, _kernel_point(event, event.point, rules), rules))
            continue
        by_address = not event.start and not _by_name(event)
        if by_address and event.ambiguous:
            warnings.append(_inside(event))
        unsafe |= by_address and not event.ambiguous
        blocks.append(_probe(event, _program_point(event), rules))
    texts = rules["text_bytes"]
    option = " --unsafe" if unsafe else ""
    said = f"BPFTRACE_STRLEN={texts} " if rules["say_text_bytes"] else ""
    head = [
        f"#!/usr/bin/env -S {said}bpftrace{option}",
        f"// For bpftrace {rules['since']} {until}: strings end after {texts - 1} bytes.",
        "// A value that cannot be read, or is not in RAM now, is 0 or empty; -kk reports it.",
    ]
    return Written("\n\n".join(["\n".join(head), *blocks]), tuple(dict.fromkeys(warnings)))


def _rules(version: str) -> tuple[Mapping[str, Any], str]:
    # What holds for a version, and until which one.
    listed = table("backend/bpftrace")["versions"]
    found = [one for one in listed if not version or _ordered(one["since"]) <= _ordered(version)]
    if not found:
        raise reject(
            "FC0514",
            f"bpftrace {version} is older than {listed[0]['since']}, the oldest that is supported",
            help="use `--format probe`, or name a newer one: `--bpftrace-version V`",
        )
    later = listed[len(found) :]
    return found[-1], f"to the last before {later[0]['since']}" if later else "and later"


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.removeprefix("v").split(".")))


_KINDS = {
    "kprobe": "kprobe", "kprobe_inside": "kprobe", "kretprobe": "kretprobe", "eprobe": "tracepoint",
}  # fmt: skip


def _kernel_point(event: Event, point: KernelPoint, rules: Mapping[str, Any]) -> str:
    kinds = {**_KINDS, "fprobe": rules["entry"], "fexit": rules["exit"]}
    if event.kind not in kinds:
        raise reject(
            "FC0514",
            f"bpftrace cannot probe the raw tracepoint `{point.name}` everywhere",
            help=f"probe the event: `-f tracepoint:GROUP:{point.name}`; or use `--format probe`",
        )
    inside = f"+{point.inside}" if point.inside else ""
    return f"{kinds[event.kind]}:{point.name}{inside}"


def _program_point(event: Event) -> str:
    if not event.elf:
        raise reject(
            "FC0514",
            f"bpftrace probes ELF files only, and `{event.path}` is not one",
            help="use `--format probe`, or `fetchc trace`",
        )
    if unwritable := _UNWRITABLE.search(event.path):
        raise reject(
            "FC0510",
            f"the path `{event.path}` holds {unwritable[0]!r}, which a bpftrace program cannot",
            help="make a link with a plain name and give that",
        )
    if _by_name(event):
        return f'usdt:"{event.path}":{event.static}'
    number = event.address if event.start or event.ambiguous else event.offset
    return f'{event.kind}:"{event.path}":{number:#x}'


def _by_name(event: Event) -> bool:
    return event.static != "" and (event.semaphore is not None or event.ambiguous)


def _probe(event: Event, point: str, rules: Mapping[str, Any]) -> str:
    data = table("backend/bpftrace")
    machine = data["machines"].get(event.machine)
    if machine is None:
        raise reject(
            "FC0514",
            f"the format `bpftrace` does not know the registers of {event.machine}",
            help="use `--format probe`",
        )
    lines = [point, "{"]
    for batch in _batches(event, machine, rules, data["lines"]):
        lines += _printf(event, batch)
    return "\n".join([*lines, "}"])


class _Labelled(Record):
    """Values after one ``NAME=``; a list is in braces. ``comment`` has the expression."""

    label: str
    comment: str
    values: tuple[Shown, ...]
    listed: bool


def _batches(
    event: Event,
    machine: Mapping[str, Any],
    rules: Mapping[str, Any],
    limits: Mapping[str, int],
) -> Iterator[list[_Labelled]]:
    """What one ``printf`` each prints: as much as the stack has room for."""
    batch: list[_Labelled] = []
    numbers = texts = 0
    for labelled in _labelled(event, machine, rules, limits["numbers"]):
        more = sum(value.text for value in labelled.values)
        numbers += sum(len(value.before) for value in labelled.values)
        texts += more
        numbers += len(labelled.values) - more
        most = limits["numbers_beside_a_text"] if texts else limits["numbers"]
        if batch and (texts > 1 or numbers > most):
            yield batch
            batch, texts, numbers = [], more, len(labelled.values) - more
        batch.append(labelled)
    if batch or not event.items:
        yield batch


def _labelled(
    event: Event, machine: Mapping[str, Any], rules: Mapping[str, Any], most: int
) -> Iterator[_Labelled]:
    # A list that is too long for a line is printed in ranges, which say so: a[0:40]=.
    before = None
    for item in event.items:
        if item.computed is not None and item.text == before:
            continue  # an operand
        values = shown(item, event, machine, rules)
        comment = "" if item.text == before else f"  // {' '.join(item.text.split())}"
        before = item.text
        listed = isinstance(item.fetch.store, Array) and not item.counts_bytes
        room = 1 if values[0].text else most
        if len(values) <= room:
            yield _Labelled(item.name, comment, values, listed)
            continue
        for low in range(0, len(values), room):
            some = values[low : low + room]
            yield _Labelled(f"{item.name}[{low}:{low + len(some)}]", comment, some, listed)
            comment = ""


def _printf(event: Event, batch: Sequence[_Labelled]) -> list[str]:
    format = f"%s-%d {event.event}:"
    arguments = [("comm, tid", "")]
    for labelled in batch:
        conversions = ",".join([value.conversion for value in labelled.values])
        format += f" {labelled.label}=" + (f"{{{conversions}}}" if labelled.listed else conversions)
        first, *others = [value.expression for value in labelled.values]
        arguments += [(first, labelled.comment), *[(other, "") for other in others]]
    ends = [","] * (len(arguments) - 1) + [");"]
    before = [one for each in batch for value in each.values for one in value.before]
    return [
        *[f"    {name} = {value};" for name, value in dict.fromkeys(before)],
        f'    printf("{format}\\n",',
        *[
            f"        {expression}{end}{comment}"
            for (expression, comment), end in zip(arguments, ends, strict=True)
        ],
    ]


def _inside(event: Event) -> Diagnostic:
    return Diagnostic(
        "FC0610",
        f"bpftrace may refuse to probe inside of a function, at {event.address:#x}",
        notes=("Debian builds it without the disassembler that it asks where instructions start",),
        help="probe the function's first instruction: `--at +0`; or use `--format probe`",
    )
