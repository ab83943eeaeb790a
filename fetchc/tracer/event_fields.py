"""The fields of one event: each fetch once, objects in one piece, and the pointers to them."""

from __future__ import annotations

from contextlib import contextmanager

from fetchc.diag.diagnostic import CompileError, reject
from fetchc.driver.compile import accepted, for_kernel
from fetchc.ir.fetch import (
    ELEMENTS,
    TEXT_BYTES,
    Absolute,
    Array,
    Bits,
    Calculated,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    Part,
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
    mapped,
)
from fetchc.ir.step_support import has_cursor
from fetchc.record import Record
from fetchc.source import Span
from fetchc.target.kernel_versions import dotted
from fetchc.tracer.events import FaultProbe
from fetchc.tracer.value_shapes import (
    ELEMENT,
    DifferenceShape,
    ElementCountShape,
    Guard,
    Leaf,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from fetchc.check.probe_site import ProbePoint
    from fetchc.ir.fetch import Term, Value
    from fetchc.target.kernel_versions import Kernel
    from fetchc.tracer.value_shapes import Shape

__all__ = [
    "Block",
    "CopiedElement",
    "ElementFields",
    "Fields",
    "NotCopied",
    "base_and_offset",
    "chunks",
    "moved_by",
]

# ------------------------------------------------------------------------------
# Objects that are fetched as their bytes, and the arrays that hold these.


class Block(Record):
    """``size`` bytes of memory, from ``offset`` on ``base``, that ``field`` begins with.

    ``user``: user memory, read by a kernel probe. ``read_checks`` are those of a Guard.
    """

    base: Value
    offset: int
    size: int
    field: str
    user: bool
    read_checks: tuple[tuple[str, int], ...] = ()

    def has(self, offset: int, size: int) -> bool:
        """Whether ``size`` bytes from ``offset`` on are all in it."""
        return self.offset <= offset and offset + size <= self.offset + self.size


def base_and_offset(value: Deref) -> tuple[Value, int]:
    """The base of a load, and the load's offset from it."""
    # An address of the file has its constant inside.
    match value.base:
        case Image(offset=start):
            return Image(0), start + value.offset
        case Absolute(address=start):
            return Absolute(0), start + value.offset
        case base:
            return base, value.offset


def moved_by(value: Deref, by: int) -> Deref:
    """The load ``by`` bytes after ``value``."""
    match value.base:
        case Image(offset=start):
            return Deref(Image(start + by), value.offset)
        case Absolute(address=start):
            return Deref(Absolute(start + by), value.offset)
        case base:
            return Deref(base, value.offset + by, value.user)


def chunks(size: int) -> list[tuple[int, Array]]:
    """The arrays that hold ``size`` bytes: words, then single bytes; each with its first byte."""
    chunks = []
    low = 0
    while size - low >= 8:
        words = min((size - low) // 8, ELEMENTS)
        chunks.append((low, Array(Scalar("x", 64), words)))
        low += 8 * words
    if size > low:
        chunks.append((low, Array(Scalar("x", 8), size - low)))
    return chunks


_OF_PROGRAMS = ("mangled", "not in definitions")  # why a fetch is for an eBPF program
_OF_ELEMENT = 256  # bytes of all that is copied, and of a string, for an element that has some
_FIELDS_OF_ELEMENT = 16  # the stack of a program has room for few values
_LEAST_ELEMENTS = 4  # that are recorded without such a walk
_OF_FIELD, _MOST_FIELDS = 16, 640  # bytes of all that is copied for each field of such elements
_LEAST_PROBED = 2  # bytes of the smallest number that is probing_faults


class Fields:
    """Collects what one probed address fetches, and gives each fetch its field's name.

    The first field of an argument has its name (:attr:`stem`); others are called
    ``fetchc_N``, or as ``taken`` leaves free. ``span`` is the argument's, for diagnostics.
    ``most``: an eBPF program records contents, of so many bytes at most; 0: definitions do.
    """

    def __init__(
        self, found: ProbePoint, kernel: Kernel, taken: Collection[str], most: int = 0
    ) -> None:
        self.stem: str | None = None
        self.span: Span | None = None
        self._text_bytes = TEXT_BYTES  # of what is no contents
        self._found = found
        self._kernel = kernel
        self._taken = taken
        self._most = most
        self._listed: list[tuple[str, Fetch]] = []
        self._names: dict[Fetch, str] = {}  # the first field of each fetch that is no chunk
        self._blocks: list[Block] = []
        self.undefinable: set[str] = set()
        """Fields that definitions of the kernel lack or read wrongly, and eBPF programs have."""
        self._number = 0
        # Of each pointer that a number was loaded by: its field and offset, and how far behind it
        # the numbers' last bytes are.
        self._loaded: dict[Value, tuple[str, int, list[int]]] = {}
        self._assumed = 0

    @contextmanager
    def assuming(self) -> Iterator[None]:
        """For alternatives of which the object has one: no fault probe is added for them.

        The bytes of the others are something else, and their strings may take the event's room.
        """
        self._assumed += 1
        try:
            yield
        finally:
            self._assumed -= 1

    @property
    def copies(self) -> bool:
        """Whether a program copies strings and slices by their length."""
        return self._most > 0

    @property
    def listed(self) -> tuple[tuple[str, Fetch], ...]:
        """Every field with its fetch, in the order of the record."""
        return tuple(self._listed)

    def fault_probes(self) -> tuple[FaultProbe, ...]:
        """Fetch what shows whether the numbers behind pointers could be read.

        Of each pointer the first and the last number behind it, which may be of two pages; of each
        the highest byte, which mostly is 0. Single bytes have none: they mostly begin a string or a
        buffer, which would take the event's room. To be called when all else was fetched. Raises
        CompileError as :meth:`add` does.
        """
        found = []
        for base, (field, start, ends) in self._loaded.items():
            for moved in sorted({min(ends), max(ends)}):
                text = self.add(Fetch(moved_by(Deref(base, 0), moved), Text()))
                found.append(FaultProbe(text, field, start, moved))
        return tuple(found)

    def mark(self) -> tuple[int, int, dict[Value, int]]:
        """What was collected so far, for :meth:`forget`."""
        ends = {base: len(ends) for base, (_, _, ends) in self._loaded.items()}
        return len(self._listed), len(self._blocks), ends

    def forget(self, mark: tuple[int, int, dict[Value, int]]) -> None:
        """Drop what was collected since ``mark``: a member that cannot be fetched after all."""
        listed, blocks, loaded = mark
        for base in list(self._loaded):
            if base in loaded:
                del self._loaded[base][2][loaded[base] :]
            else:
                del self._loaded[base]
        for name, fetch in self._listed[listed:]:
            if self._names.get(fetch) == name:
                del self._names[fetch]
        del self._listed[listed:]
        del self._blocks[blocks:]

    def add(self, fetch: Fetch) -> str:
        """The field of ``fetch``. Raises CompileError where the kernel rejects it."""
        fitting = for_kernel(fetch, self._kernel)
        name = self._names.get(fitting)
        if name is None:
            name = self._names[fitting] = self._new(fitting)
        return name

    def shortened(self, walk: Walk) -> Walk | None:
        """That walk of a list, of as many elements as an event has room for beside its others.

        None where these are not worth it.
        """
        walks = [one.value for _, one in self._listed if isinstance(one.value, Walk)]
        left = min(self._most // _OF_FIELD, _MOST_FIELDS)
        left -= sum([one.most * len(one.fields) for one in walks])
        most = min(walk.most, left // len(walk.fields))
        few = most <= _LEAST_ELEMENTS or len(walk.fields) > _FIELDS_OF_ELEMENT
        return None if few else walk.replaced(most=most, rounds=most)

    def walk(self, walk: Walk) -> str:
        """The field of the elements of a container; no kernel takes it in a definition."""
        return self._named(Fetch(walk, Word()))

    def of_copied(self, size: int, user: bool) -> CopiedElement:
        """For what is in the ``size`` bytes of an element that a program copies."""
        return CopiedElement(self._found, self._kernel, self.span, size, user)

    def of_elements(self, walk: Walk) -> ElementFields:
        """Collects what is fetched of one of the elements that ``walk`` finds."""
        return ElementFields(self._found, self._kernel, self.span, self._most, walk)

    def of_each(
        self, value: Deref, count: Callable[[], Shape | int | None], each: int
    ) -> ElementFields | None:
        """As :meth:`of_elements`, of ``count`` elements of ``each`` bytes from ``value`` on.

        None where :meth:`copied` gives none, too, or the kernel has no loops.
        """
        from fetchc.lower.walks import side_by_side

        if not (self._most and self._has_loops()) or is_address(value.base):
            return None
        number = self._count_of(count)
        if number is None:
            return None
        first = Calculated("add", value.base, value.offset) if value.offset else value.base
        walk = side_by_side(first, number, each, self._most // _OF_ELEMENT)
        return ElementFields(self._found, self._kernel, self.span, _OF_ELEMENT, walk)

    def _has_loops(self) -> bool:
        from fetchc.target.bpf_rules import bpf_rules

        return "loops" in bpf_rules(self._kernel.version).features

    def _new(self, fetch: Fetch) -> str:
        assert self.span is not None
        try:
            accepted(self._found, fetch, self._kernel, self.span)
        except CompileError as refused:
            if any(one.reason not in _OF_PROGRAMS for one in refused.diagnostics):
                raise
            name = self._named(fetch)
            self.undefinable.add(name)
            return name
        return self._named(fetch)

    def _named(self, fetch: Fetch) -> str:
        name = self._name()
        self._listed.append((name, fetch))
        return name

    def spot(self, fetch: Fetch) -> tuple[str, int, int] | None:
        """Field, offset and bytes of a number that lies in a block; None where none has it."""
        if not isinstance(fetch.value, Deref) or isinstance(fetch.store, Text | Array):
            return None
        base, offset = base_and_offset(fetch.value)
        size = fixed_bytes(fetch.store)
        for block in self._blocks:
            if block.base == base and block.has(offset, size) and block.user == fetch.value.user:
                return block.field, offset - block.offset, size
        return None

    def block(self, value: Deref, size: int) -> tuple[str, int]:
        """Fetch the ``size`` bytes that ``value`` is the first word of; their field and offset.

        Words first, as many as an argument holds, then single bytes: an object is not read
        past its end. The arguments lie side by side in the record.
        """
        base, offset = base_and_offset(value)
        for block in self._blocks:
            if block.base == base and block.has(offset, size) and block.user == value.user:
                return block.field, offset - block.offset
        first = ""
        start = Deref(value.base, value.offset) if value.user else value
        if value.user:
            self._require_read_checks()
        for low, store in chunks(size):
            # Never a field that is there already: that would tear the row apart.
            name = self._new(for_kernel(Fetch(moved_by(start, low), store), self._kernel))
            first = first or name
        # Of the two pages that the bytes can be in: eight bytes from the first one on, or as many
        # that end with it, are in the first page, and the last ones reach the second.
        checks = self._read_checks(start, (0, -7, max(size - 8, 0))) if value.user else ()
        self._blocks.append(Block(base, offset, size, first, value.user, checks))
        return first, 0

    def contents(
        self, value: Deref, least: int, count: Callable[[], Shape | int | None], each: int
    ) -> tuple[str, int, int]:
        """Fetch ``count`` times ``each`` bytes, of which ``value`` is the first word.

        The result is their field, where in it they begin, and how many there are at most. Where no
        program copies them these are ``least``, whatever the count is.
        """
        copied = self.copied(value, count, each, least)
        if copied is None:
            return (*self.block(value, least), least)
        return copied[0], 0, copied[1]

    def copied(
        self,
        value: Deref,
        count: Callable[[], Shape | int | None],
        each: int,
        least: int = 0,
        apart: int = 1,
    ) -> tuple[str, int] | None:
        """Have a program copy ``count`` times ``each`` bytes: the field, the most bytes of it.

        Of all that it copies, each of them has ``apart`` bytes at least. None where it would copy
        no more than ``least``, where definitions fetch them, or the count is nothing simple.
        """
        most = self._most // max(each, apart) * each
        if most <= least:
            return None
        number = self._count_of(count)
        if isinstance(number, int):
            most = number = min(each * number, most)
            if most <= least:
                return None
        elif number is None:
            return None
        elif each > 1:
            number = Calculated("mul", number, each)
        return self._contents(Contents(value, number, most)), most

    def text(self, fetch: Fetch, limit: int | None = None) -> str:
        """The field of a string up to its NUL, of more bytes where a program can read those.

        ``limit`` are the bytes of the array that it is in, if it is in one.
        """
        value, store = fetch.value, fetch.store
        fits = limit is not None and limit < self._most
        if not (isinstance(value, Deref) and isinstance(store, Text)) or not (
            fits or self._most > self._text_bytes
        ):
            return self.add(fetch)
        start = Deref(value.base, value.offset, value.user or store.user)
        if limit is not None and fits:
            return self._contents(Contents(start, None, limit + 1, limit))
        return self._contents(Contents(start, None, self._most))

    def _contents(self, contents: Contents) -> str:
        fetch = Fetch(contents, Text())
        name = self._names.get(fetch)
        if name is None:
            name = self._names[fetch] = self._named(fetch)
        return name

    def _count_of(self, count: Callable[[], Shape | int | None]) -> Term | None:
        stem, self.stem = self.stem, None  # the count is no first field
        number = self._number_of(count())
        self.stem = stem
        return number

    def _number_of(self, count: Shape | int | None) -> Term | None:
        # As a program computes it; None where that is not so simple.
        match count:
            case int():
                return count
            case Leaf():
                return self._number_in(count)
            case DifferenceShape(minuend=minuend, subtrahend=subtrahend):
                left, right = self._number_of(minuend), self._number_of(subtrahend)
                if left is None or right is None:
                    return None
                return Calculated("sub", left, right)
            case ElementCountShape(start=start, end=end, each=each):
                bytes_of = self._number_of(DifferenceShape(end, start))
                return None if bytes_of is None else Calculated("div", bytes_of, each)
            case _:
                return None

    def _number_in(self, leaf: Leaf) -> Term | None:
        # A number of its own, or one in a block.
        block = next((one for one in self._blocks if one.field == leaf.field), None)
        fetch = dict(self._listed)[leaf.field]
        size, value = leaf.size or fixed_bytes(fetch.store), fetch.value
        bits, shift = leaf.decode.bits or 8 * size, leaf.shift
        number: Term = value
        if block is not None:
            number = Part(block.base, block.offset + leaf.offset, size)
        elif isinstance(fetch.store, Text | Array | Symbol):
            return None
        elif isinstance(value, Deref):
            number = Part(value.base, value.offset, size)
            shift = fetch.store.offset if isinstance(fetch.store, Bits) else 0
        if shift:
            number = Calculated("rsh", number, shift)
        return number if bits == 64 else Calculated("and", number, (1 << bits) - 1)

    def _has_read_checks(self) -> bool:
        apart = self._found.site.architecture.addresses_apart
        return apart and self._kernel.version >= self._kernel.store("symbol_text").first

    def _require_read_checks(self) -> None:
        # An array that is read by `+u` no kernel takes (traceprobe_parse_probe_arg_body): it is
        # read by an address that is no address of the kernel, whatever the sign before it.
        if self._has_read_checks():
            return
        kernel, rule = self._kernel, self._kernel.store("symbol_text")
        reason = "this machine's kernel reads one number at a time of the program's memory"
        notes: tuple[str, ...] = ()
        if kernel.version < rule.first:
            reason = (
                f"Linux {kernel.name} does not report whether it could read memory of the program"
            )
            notes = (f"Linux {dotted(rule.first)} was the first (`symstr`)",)
        raise reject(
            "FC0506",
            reason,
            self.span,
            "memory of the program",
            notes=notes,
            help="fetch a string up to its NUL: `:ustring`",
        )

    def _read_checks(self, start: Deref, starts: Iterable[int]) -> tuple[tuple[str, int], ...]:
        # As the name of a symbol eight bytes are a string, and the kernel says whether it could
        # be read.
        found = []
        for low in dict.fromkeys(starts):
            moved = moved_by(start, low)
            found.append((self.add(Fetch(moved, Symbol(text=True))), moved.offset))
        return tuple(found)

    def guards(self, value: Value, number: int = 0, maybe_null: bool = False) -> tuple[Guard, ...]:
        """The pointers that a load of ``value`` goes through, outermost first.

        ``number``: it is fetched by itself, as a number of so many bytes. ``maybe_null``: the last
        pointer may be NULL, which is not what could not be read.
        """
        loads: list[Deref] = []
        while isinstance(value, Deref):
            loads.append(value)
            value = value.base
        guards = []
        kernel = self._found.site.program.in_kernel
        for position, load in enumerate(reversed(loads), 1):
            pointer = load.base
            if isinstance(pointer, Absolute) and not kernel and self._has_immediates():
                # A constant that the user wrote: there may be no memory.
                pointer = Immediate(pointer.address)
            elif isinstance(pointer, Immediate) and not kernel:
                pass  # a variable that is a constant: NULL, where the code does not set it yet
            elif is_address(pointer) or isinstance(
                pointer, Immediate | StackPointer | Comm | Cursor | ElementAddress | ThreadPointer
            ):
                continue
            if isinstance(pointer, Register) and pointer.name == self._stack_register():
                continue
            if isinstance(pointer, KernelValue) and pointer.rule in ("current", "per_cpu"):
                continue  # there is such memory whenever the kernel runs
            field, start = self._pointer(pointer)
            size = number if position == len(loads) else 8 * (position == len(loads) - maybe_null)
            if size >= _LEAST_PROBED and not kernel and not self._assumed:
                ends = self._loaded.setdefault(load.base, (field, start, []))[2]
                ends.append(load.offset + size - 1)
            checks: tuple[tuple[str, int], ...] = ()
            if kernel and load.user and position == len(loads):
                found = [one for one in self._blocks if one.user and one.base == pointer]
                checks = next((one.read_checks for one in found if one.has(load.offset, 1)), ())
                if number and not checks and self._has_read_checks():
                    checks = self._read_checks(Deref(pointer, load.offset), (0, number - 8))
            of_kernel = kernel and not load.user
            guards.append(Guard(field, start, load.offset, kernel=of_kernel, read_checks=checks))
        return tuple(guards)

    def _pointer(self, pointer: Value) -> tuple[str, int]:
        assert isinstance(
            pointer, Deref | Register | StackEntry | ReturnValue | KernelValue | Immediate
        )
        word = Fetch(pointer, Word())
        if (found := self.spot(word)) is not None:
            return found[:2]
        for store in (Scalar("x", 64), Scalar("u", 64)):
            same = self._names.get(Fetch(pointer, store))
            if same is not None:
                return same, 0
        return self.add(word), 0

    def _has_immediates(self) -> bool:
        return self._kernel.version >= self._kernel.base("immediate").first

    def _stack_register(self) -> str | None:
        machine = self._found.site.architecture
        return machine.registers.get(machine.stack_pointer)

    def _name(self) -> str:
        if self.stem is not None:
            name, self.stem = self.stem, None
            return name
        while True:
            self._number += 1
            name = f"fetchc_{self._number}"
            if name not in self._taken:
                return name


class ElementFields(Fields):
    """What is fetched of an element of a container, which a walk has found.

    Its values begin at cursors. No definition has them, so the rules of fetch-args do not apply.
    What is elsewhere, and so the same for all elements, is in further cursors of the walk.
    """

    def __init__(
        self, found: ProbePoint, kernel: Kernel, span: Span | None, most: int, walk: Walk
    ) -> None:
        super().__init__(found, kernel, (), most)
        self.span = span
        self._walk = walk
        self._text_bytes = 0
        self._words: list[Value] = []  # of the further cursors

    def walk_of_these(self) -> Walk:
        """The walk, with all that was collected."""
        walk = self._walk
        cursors = [self._cursor(word) for word in self._words]
        start, following = (*walk.start, *self._words), (*walk.next, *cursors)
        return walk.replaced(start=start, next=following, fields=self.listed)

    def of_each(
        self, value: Deref, count: Callable[[], Shape | int | None], each: int
    ) -> ElementFields | None:
        """None: an element of a walk has no walks."""
        return None

    def copied(
        self,
        value: Deref,
        count: Callable[[], Shape | int | None],
        each: int,
        least: int = 0,
        apart: int = 1,
    ) -> tuple[str, int] | None:
        """As of all fields; None of what is elsewhere, too."""
        return super().copied(value, count, each, least, apart) if has_cursor(value) else None

    def text(self, fetch: Fetch, limit: int | None = None) -> str:
        """As of all fields."""
        return super().text(fetch, limit) if has_cursor(fetch.value) else self.add(fetch)

    def _cursor(self, word: Value) -> Cursor:
        if word not in self._words:
            self._words.append(word)
        return Cursor(len(self._walk.places) + len(self._walk.start) + self._words.index(word))

    def _new(self, fetch: Fetch) -> str:
        value = fetch.value
        if has_cursor(value):
            return self._named(fetch.replaced(value=self._within(value)))
        if isinstance(value, Deref):
            value = Deref(self._cursor(value.base), value.offset, value.user)
        else:
            value = self._cursor(value)
        return self._named(fetch.replaced(value=value))

    def _contents(self, contents: Contents) -> str:
        start, size = self._within(contents.start), contents.size
        assert isinstance(start, Deref)
        size = None if size is None else mapped(size, self._of_entry)
        return super()._contents(contents.replaced(start=start, size=size))

    def _within(self, value: Value) -> Value:
        # What is of an element, with a cursor for what is not.
        match value:
            case Deref(base=base):
                return value.replaced(base=self._within(base))
            case ElementAddress(address=address):
                return ElementAddress(mapped(address, self._of_entry))
            case _:
                return value

    def _of_entry(self, value: Value) -> Value:
        return self._within(value) if has_cursor(value) else self._cursor(value)


class NotCopied(Exception):
    """A value is not in the bytes of the element alone."""


class CopiedElement(Fields):
    """What is read of the bytes of an element, at a cursor; raises NotCopied for all else."""

    def __init__(
        self, found: ProbePoint, kernel: Kernel, span: Span | None, size: int, user: bool
    ) -> None:
        super().__init__(found, kernel, ())
        self.span = span
        self._blocks.append(Block(Cursor(0), 0, size, ELEMENT, user))

    def _new(self, fetch: Fetch) -> str:
        raise NotCopied
