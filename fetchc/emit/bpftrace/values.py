"""From a fetch to the expression of bpftrace that has the same value.

Every load is a dereference of a pointer to an integer type of the load's width and sign, so that
bpftrace reads exactly what the kernel's fetch program reads: words on the way, the type's size at
the end. A text is read by ``str``; a counted one with its length, which no fetch-arg can do.
Source: bpftrace, docs/reference_guide (casts, ``reg``, ``str``); tried with 0.17.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.ir.nodes import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
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
    Word,
)
from fetchc.ir.verify import fixed_bytes
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.diag.errors import CompileError
    from fetchc.emit.formats import Event, Item
    from fetchc.ir.nodes import Store, Value

__all__ = ["Shown", "shown"]

_WORD_BYTES = 8
_PRINTED = {"u": "%llu", "s": "%lld", "x": "0x%llx"}
_TEXT = '\\"%s\\"'
_NAMES = {"u": "uint", "s": "int", "x": "uint"}


class Shown(Record):
    """A value to print: its expression and conversion, ``text`` where it is one."""

    expression: str
    conversion: str
    text: bool = False


def shown(item: Item, event: Event, machine: Mapping[str, Any]) -> tuple[Shown, ...]:
    """What ``item`` prints: one value, or one for each element of an array.

    ``machine`` is the table of targets/backend/bpftrace.toml. Raises CompileError (FC0514) for
    what bpftrace cannot do.
    """
    return _Values(item, event, machine).all()


class _Values:
    def __init__(self, item: Item, event: Event, machine: Mapping[str, Any]) -> None:
        self.item = item
        self.event = event
        self.machine = machine

    def all(self) -> tuple[Shown, ...]:
        value, store = self.item.fetch.value, self.item.fetch.store
        if isinstance(value, Comm):
            return (Shown("comm", _TEXT, True),)
        if self.item.length is not None and isinstance(store, Array):
            return (self._counted(value),)
        match store:
            case Text():
                return (self._text(self._address(value)),)
            case Array(element, count):
                start = self._address(value)
                return tuple([self._element(start, element, index) for index in range(count)])
            case _:
                return (self._scalar(value, store),)

    def _element(
        self, start: tuple[str, int], element: Scalar | Char | Bits | Text, index: int
    ) -> Shown:
        base, offset = start
        if isinstance(element, Text):
            pointer = f"*(uint64*)({_sum(base, offset + _WORD_BYTES * index)})"
            return self._text((pointer, 0))
        place = (base, offset + fixed_bytes(element) * index)
        return self._number(place, element)

    def _counted(self, value: Value) -> Shown:
        length = next(each for each in self.event.items if each.name == self.item.length)
        (count,) = shown(length, self.event, self.machine)
        address = _sum(*self._address(value))
        return Shown(f"str({address}, {count.expression})", _TEXT, True)

    def _text(self, place: tuple[str, int]) -> Shown:
        limit = self.item.decode.limit
        bound = "" if limit is None else f", {limit}"
        return Shown(f"str({_sum(*place)}{bound})", _TEXT, True)

    def _scalar(self, value: Value, store: Store) -> Shown:
        if isinstance(value, Immediate):
            return _constant(value.value, store)
        if isinstance(value, Deref):
            return self._number(self._address(value), store)
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
                raise self._cannot("it names addresses of the kernel")
            case _:
                assert_never(store)

    def _number(self, place: tuple[str, int], store: Store) -> Shown:
        address = _sum(*place)
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
                raise self._cannot("it names addresses of the kernel")
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
                    raise self._cannot(f"it knows no register `{name}`")
                return f'reg("{name}")'
            case StackPointer():
                return f'reg("{self.machine["stack_pointer"]}")'
            case StackEntry(index):
                stack = f'reg("{self.machine["stack_pointer"]}")'
                return f"*(uint64*)({_sum(stack, _WORD_BYTES * index)})"
            case ReturnValue():
                return "retval"
            case Immediate(constant):
                return _literal(constant)
            case Deref():
                return f"*(uint64*)({_sum(*self._address(value))})"
            case Absolute() | Image() | Comm() | KernelValue():
                raise AssertionError(f"not a word: {value!r}")
            case _:
                assert_never(value)

    def _address(self, value: Value) -> tuple[str, int]:
        # What the outermost load reads at: an expression and a constant. Chains are as deep as
        # a kernel takes (16), which a recursion can be.
        assert isinstance(value, Deref)
        base = value.base
        if isinstance(base, Absolute):
            return f"uptr({base.address + value.offset:#x})", 0
        if isinstance(base, Image):
            if self.event.kind == "uretprobe":
                raise self._cannot(
                    "where the file is loaded is not known when a function returns",
                    "probe the entry, or use `--format probe`",
                )
            # `@+OFF` counts from the probed instruction less its offset in the file.
            counter = f'reg("{self.machine["instruction_pointer"]}")'
            return counter, base.offset + value.offset - self.event.offset
        return self._word(base), value.offset

    def _cannot(self, why: str, help: str = "use `--format probe`") -> CompileError:
        what = f"the format `bpftrace` cannot carry `{self.item.name}`: {why}"
        return reject("FC0514", what, help=help)


def _sum(base: str, offset: int) -> str:
    if not offset:
        return base
    return f"{base} {'-' if offset < 0 else '+'} {abs(offset)}"


def _constant(value: int, store: Store) -> Shown:
    if isinstance(store, Bits):
        return Shown(_literal(value >> store.offset & (1 << store.width) - 1), "%llu")
    kind, bits = (store.kind, store.bits) if isinstance(store, Scalar) else ("x", 64)
    number = value & (1 << bits) - 1
    if kind == "s" and number >> (bits - 1):
        number -= 1 << bits
    return Shown(_literal(number), _PRINTED[kind])


def _literal(value: int) -> str:
    return f"{value:#x}" if value > 0x7FFFFFFF else str(value)
