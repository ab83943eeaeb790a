"""The fields of one event: each fetch once, objects in one piece, and the pointers to them."""

from __future__ import annotations

from contextlib import contextmanager

from fetchc.check.members import part
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.driver.compile import accepted, for_kernel
from fetchc.ir.fetch import (
    ELEMENTS,
    Absolute,
    Array,
    Bits,
    Comm,
    Decode,
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
    Symbol,
    Text,
    Word,
    fixed_bytes,
    is_address,
)
from fetchc.lower import strings
from fetchc.lower.bit_fields import smallest_container
from fetchc.lower.fetches import Lowered, Memory, load_word, plain, where
from fetchc.lower.lowering import named_members, scalar
from fetchc.program.types import ArrayType, InterfaceType, Member, SliceType, StringType, StructType
from fetchc.record import Record
from fetchc.source import Span
from fetchc.target.kernel_versions import dotted
from fetchc.tracer.events import FaultProbe
from fetchc.tracer.value_shapes import Guard, Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Found
    from fetchc.check.typed_tree import Typed
    from fetchc.ir.fetch import Value
    from fetchc.lower.fetches import Plain
    from fetchc.quantities import TypeId
    from fetchc.syntax.tree import Format
    from fetchc.target.kernel_versions import Kernel
    from fetchc.tracer.value_shapes import Shape

__all__ = [
    "FULL",
    "Block",
    "Fields",
    "LeafShapes",
    "Limits",
    "base_and_offset",
    "chunks",
    "extents",
    "merged_ranges",
    "moved_by",
    "plain_number",
]

# ------------------------------------------------------------------------------
# How much of an object is fetched, and which of its bytes.

_GAP = 16  # bytes that are cheaper to fetch along than an argument of their own


class Limits(Record):
    """How much of a value is fetched.

    ``text`` bytes of a counted text, ``row`` bytes of an array or slice of numbers, ``items``
    other elements, ``depth`` structures inside each other.
    """

    text: int
    row: int
    items: int
    depth: int

    def of_array(self) -> Limits:
        """Those of an array that was asked for by itself: all of it, if it can be."""
        return Limits(self.text, 4 * self.row, 16 * self.items, self.depth)

    def inner(self) -> Limits:
        """Those of an element of a list."""
        return Limits(max(self.text // 4, 16), max(self.row // 8, 16), 2, self.depth)

    def deeper(self) -> Limits:
        """Those of a structure in a structure."""
        return Limits(self.text, self.row, self.items, self.depth - 1)


FULL = Limits(text=256, row=512, items=4, depth=3)


def extents(checker: Checker, type_id: TypeId, limits: Limits) -> list[tuple[int, int]]:
    """First byte, and the one after the last, of each range to fetch of a value of the type.

    What is not fetched as bytes (the string of a ``char *``) is left out; so is what is
    deeper than ``limits`` go.
    """
    made = checker.resolved(type_id)
    match made:
        case StringType(members=members) | SliceType(members=members):
            word = checker.program.word_bytes
            return [(one.offset, one.offset + word) for one in members[:2]]
        case InterfaceType():
            return [(0, 2 * checker.program.word_bytes)]
        case ArrayType(element=element, count=count) if count:
            return _array(checker, element, count, limits)
        case StructType(value=Member() as value):
            return [
                (value.offset + low, value.offset + high)
                for low, high in extents(checker, value.type, limits)
            ]
        case StructType() if limits.depth > 0:
            found = []
            for variant in made.variants:
                found += _member(checker, made, (), variant.member, limits)
            for path, member in named_members(checker, made, ()):
                found += _member(checker, made, path, member, limits.deeper())
            return found
        case _:
            simple = plain(checker, type_id)
            return [] if simple is None else [(0, simple.size)]


def _array(checker: Checker, element: TypeId, count: int, limits: Limits) -> list[tuple[int, int]]:
    made = checker.resolved(element)
    each = checker.size(element)
    if not each:
        return []
    most = max(1, limits.row // each)
    if strings.is_text_pointer(checker, made):
        return []
    if plain(checker, element) is not None:
        return [(0, each * min(count, most))]
    rows = isinstance(made, ArrayType)
    inner = extents(checker, element, limits if rows else limits.inner())
    shown = range(min(count, most if rows else limits.items))
    return [(low + each * i, high + each * i) for i in shown for low, high in inner]


def _member(
    checker: Checker,
    holder: StructType,
    path: tuple[Member, ...],
    member: Member,
    limits: Limits,
) -> list[tuple[int, int]]:
    start: int = sum([step.offset for step in path])
    if member.bits is not None:
        size = holder.size if not path else None
        try:
            byte, bits = smallest_container(member.bits.offset, member.bits.width, size, Span(0, 0))
        except CompileError:
            return []  # in nine bytes: refused where it is fetched
        return [(start + byte, start + byte + bits // 8)]
    start += member.offset
    return [(start + low, start + high) for low, high in extents(checker, member.type, limits)]


def merged_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order; those that are close to each other are merged."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + _GAP:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


# ------------------------------------------------------------------------------
# The leaves of every shape: numbers, strings, the bytes they are in, the pointers to them.


def plain_number(leaf: Leaf) -> Leaf:
    """The leaf as a plain number, without the name of an enumerator."""
    plain = Decode("integer", leaf.decode.bits, leaf.decode.signed)
    return Leaf(leaf.field, plain, leaf.offset, leaf.size, leaf.shift, leaf.guards)


class LeafShapes:
    """The parts of one argument that are fetched each by itself."""

    def __init__(self, checker: Checker, fields: Fields) -> None:
        self._checker = checker
        self._fields = fields

    def shape(self, node: Typed, format: Format | None, limits: Limits) -> Shape:
        """The shape of ``node``; raises CompileError where it cannot be fetched."""
        raise NotImplementedError

    def _plain(self, type_id: TypeId) -> Plain | None:
        """How a reader shows a scalar of a type; None where the kernel has no such type."""
        return plain(self._checker, type_id)

    def _word(self, node: Typed) -> Lowered:
        simple = plain(self._checker, node.type)
        assert simple is not None
        return scalar(self._checker, node, simple)

    def _leaf(self, lowered: Lowered, empty: bool = False) -> Leaf:
        fetch = lowered.fetch
        spot = self._fields.spot(fetch)
        field, offset, size = spot or (self._fields.add(fetch), 0, 0)
        shift = fetch.store.offset if spot and isinstance(fetch.store, Bits) else 0
        dynamic = isinstance(fetch.store, Text | Array | Symbol)
        size_alone = 0 if dynamic else fixed_bytes(fetch.store)
        text = lowered.decode.kind == "text"
        guards = self._fields.guards(fetch.value, size_alone, empty or text)
        # A NULL string pointer is no string; a string in a structure at NULL is a fault.
        no_text = text and bool(guards) and not guards[-1].moved
        if (empty and guards) or no_text:
            last = guards[-1]
            emptied = Guard(
                last.field, last.offset, last.moved, True, last.kernel, last.read_checks
            )
            guards = (*guards[:-1], emptied)
        return Leaf(field, lowered.decode, offset, size, shift, guards)

    def _numbers(self, node: Typed, made: StructType) -> tuple[tuple[str, Leaf], ...]:
        # Those of structures among the members too.
        found: list[tuple[str, Leaf]] = []
        for member in made.members:
            inner = part(node, member, node.span)
            kind = self._checker.resolved(member.type)
            if isinstance(kind, StructType):
                found += self._numbers(inner, kind)
            else:
                found.append((member.name, self._leaf(self._word(inner))))
        return tuple(found)

    def _fetch_bytes(self, node: Typed, limits: Limits, count: int = 1) -> None:
        # Fetches an object in memory in as few pieces as possible; its members are found in them.
        found = where(self._checker.site, node)
        if not isinstance(found, Memory):
            return
        stride = self._checker.size(node.type) or 0
        wanted = extents(self._checker, node.type, limits)
        starts = [stride * index for index in range(count)]
        for low, high in merged_ranges(
            [(at + low, at + high) for at in starts for low, high in wanted]
        ):
            place = Memory(found.base, found.offset + low, found.user)
            start = load_word(self._checker.site, place, node.span)
            assert isinstance(start, Deref)
            if high - low > 8:
                self._fields.block(start, high - low)

    def _guards_of(self, node: Typed) -> tuple[Guard, ...]:
        found = where(self._checker.site, node)
        if not isinstance(found, Memory):
            return ()
        return self._fields.guards(load_word(self._checker.site, found, node.span))


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


_LEAST_PROBED = 2  # bytes of the smallest number that is probing_faults


class Fields:
    """Collects what one probed address fetches, and gives each fetch its field's name.

    The first field made for an argument bears its name (:attr:`stem`); others are called
    ``fetchc_N``, or as ``taken`` leaves free. ``span`` is the argument's, for diagnostics.
    """

    def __init__(self, found: Found, kernel: Kernel, taken: Collection[str]) -> None:
        self.stem: str | None = None
        self.span: Span | None = None
        self._found = found
        self._kernel = kernel
        self._taken = taken
        self._listed: list[tuple[str, Fetch]] = []
        self._made: dict[Fetch, str] = {}  # the first field of each fetch that is no chunk
        self._blocks: list[Block] = []
        self._number = 0
        # Of each pointer that a number was loaded by: its field and offset, and how far behind it
        # the numbers' last bytes are.
        self._loaded: dict[Value, tuple[str, int, list[int]]] = {}
        self._assumed = 0

    @contextmanager
    def assuming(self) -> Iterator[None]:
        """For values of which one of several is there, as nobody asked: nothing is probing_faults.

        Of the others the bytes are something else, and texts of them may take the event's room.
        """
        self._assumed += 1
        try:
            yield
        finally:
            self._assumed -= 1

    @property
    def listed(self) -> tuple[tuple[str, Fetch], ...]:
        """Every field with its fetch, in the order of the record."""
        return tuple(self._listed)

    def fault_probes(self) -> tuple[FaultProbe, ...]:
        """Fetch what tells whether the numbers behind pointers could be read.

        Of each pointer the first and the last number behind it, which may be of two pages; of each
        the highest byte, which mostly is 0. Single bytes have none: they mostly begin a text or a
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
            if self._made.get(fetch) == name:
                del self._made[fetch]
        del self._listed[listed:]
        del self._blocks[blocks:]

    def add(self, fetch: Fetch) -> str:
        """The field of ``fetch``. Raises CompileError where the kernel would not take it."""
        fitting = for_kernel(fetch, self._kernel)
        made = self._made.get(fitting)
        if made is None:
            made = self._made[fitting] = self._new(fitting)
        return made

    def _new(self, fetch: Fetch) -> str:
        assert self.span is not None
        accepted(self._found, fetch, self._kernel, self.span)
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

    def _has_read_checks(self) -> bool:
        apart = self._found.site.architecture.addresses_apart
        return apart and self._kernel.version >= self._kernel.store("symbol_text").first

    def _require_read_checks(self) -> None:
        # An array that is read by `+u` no kernel takes (traceprobe_parse_probe_arg_body): it is
        # read by an address that is no address of the kernel, whatever the sign in front of it.
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
        # As the name of a symbol eight bytes are a text, of which the kernel says whether it could
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
                # A constant that the user wrote: nothing says that there is memory.
                pointer = Immediate(pointer.address)
            elif is_address(pointer) or isinstance(pointer, Immediate | StackPointer | Comm):
                continue
            if isinstance(pointer, Register) and pointer.name == self._stack_register():
                continue
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
            same = self._made.get(Fetch(pointer, store))
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
