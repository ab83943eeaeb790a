"""``fetchc explain``: what a fetch does, hop by hop, in the words of the program.

Works on any fetch, hand-written or compiled: it looks up the registers among the parameters, and
the offsets in the types. Of an expression the checker's own findings come first, since only they
know of casts and of the members of unions.
"""

from __future__ import annotations

import re

from fetchc.check import scope
from fetchc.check.checker import Checker
from fetchc.check.probe_site import ProbePoint
from fetchc.check.typed_tree import Shift, Subobject
from fetchc.check.variable_places import variable_place
from fetchc.diag.diagnostic import CompileError
from fetchc.driver.compile import compile_argument
from fetchc.driver.fetcharg_meaning import ReadFetch
from fetchc.driver.probe_points import PointRequest, find_site
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
from fetchc.lower.fetches import InValue, Memory, load_word, where
from fetchc.program.entities import InMemory, InRegister, Named, Pieces
from fetchc.program.types import (
    ArrayType,
    InterfaceType,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteSize
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.expression_parser import parse_argument
from fetchc.syntax.fetcharg_parser import read_fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.ir.fetch import Decode, Store, Value
    from fetchc.program.entities import Place
    from fetchc.program.types import Member
    from fetchc.quantities import TypeId
    from fetchc.syntax.tree import Argument
    from fetchc.target.kernel_versions import Kernel

__all__ = [
    "Explained",
    "ExplainedFetch",
    "Hints",
    "Hop",
    "Spot",
    "Walk",
    "behind",
    "explain",
    "inside",
    "outcome",
]

# ------------------------------------------------------------------------------
# What lies at an offset of an object, by its type: the way from a fetch-arg back to the source.

_DEEPEST = 32  # objects inside of objects


class Spot(Record):
    """What is at some place: in words of the source, with its type.

    ``type`` is None where it is not known, and ``unknown`` completes "because ...".
    """

    text: str
    type: TypeId | None
    unknown: str | None = None


def behind(checker: Checker, pointer: Spot, offset: int, size: int, bits: Bits | None) -> Spot:
    """What is ``offset`` bytes beyond where the value ``pointer`` leads.

    ``size`` is how many bytes are wanted of it: of the members of a union the first that has so
    many is taken.
    """
    if pointer.type is None:
        return Spot("", None, pointer.unknown)
    resolved = checker.resolved(pointer.type)
    spelled = checker.spell(pointer.type)
    if not isinstance(resolved, PointerType):
        return Spot("", None, f"`{pointer.text}` is a `{spelled}`, no pointer")
    target = resolved.target
    whole = checker.size(target)
    if not whole or isinstance(checker.resolved(target), VoidType):
        return Spot("", None, f"`{pointer.text}` is a `{spelled}`: what it points to has no size")
    index, within = divmod(offset, whole)
    if offset > 0 and (tail := _tail(checker, target)) is not None and offset >= tail.offset:
        index, within = 0, offset
    base = f"({pointer.text})" if pointer.text[0] in "*&(" else pointer.text
    text = f"{base}[{index}]" if index else f"(*{pointer.text})"
    found = inside(checker, Spot(text, target), within, size, bits)
    # p->x reads better than (*p).x, and *p than (*p).
    if not index and found.text.startswith(f"{text}."):
        return Spot(f"{base}->{found.text[len(text) + 1 :]}", found.type, found.unknown)
    if not index and found.text == text:
        return Spot(f"*{pointer.text}", found.type, found.unknown)
    return found


def inside(checker: Checker, holder: Spot, offset: int, size: int, bits: Bits | None) -> Spot:
    """What is ``offset`` bytes into the object ``holder``."""
    text, type_id = holder.text, holder.type
    assert type_id is not None
    for _ in range(_DEEPEST):
        resolved = checker.resolved(type_id)
        match resolved:
            case ArrayType(element=element):
                each = checker.size(element)
                if not each:
                    break
                index, offset = divmod(offset, each)
                text, type_id = f"{text}[{index}]", element
            case StructType() | StringType() | SliceType() | InterfaceType() | SequenceType():
                step = _member(checker, resolved.members, offset, size, bits)
                tail = _tail(checker, type_id)
                if step is None and tail is not None and offset >= tail.offset:
                    step = tail
                if step is None:
                    spelled = checker.spell(type_id)
                    return Spot("", None, f"`{spelled}` has no member at +{offset}")
                text = f"{text}.{step.name}" if step.name else text
                offset, type_id = offset - step.offset, step.type
                if step.bits is not None:
                    break
            case _ if offset:
                spelled = checker.spell(type_id)
                return Spot("", None, f"+{offset} is not where a `{spelled}` starts")
            case _:
                break
    return Spot(text, type_id)


def _tail(checker: Checker, type_id: TypeId) -> Member | None:
    # `struct point items[]` at the end of a structure: what is behind it are elements of that.
    resolved = checker.resolved(type_id)
    if not isinstance(resolved, StructType) or resolved.kind == "union" or not resolved.members:
        return None
    last = resolved.members[-1]
    last_type = checker.resolved(last.type)
    return last if isinstance(last_type, ArrayType) and not last_type.count else None


def _member(
    checker: Checker, members: tuple[Member, ...], offset: int, size: int, bits: Bits | None
) -> Member | None:
    fitting = None
    for step in members:
        if step.bits is not None:
            if bits is not None and (step.bits.offset, step.bits.width) == (
                8 * offset + bits.offset,
                bits.width,
            ):
                return step
            continue
        whole = checker.size(step.type)
        if whole is None or not step.offset <= offset < step.offset + max(whole, 1):
            continue
        if whole >= size and (whole == size or fitting is None):
            fitting = step
            if whole == size:
                break
        fitting = fitting or step
    return fitting


# ------------------------------------------------------------------------------
# The hops of a fetch, from its base outwards, each with what it gives in the program's words.


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
        """The hops, and why the types end on the way or do not fit; None if they do."""
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
        resolved = self.checker.resolved(spot.type)
        if not isinstance(self.fetch.value, Deref) or not isinstance(resolved, PointerType):
            return None
        if self.checker.size(resolved.target) != 1:
            return f"a string is read where the pointer `{spot.text}` is"
        meant = body(Fetch(Deref(self.fetch.value, 0, self.fetch.value.user), store))
        return f"a string is read where the pointer `{spot.text}` is; its string is `{meant}`"

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
            return Spot("", None, f"the type is not known of {what}")
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
            placed = [(0, place), *[(piece.offset, piece.place) for piece in pieces]]
            for offset, inner in placed:
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
        result = None
        if site.function is not None and site.function.die is not None:
            result = site.program.result(site.function)
        why = None if result is not None else "the type of the result is not known"
        return Spot("$retval", result, why)


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


# ------------------------------------------------------------------------------
# What the parts of an expression are called, and their types, by the values that fetch them.


class Hints:
    """The parts of the expression ``text``; none, until it learns of them."""

    def __init__(self, checker: Checker, text: str) -> None:
        self._checker = checker
        self._text = text
        self._spots: dict[Value, list[Spot]] = {}

    def learn(self, node: Typed) -> None:
        """Take in ``node`` and all its parts, the innermost first."""
        base: Typed | None = getattr(node, "base", None)
        if base is not None:
            self.learn(base)
        try:
            found = where(self._checker.site, node)
            if isinstance(found, Memory) or (isinstance(found, InValue) and not found.offset):
                value = load_word(self._checker.site, found, node.span)
                spot = Spot(self._shown(node), node.type)
                self._spots.setdefault(value, []).append(spot)
        except CompileError:
            pass  # an address, part of a register: no value that a fetch goes through

    def _shown(self, node: Typed) -> str:
        # The place of a member starts after the bracket of a cast, which is part of it.
        start, end = node.span.start, node.span.end
        text = self._text[start:end]
        while start and text.count(")") > text.count("(") and self._text[start - 1] == "(":
            start -= 1
            text = self._text[start:end]
        if isinstance(node, Subobject):
            holder = self._checker.resolved(node.base.type)
            if not isinstance(holder, SliceType | StringType) or node.offset != 0:
                return text
            if node.span == node.base.span:
                return f"{text}.{holder.members[0].name}"
        elif not isinstance(node, Shift):
            return text
        # s[1] of a slice or pointer: the pointer to the element has the element's place.
        return f"&{text}" if text.endswith("]") else text

    def of(self, value: Value, size: int, store: Store | None = None) -> Spot | None:
        """What is at ``value``: of an object and its first part the one that has ``size``."""
        spots = self._spots.get(value, [])
        if not spots:
            return None
        fitting = [spot for spot in spots if self._size(spot) == size]
        spot = (fitting or spots)[-1]
        if fitting or isinstance(store, Bits | Text | Array):
            return spot
        return inside(self._checker, spot, 0, size, None)

    def _size(self, spot: Spot) -> int | None:
        assert spot.type is not None
        return self._checker.size(spot.type)


# ------------------------------------------------------------------------------
# What a fetched value is to a reader of the event, in words.

_SHOWN = 6  # enumerators
_PRINTED = {"u": "in decimal, unsigned", "s": "in decimal, signed", "x": "in hexadecimal"}


def outcome(store: Store, decode: Decode | None) -> str:
    """``a signed number of 32 bits``; by the kernel's own type where there is no ``decode``."""
    if decode is None:
        return _stored(store)
    many = "" if decode.count is None else f"{decode.count} times "
    match decode.kind:
        case "text" | "bytes" if isinstance(store, Array) and isinstance(store.element, Scalar):
            size = store.count * store.element.bits // 8
            return f"{size} bytes, the start of a string that ends at its length"
        case "text" | "bytes":
            limit = "" if decode.limit is None else f", of {decode.limit} bytes at most"
            return f"{many}a string up to its NUL{limit}"
        case "integer" | "char":
            sign = "a signed" if decode.signed else "an unsigned"
            return f"{many}{sign} number of {decode.bits} bits"
        case "float":
            return f"{many}a floating-point number, by its {decode.bits} bits"
        case "enum":
            names = [f"{name} ({value})" for name, value in decode.enumerators[:_SHOWN]]
            more = ["..."] if len(decode.enumerators) > _SHOWN else []
            return f"{many}an enumerator: {', '.join(names + more)}"
        case "bool":
            return f"{many}a boolean, 0 or 1"
        case "symbol":
            return f"{many}the address of a function"
        case _:
            return f"{many}an address"


def _stored(store: Store) -> str:
    match store:
        case Array(element, count):
            return f"{count} times {_stored(element)}"
        case Text():
            return "a string up to its NUL"
        case Scalar(kind, bits):
            return f"a number of {bits} bits, printed {_PRINTED[kind]}"
        case Char():
            return "a byte, printed as a character"
        case Bits(width, offset, container):
            return (
                f"{width} bits, from bit {offset} of {container} on, printed in decimal, unsigned"
            )
        case _:
            return "a word, printed in hexadecimal"


_WRITTEN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*=)?[-+@%$\\]")  # how a fetch-arg begins


class ExplainedFetch(Record):
    """The hops of one fetch-arg, and what the event has of it in the end.

    ``name`` is that of a companion or a member, empty for the value itself. ``unknown`` says why
    the known types end on the way, or do not fit.
    """

    name: str
    fetcharg: str
    hops: tuple[Hop, ...]
    result: str
    decode: Decode | None
    unknown: str | None


class Explained(Record):
    """A string explained: one fetch-arg, or those of a whole value.

    ``type`` is an expression's, None of a fetch-arg that somebody wrote. ``found`` is where.
    """

    text: str
    type: str | None
    found: ProbePoint
    fetches: tuple[ExplainedFetch, ...]
    warnings: tuple[Diagnostic, ...]


def explain(text: str, found: ProbePoint, kernel: Kernel) -> Explained:
    """What ``text``, an expression or a fetch-arg, fetches at the site.

    Raises CompileError where it is refused. What is both (``%di``) is taken for a fetch-arg.
    """
    kind = found.site.probe_kind
    family = "function" if found.site.program.in_kernel else "program"
    read = _written(text, "event" if kind == "eprobe" else family)
    if read is not None:
        problems = read.problems_for(kernel, kind, found.site.architecture.named)
        if problems:
            raise CompileError(tuple(problems))
        assert read.fetch is not None
        return _explain_fetch(read.fetch, text, found)
    argument = parse_argument(text)
    if argument.point is not None:
        function = None if argument.point.file is not None else found.site.function
        name = None if function is None else function.name
        returns = found.kind.startswith("return")
        request = PointRequest(name, argument.point, returns, kernel)
        found = find_site(found.site.program, request)
    return _explain_argument(argument, text, found, kernel)


def _written(text: str, family: str) -> ReadFetch | None:
    """``text`` as a fetch-arg of a probe of ``family``, None where it is an expression."""
    if not _WRITTEN.match(text):
        return None
    sure = re.match(r"([A-Za-z_]\w*=)?([-+]u?[0-9]\w*\(|@|\\)", text) is not None
    try:
        read = ReadFetch(read_fetch(text), family)
    except CompileError:
        if sure:
            raise
        return None
    return read if sure or not read.problems else None


def _explain_argument(
    argument: Argument, text: str, found: ProbePoint, kernel: Kernel
) -> Explained:
    """The hops of an expression: of its one fetch-arg, or of all where one cannot hold it."""
    try:
        compiled = compile_argument(argument, text, found, kernel, whole=False)
    except CompileError as refusal:
        if refusal.reason not in ("several fetch-args", "array count"):
            raise
        compiled = compile_argument(argument, text, found, kernel, whole=True)
    checker = Checker(found.site)
    hints = Hints(checker, text)
    hints.learn(checker.check(argument.expression))
    fetches = [
        _explained(Walk(checker, part.fetch, hints), part.suffix, part.decode)
        for part in compiled.parts
    ]
    return Explained(text, compiled.type, found, tuple(fetches), compiled.warnings)


def _explain_fetch(fetch: Fetch, text: str, found: ProbePoint) -> Explained:
    """The hops of a fetch-arg that somebody wrote, by the types of what is visible there."""
    checker = Checker(found.site)
    fetch_steps = _explained(Walk(checker, fetch, Hints(checker, text)), "", None)
    return Explained(text, None, found, (fetch_steps,), ())


def _explained(walk: Walk, name: str, decode: Decode | None) -> ExplainedFetch:
    hops, unknown = walk.hops()
    fetch = walk.fetch
    return ExplainedFetch(name, body(fetch), hops, outcome(fetch.store, decode), decode, unknown)
