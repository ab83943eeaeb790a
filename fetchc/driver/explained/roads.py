"""The hops of a fetch, from its base outwards, each with what it gives in the program's words."""

from __future__ import annotations

from fetchc.check import scope
from fetchc.check.locations import variable_place
from fetchc.diag.diagnostic import CompileError
from fetchc.driver.explained.landmarks import Spot, behind, inside
from fetchc.ir.evaluate import listing
from fetchc.ir.fetch import (
    Array,
    Bits,
    Char,
    Comm,
    Deref,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Text,
    Word,
    body,
    fixed_bytes,
    is_address,
)
from fetchc.program.entities import InMemory, InRegister, Named, Pieces
from fetchc.program.types import PointerType
from fetchc.quantities import ByteSize
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.probe_site import Checker
    from fetchc.driver.explained.hints import Hints
    from fetchc.ir.fetch import Store, Value
    from fetchc.program.entities import Place

__all__ = ["Hop", "Walk"]


class Hop(Record):
    """One step of a fetch: ``fetcharg`` as far as it goes, ``kernel`` is what is done there.

    ``expression`` and ``type`` are what the step gives, in the program's words; None where the
    known types end.
    """

    fetcharg: str
    kernel: str
    expression: str | None
    type: str | None


class Walk:
    """From the base of a fetch outwards."""

    def __init__(self, checker: Checker, fetch: Fetch, hints: Hints) -> None:
        self.checker = checker
        self.fetch = fetch
        self.hints = hints
        self.word = checker.program.word_bytes
        self.variables = list(_variables(checker))

    def hops(self) -> tuple[tuple[Hop, ...], str | None]:
        """The hops, and why what is known ends on the way or does not fit, None if it does."""
        loads: list[Deref] = []
        base: Value = self.fetch.value
        while isinstance(base, Deref):
            loads.append(base)
            base = base.base
        steps = listing(self.fetch).split("\n")
        spot = self._base(base, None if loads else self.fetch.store)
        hops: list[Hop] = []
        if is_address(base):
            # One load in the kernel's notation, and one hop.
            steps[1] = f"{steps[1].partition(' at ')[0]} of {steps[0]}"
        else:
            hops.append(self._hop(base, None if loads else self.fetch.store, _source(base), spot))
        unknown = None if spot.type is not None or loads else spot.unknown
        for position, load in enumerate(reversed(loads), 1):
            last = position == len(loads)
            store = self.fetch.store if last else None
            spot = self._load(load, spot, store)
            if spot.type is None and unknown is None:
                unknown = spot.unknown
            hops.append(self._hop(load, store, steps[position], spot))
        return tuple(hops), unknown or self._misfit(spot)

    def _misfit(self, spot: Spot) -> str | None:
        # What is read in the end is of another size than what is there.
        store = self.fetch.store
        if spot.type is None or isinstance(store, Bits | Array):
            return None
        if isinstance(store, Text):
            return self._pointer_as_text(spot, store)
        size, there = _size(store, self.word), self.checker.size(spot.type)
        if not isinstance(self.fetch.value, Deref) or there is None or there >= size:
            return None
        return f"{size} bytes are read where `{spot.text}` has {there}"

    def _pointer_as_text(self, spot: Spot, store: Text) -> str | None:
        # The classic: one pointer too few is followed, and the kernel shows its bytes as letters.
        assert spot.type is not None
        made = self.checker.resolved(spot.type)
        if not isinstance(self.fetch.value, Deref) or not isinstance(made, PointerType):
            return None
        if self.checker.size(made.target) != 1:
            return f"a text is read where the pointer `{spot.text}` is"
        meant = body(Fetch(Deref(self.fetch.value, 0, self.fetch.value.user), store))
        return f"a text is read where the pointer `{spot.text}` is; its text is `{meant}`"

    def _hop(self, value: Value, store: Store | None, kernel: str, spot: Spot) -> Hop:
        text = _so_far(value, store)
        if spot.type is None:
            return Hop(text, kernel, spot.text or None, None)
        return Hop(text, kernel, spot.text, self.checker.spell(spot.type))

    def _load(self, load: Deref, pointer: Spot, store: Store | None) -> Spot:
        size = self.word if store is None else _size(store, self.word)
        bits = store if isinstance(store, Bits) else None
        hint = self.hints.of(load, size, store)
        if hint is not None:
            return hint
        in_frame = self._in_memory(load, size, bits)
        if in_frame is not None:
            return in_frame
        if isinstance(load.base, Image):
            what = f"the file's address {load.base.offset + load.offset:#x}, by `@+`"
            return Spot("", None, f"nothing is known of {what}")
        return behind(self.checker, pointer, load.offset, size, bits)

    def _base(self, value: Value, store: Store | None) -> Spot:
        size = self.word if store is None else _size(store, self.word)
        hint = self.hints.of(value, size, store)
        if hint is not None and not isinstance(store, Bits):
            return hint
        match value:
            case Register(name):
                return self._in_register(name, size, store)
            case StackEntry(index):
                found = self._in_memory(self._stack(self.word * index), self.word, None)
                if found is None and not index and self.checker.site.entry:
                    return Spot("the return address", None, "the return address has no type")
                return found or Spot("", None, f"no parameter is in stack entry {index} here")
            case StackPointer():
                return Spot("the stack pointer", None, "the stack pointer has no type")
            case ReturnValue():
                return self._result()
            case Immediate(constant):
                return Spot(str(constant), None, "a constant has no type")
            case Comm():
                return Spot("the name of the task", None)
            case KernelValue():
                return self._by_name(value, size, store)
            case _:
                return Spot("", None, "the address comes from no variable")

    def _by_name(self, value: KernelValue, size: int, store: Store | None) -> Spot:
        """What the kernel's probe calls by a name: ``$arg3``, ``$prev_pid``, ``count``."""
        for spot, place in self.variables:
            named = place if isinstance(place, Named) else None
            if value.text == spot.text or (named is not None and value.text == named.name):
                whole = named is not None and named.text
                return spot if whole else inside(self.checker, spot, 0, size, None)
        site = self.checker.site
        if value.rule == "current":
            from fetchc.check.special_names import current_task

            return Spot(value.text, current_task(self.checker, Span(0, 0)).type)
        number = value.text.removeprefix("$arg")
        if site.entry and site.function is not None and number.isdecimal():
            from fetchc.abi import convention_for

            taken = convention_for(site.program, site.function).integer_registers
            if 1 <= int(number) <= len(taken):
                name = site.architecture.registers[taken[int(number) - 1]]
                found = self._in_register(name, size, store)
                if found.type is not None:
                    return found
        if value.rule == "symbol":
            return Spot("", None, f"the kernel does not say of what type `{value.text}` is")
        return Spot("", None, f"no parameter or field is `{value.text}`")

    def _stack(self, offset: int) -> Deref:
        machine = self.checker.site.architecture
        return Deref(Register(machine.registers[machine.stack_pointer]), offset)

    def _in_register(self, name: str, size: int, store: Store | None) -> Spot:
        start = 0
        if isinstance(store, Bits):  # a part of a register is fetched by its bits
            start, size = store.offset // 8, store.width // 8
        registers = self.checker.site.architecture.registers
        for spot, place in self.variables:
            pieces = place.pieces if isinstance(place, Pieces) else ()
            held = [(0, place), *[(piece.offset, piece.place) for piece in pieces]]
            for offset, inner in held:
                if isinstance(inner, InRegister) and registers.get(inner.register) == name:
                    return inside(self.checker, spot, offset + start, size, None)
        if registers.get(self.checker.site.architecture.stack_pointer) == name:
            return Spot("the stack pointer", None, "the stack pointer has no type")
        return Spot("", None, f"no parameter or variable is known to be in `%{name}` here")

    def _in_memory(self, load: Deref, size: int, bits: Bits | None) -> Spot | None:
        if not isinstance(load.base, Register):
            return None
        registers = self.checker.site.architecture.registers
        for spot, place in self.variables:
            if not isinstance(place, InMemory) or registers.get(place.register) != load.base.name:
                continue
            assert spot.type is not None
            whole = self.checker.size(spot.type)
            if whole and place.offset <= load.offset < place.offset + whole:
                return inside(self.checker, spot, load.offset - place.offset, size, bits)
        return None

    def _result(self) -> Spot:
        site = self.checker.site
        made = None
        if site.function is not None and site.function.die is not None:
            made = site.program.result(site.function)
        why = None if made is not None else "the type of the result is not known"
        return Spot("$retval", made, why)


def _variables(checker: Checker) -> Iterator[tuple[Spot, Place]]:
    """What is visible at the site, with its place."""
    site = checker.site
    if site.function is None or site.function.die is None:
        return
    for variable in scope.visible(site, site.function):
        name = variable.name.lstrip("&")
        if not name:
            continue
        try:
            place, _ = variable_place(site, variable, Span(0, len(name)))
        except CompileError:
            continue  # two sources disagree: it may be anywhere
        yield Spot(name, variable.type), place


def _so_far(value: Value, store: Store | None) -> str:
    return body(Fetch(value, Word() if store is None else store))


def _source(base: Value) -> str:
    match base:
        case Register():
            return "a register"
        case StackPointer():
            return "the stack pointer"
        case StackEntry():
            return "load 8 bytes of the stack"
        case ReturnValue():
            return "the register of the result"
        case Immediate():
            return "a constant"
        case KernelValue("symbol"):
            return "a symbol"
        case KernelValue("current"):
            return "the task that runs"
        case KernelValue(rule) if rule.startswith("event"):
            return "a field"
        case KernelValue("argument" | "argument_alone" | "name"):
            return "a parameter"
        case _:
            return "the kernel's own"


def _size(store: Store, word: int) -> ByteSize:
    match store:
        case Text():
            return ByteSize(1)
        case Array(Text()):
            return ByteSize(word)
        case Array(element):
            return ByteSize(fixed_bytes(element))
        case Scalar() | Char() | Bits():
            return ByteSize(fixed_bytes(store))
        case _:
            return ByteSize(word)
