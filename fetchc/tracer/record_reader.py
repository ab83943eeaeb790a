"""Reads the records of a plan by one generated function.

The readers of :mod:`fetchc.tracer.decode` define what a record means: each value has a closure that
checks the pointers on its way. In most records nothing is out of the ordinary: pointers are
addresses, the kernel could read each string, and a number 0 comes from a page of which other bytes
were read. For these records one ``struct`` layout takes out all fields, and the checks of all
values are a few comparisons. The generated function returns None for any other record, whose values
then come from :mod:`fetchc.tracer.decode`. A test compares both on records of any bytes.

Where all values are numbers, a second function reads the records of a page together, when they have
one length, one thread and strings of one length: a column for each field, the checks by the least
and the greatest of a column, and one formatting for all lines.
"""

from __future__ import annotations

import struct

from fetchc.record import Record
from fetchc.tracer.display_values import CutString
from fetchc.tracer.events import COMM, PLAN_INDEX
from fetchc.tracer.guards import HIGHEST, LOWEST, OF_KERNEL
from fetchc.tracer.number_values import CODES, meaning
from fetchc.tracer.string_values import WIDTHS, decoded
from fetchc.tracer.value_shapes import Leaf, OfEventShape, StringShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from fetchc.tracer.events import BpfRecord, EventValue, Format, Plan, Value
    from fetchc.tracer.guards import There
    from fetchc.tracer.leaf_values import LeafMakers
    from fetchc.tracer.ring_buffer import Records
    from fetchc.tracer.structure_values import Make
    from fetchc.tracer.value_shapes import Guard

    ReadValues = Callable[[bytes, int, int], dict[str, Value] | None]
    ReadLine = Callable[[int, int, bytes, int, int], str | None]
    ReadLines = Callable[[Records], str | None]
    Columns = Sequence[Sequence[object]]
    Rows = Callable[[bytes], Iterator[tuple[Any, ...]]]
    Task = Callable[[int | None, int, bytes, int], tuple[object, int]]

__all__ = ["LineForm", "Memo", "line_reader", "lines_reader", "value_reader"]

_ADDRESS = 8
"""Offset of the probed address in a record: kernel/trace/trace_probe.h."""
_THREAD = 4
"""And of the thread's number."""
_ID = struct.Struct("=H").unpack_from
_WORD = struct.Struct("=I").unpack_from
_NUMBER = struct.Struct("=i").unpack_from
_PAGE = 12  # bits of an address inside of the smallest page
_MEMO = 4096  # results that are remembered
_LONGEST = 256  # bytes of a string that is remembered
_MASK = (1 << 64) - 1


class LineForm(Record):
    """How a form of output makes the line of a record.

    ``write`` takes what ``head`` names, then the values: ``seconds`` (of the trace clock),
    ``elapsed`` (seconds since ``origin[0]``), ``task``, ``cpu``, ``address``. ``string`` gives what
    it takes for a whole string, ``value`` for any value: None where the line says more about the
    value than the value itself (that it is cut, for example).

    ``write_all`` makes the lines of records of one task and one processor: it takes these two, then
    columns: ``elapsed``, ``seconds``, ``address``, as far as ``head`` names them, and one for each
    value. None where the columns of the lines are not wide enough yet.
    """

    head: tuple[str, ...]
    string: Callable[[str], object]
    value: Callable[[Value], object]
    write: Callable[[tuple[Any, ...]], str]
    origin: list[float]
    write_all: Callable[[object, int, Columns], str | None]


class Memo(dict["Any", "Any"]):
    """Results of a function by its argument; few, and of short byte strings only."""

    def __init__(self, make: Callable[[Any], object]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> object:
        made = self._make(key)
        if type(key) is not bytes or len(key) <= _LONGEST:
            if len(self) >= _MEMO:
                self.clear()
            self[key] = made
        return made


def value_reader(plan: Plan, format: Format, makers: LeafMakers) -> ReadValues:
    """A function from a page and the bounds of a record in it to the record's values by label.

    It returns None for a record that is not ordinary. ``makers`` are the readers of single values.
    """
    function = _Function(format, makers)
    shown = [function.value(one, None) for one in plan.values]
    listed = zip(plan.values, shown, strict=True)
    pairs = ", ".join([f"{one.label!r}: {it}" for one, it in listed])
    read: ReadValues = function.compiled("page, at, end", f"{{{pairs}}}")
    return read


def line_reader(
    wanted: Sequence[EventValue],
    format: Format,
    makers: LeafMakers,
    form: LineForm,
    task: Task,
) -> ReadLine:
    """A function from a record to its line, which shows the values ``wanted``.

    The record is given as its time in nanoseconds, its processor, the page, and its bounds in the
    page. ``task(process, thread, comm, nanoseconds)`` is what the line says of the task, and until
    which time; the process is None where the record does not have it. Where the task is None,
    nobody wants the record, and its line is empty. The line is None for a record that is not
    ordinary, and as long as ``form.origin`` is empty where its head needs it.
    """
    function = _Function(format, makers)
    shown = function.head(form, task) + [function.value(one, form) for one in wanted]
    read: ReadLine = function.compiled(
        "now, cpu, page, at, end", f"{function.object(form.write)}(({', '.join(shown)},))"
    )
    return read


def lines_reader(
    wanted: Sequence[EventValue],
    format: Format,
    makers: LeafMakers,
    form: LineForm,
    task: Task,
) -> ReadLines | None:
    """A function from records of one length to their lines, as :func:`line_reader` makes them.

    They are joined by line feeds: "" where nobody wants them, None where :func:`line_reader` has to
    read each. None instead of a function where a value is no number.
    """
    function = _Function(format, makers)
    for one in wanted:
        function.value(one, form)
    columns = function.columns
    if len(columns) != len(wanted):
        return None
    return _ReadLines(function, columns, form, task).read


class _ReadLines:
    """Reads the records of a page together."""

    def __init__(
        self,
        function: _Function,
        columns: Sequence[tuple[str, Callable[[int], object] | None]],
        form: LineForm,
        task: Task,
    ) -> None:
        fields = {field.name: field for field in function.format.fields}
        self._format, self._form, self._task = function.format, form, task
        self._comm, self._least = fields[COMM].offset, function.format.size
        # What is the same in all records: event and thread, whose plan it is, places of strings,
        # that an eBPF program read all.
        self._process = None if function.format.bpf is None else function.format.bpf.process
        whole = function.all_read()
        self._whole = [(at, struct.pack("=" + letter, word)) for at, letter, word in whole]
        constant = [(0, 2), (_THREAD, 4)] + [(at, len(word)) for at, word in self._whole]
        constant += [] if self._process is None else [(self._process, 4)]
        constant += [(one.offset, one.size * (one.count or 1)) for one in fields.values()
                     if one.text or one.name == PLAN_INDEX]  # fmt: skip
        self._constant = tuple(at for start, size in constant for at in range(start, start + size))
        placed = "address" in form.head and self._format.has_address
        address = [function.word(_ADDRESS, "Q")] if placed else []
        words = function.unpacked()
        self._layouts, number = [], dict[str, tuple[int, int]]()
        for which, (layout, names) in enumerate(words):
            self._layouts.append(layout)
            number |= {name: (which, place) for place, name in enumerate(names)}
        self._address = [number[name] for name in address]
        self._columns = [(number[name], then) for name, then in columns]
        self._bounds = [(number[name], each) for name, each in function.ranges()]
        self._loaded = [
            (number[pointer], [(number[word], moved, size) for word, moved, size in words])
            for pointer, words in function.loaded.items()
        ]
        self._there = function.there
        self._unpack: dict[tuple[int, int], list[Rows]] = {}
        self._known: tuple[object, object, int] = (None, None, 0)  # task, what is shown, until when

    def read(self, records: Records) -> str | None:
        page, first, step, size, times = (
            records.page, records.first, records.step, records.size, records.times
        )  # fmt: skip
        if size < self._least or _ID(page, first)[0] != self._format.id:
            return None
        count = len(times)
        last = first + count * step
        if any(page[first + at : first + at + len(word)] != word for at, word in self._whole):
            return None
        comm = _WORD(page, first + self._comm)[0]
        low, length = comm & 0xFFFF, comm >> 16
        if low + length > size:
            return None
        for at in (*self._constant, *range(low, low + length)):
            column = page[first + at : last : step]
            if column.count(column[0]) != count:
                return None
        task = (
            None if self._process is None else _WORD(page, first + self._process)[0],
            _NUMBER(page, first + _THREAD)[0],
            page[first + low : first + low + length],
        )
        known = self._known
        if known[0] != task or times[-1] >= known[2]:
            shown, until = self._task(*task, times[0])
            known = self._known = (task, shown, until)
            if times[-1] >= until:
                return None
        if known[1] is None:
            return ""
        form = self._form
        if "elapsed" in form.head and not form.origin:
            return None
        unpack = self._unpack.get((step, size)) or self._prepared(step, size)
        data = page[first - step + size : last - step + size]
        words = [list(zip(*each(data), strict=True)) for each in unpack]
        for (which, place), ranges in self._bounds:
            least, most = min(words[which][place]), max(words[which][place])
            if not any(low <= least and most < high for low, high in ranges):
                return None
        if not self._all_loaded(words, page[first : first + size]):
            return None
        shown_columns: list[Sequence[object]] = []
        if "elapsed" in form.head:
            origin = form.origin[0]
            shown_columns.append([now / 1e9 - origin for now in times])
        if "seconds" in form.head:
            shown_columns.append([now / 1e9 for now in times])
        if "address" in form.head:
            places = [words[which][place] for which, place in self._address]
            shown_columns += places or [(0,) * count]
        for (which, place), then in self._columns:
            numbers = words[which][place]
            column_of = numbers if then is None else [then(number) for number in numbers]
            if then is not None and None in column_of:
                return None
            shown_columns.append(column_of)
        return form.write_all(known[1], records.cpu, shown_columns)

    def _prepared(self, step: int, size: int) -> list[Rows]:
        made: list[Rows] = []
        for layout in self._layouts:
            room = size - struct.calcsize("=" + layout)
            made.append(struct.Struct(f"={step - size}x{layout}{room}x").iter_unpack)
        self._unpack[step, size] = made
        return made

    def _all_loaded(self, words: list[list[tuple[int, ...]]], first: bytes) -> bool:
        # As `_Function._zeros` asks of each record; of all together where pointers do not change.
        if self._there is None:
            return True
        for (which, place), numbers in self._loaded:
            columns = [words[which][place] for (which, place), _, _ in numbers]
            zero = [0 in column for column in columns]
            if not any(zero):
                continue
            pointers = words[which][place]
            pointer = pointers[0]
            if pointers.count(pointer) != len(pointers):
                return False
            start = min(moved for _, moved, _ in numbers)
            end = max(moved + size - 1 for _, moved, size in numbers)
            together = pointer + start >> _PAGE == pointer + end >> _PAGE
            if together and not (all(zero) and not all(map(any, zip(*columns, strict=True)))):
                continue
            for column, (_, moved, _) in zip(columns, numbers, strict=True):
                if 0 in column and self._there(first, pointer + moved) is False:
                    return False
        return True


class _Function:
    """The source of one function, and the objects that it names.

    ``Leaf`` numbers, strings up to a NUL and strings with a length are read by its own code, all
    other values by their makers.
    """

    def __init__(self, format: Format, makers: LeafMakers) -> None:
        self._makers = makers
        self._fields = {field.name: field for field in format.fields}
        self.format = format
        self.columns: list[tuple[str, Callable[[int], object] | None]] = []
        """Of each number: its word, and what is shown of it (None: the word)."""
        self._kernel: list[tuple[str, Guard]] = []
        self._words: dict[tuple[int, str], str] = {}  # what is unpacked: offset and letter
        self._objects: dict[str, object] = {"decoded": decoded, "CutString": CutString}
        self._checks: list[str] = []  # conditions of an ordinary record
        self._code: list[str] = []
        self._bounds: dict[str, tuple[int, int]] = {}  # of pointers into the program
        self.loaded: dict[str, list[tuple[str, int, int]]] = {}  # numbers by their last pointer
        self._made: list[str] = []

    def all_read(self) -> list[tuple[int, str, int]]:
        """Words of a record of an eBPF program, and what they are where it read all it was to read.

        Then nothing is in doubt. Each is the offset, the letter for ``struct``, the number.
        """
        record = self.format.bpf
        if record is None:
            return []
        faults = range(record.faults, record.faults + record.fault_bytes, 8)
        blocks = [(word, "I", high << 16 | low) for low, high, word in record.blocks]
        return [*[(at, "Q", 0) for at in faults], *blocks]

    def compiled(self, parameters: str, result: str) -> Any:
        """The function, which returns the expression ``result``."""
        self._checks += [
            f"{self.word(at, letter)} == {word}" for at, letter, word in self.all_read()
        ]
        lines = [f"def read({parameters}):", f" if end - at < {self.format.size}: return None"]
        lines += self._unpacking()
        checks = [f"{low} <= {it} < {high}" for it, (low, high) in self._bounds.items()]
        if checks + self._checks:
            lines.append(f" if not ({' and '.join(checks + self._checks)}): return None")
        lines += self._zeros() + self._code
        if self._made:
            lines += [" faults = []", " data = page[at:end]", *self._made]
            lines.append(" if faults: return None")
        lines.append(f" return {result}")
        exec("\n".join(lines), self._objects)
        return self._objects["read"]

    def object(self, value: object) -> str:
        """The name of an object in the source."""
        name = f"o{len(self._objects)}"
        self._objects[name] = value
        return name

    def word(self, offset: int, letter: str) -> str:
        return self._words.setdefault((offset, letter), f"w{len(self._words)}")

    def _unpacking(self) -> list[str]:
        # One layout for all words that do not overlap; the few others have one each.
        kind = self.word(0, "H")
        self._checks.insert(0, f"{kind} == {self.format.id}")
        lines = []
        for layout, names in self.unpacked():
            unpack = self.object(struct.Struct("=" + layout).unpack_from)
            lines.append(f" {', '.join(names)}, = {unpack}(page, at)")
        return lines

    def unpacked(self) -> list[tuple[str, list[str]]]:
        """Layouts that take out all words, and the names of the words of each."""
        layout, position, names = "", 0, list[str]()
        apart = []
        for (offset, letter), name in sorted(self._words.items()):
            if offset < position:
                apart.append((f"{offset}x{letter}", [name]))
                continue
            layout += f"{offset - position}x{letter}"
            position = offset + struct.calcsize("=" + letter)
            names.append(name)
        return [(layout, names), *apart] if names else []

    def ranges(self) -> list[tuple[str, list[tuple[int, int]]]]:
        """Pointers, and between which bounds each is an address."""
        return [(it, [bounds]) for it, bounds in self._bounds.items()] + [
            (it, _ranges(guard)) for it, guard in self._kernel
        ]

    @property
    def there(self) -> There | None:
        """Whether a program had memory at an address, if something can tell."""
        return self._makers.there

    # -- what comes before the values

    def head(self, form: LineForm, task: Task) -> list[str]:
        """The expressions of the form's head, after code that finds out about the task."""
        written = {"cpu": "cpu", "address": "0", "seconds": "now / 1e9", "task": "shown"}
        if self.format.has_address:
            written["address"] = self.word(_ADDRESS, "Q")
        if "elapsed" in form.head:
            origin = self.object(form.origin)
            self._checks.append(origin)
            written["elapsed"] = f"now / 1e9 - {origin}[0]"
        comm, thread = self.word(self._fields[COMM].offset, "I"), self.word(4, "i")
        cache, process = self.object({}), "None"
        if self.format.bpf is not None:
            process = self.word(self.format.bpf.process, "I")
        self._code += [
            f" low = at + ({comm} & 65535); high = low + ({comm} >> 16)",
            " if high > end: return None",
            f" key = {process}, {thread}, page[low:high]",
            f" known = {cache}.get(key)",
            " if known is None or now >= known[1]:",
            f"  if len({cache}) > {_MEMO}: {cache}.clear()",
            f"  known = {cache}[key] = {self.object(task)}(*key, now)",
            " shown = known[0]",
            " if shown is None: return ''",
        ]
        return [written[name] for name in form.head]

    # -- values

    def value(self, wanted: EventValue, form: LineForm | None) -> str:
        """The expression of a value, or of what the form shows of it."""
        match wanted.shape:
            case Leaf() as leaf if leaf.decode.kind == "text" and self._is_single(leaf):
                return self._string(leaf, form)
            case Leaf() as leaf if leaf.decode.kind not in ("text", "symbol") and _plain(
                leaf.guards
            ):
                return self._number(leaf, form)
            case OfEventShape():
                # :meth:`.decode.Decoder.event` has it, and a line of such values is made of events.
                if form is not None:
                    self._made.append(" return None")
                return "None"
            case StringShape(length=Leaf() as length) as text if self._is_counted(text, length):
                return self._counted(text, length, form)
            case shape:
                make = self._makers.maker(shape, wanted.label, frozenset())
                return self._by_maker(make, form)

    def _by_maker(self, make: Make, form: LineForm | None) -> str:
        name = f"v{len(self._made)}"
        self._made.append(f" {name} = {self.object(make)}(data, faults)")
        if form is not None:
            self._made += self._written(name, form)
        return name

    def _written(self, name: str, form: LineForm) -> list[str]:
        return [
            f" {name} = {self.object(form.value)}({name})",
            f" if {name} is None: return None",
        ]

    def _number(self, leaf: Leaf, form: LineForm | None) -> str:
        size = leaf.size or self._fields[leaf.field].size
        offset = self._makers.offset(leaf.field, leaf.offset)
        letter, then = meaning(leaf.decode, size, leaf.shift, self._makers.pointer)
        word = self.word(offset, letter)
        self._guard(leaf.guards, word, size)
        if then is None:
            self.columns.append((word, None))
            return word
        value = f"{self.object(then)}({word})"
        if form is None:
            return value
        shown: Callable[[int], object] = lambda raw: form.value(then(raw))  # noqa: E731
        if leaf.decode.kind in ("bool", "char", "enum"):
            memo = Memo(shown)
            shown = memo.__getitem__
            value = f"{self.object(memo)}[{word}]"
        self.columns.append((word, shown))
        name = f"n{len(self._code)}"
        self._code.append(f" {name} = {value}")
        if leaf.decode.kind in ("bool", "char", "enum"):
            self._code.append(f" if {name} is None: return None")
        else:
            self._code += self._written(name, form)
        return name

    def _guard(self, guards: Sequence[Guard], word: str, size: int) -> None:
        # That a number was loaded: its pointers are addresses, and it is not 0 by a fault.
        if self.format.bpf is not None:
            return
        for guard in guards:
            self._bound(guard)
        if guards and not guards[-1].kernel:
            last = guards[-1]
            pointer = self.word(self._makers.offset(last.field, last.offset), "Q")
            self.loaded.setdefault(pointer, []).append((word, last.moved, size))

    def _bound(self, guard: Guard) -> None:
        pointer = self.word(self._makers.offset(guard.field, guard.offset), "Q")
        if guard.kernel:
            self._checks.append(_in_range(pointer, guard))
            self._kernel.append((pointer, guard))
            return
        low, high = self._bounds.get(pointer, (LOWEST, HIGHEST))
        self._bounds[pointer] = (
            max(low, LOWEST - guard.moved), min(high, HIGHEST - guard.moved)
        )  # fmt: skip

    def _zeros(self) -> list[str]:
        # A number 0 may be a fault, but not where another one of its page was read.
        if self._makers.there is None:
            return []
        there = self.object(self._makers.there)
        lines = []
        for pointer, numbers in self.loaded.items():
            words = list(dict.fromkeys([word for word, _, _ in numbers]))
            lines.append(f" if not ({' and '.join(words)}):")
            indent = "  "
            if len(words) > 1:
                first = min(moved for _, moved, _ in numbers)
                last = max(moved + size - 1 for _, moved, size in numbers)
                same = f"{pointer} + {first} >> {_PAGE} == {pointer} + {last} >> {_PAGE}"
                lines.append(f"  if not ({same} and ({' or '.join(words)})):")
                indent = "   "
            for word, moved, _ in dict.fromkeys(numbers):
                asked = f"{there}(page[at:end], {pointer} + {moved}) is False"
                lines.append(f"{indent}if not {word} and {asked}: return None")
        return lines

    def _is_single(self, leaf: Leaf) -> bool:
        following = leaf.field in self._fields and leaf.field != COMM
        return leaf.decode.count is None and following and _plain(leaf.guards)

    def _string(self, leaf: Leaf, form: LineForm | None) -> str:
        # A string was read if the next one begins where it ends (string_values.Texts).
        if self.format.bpf is not None:
            return self._room_string(leaf, self.format.bpf, form)
        for guard in leaf.guards:
            self._bound(guard)
        word, following = [self.word(at, "I") for at in self._makers.texts.words(leaf.field)]
        last = self.word(self._makers.texts.last, "I")
        low, name = f"{word} & 65535", f"s{len(self._code)}"
        limit = "" if leaf.decode.limit is None else f"[:{leaf.decode.limit}]"
        make = decoded if form is None else lambda raw: form.string(decoded(raw))
        self._checks.append(f"{word} >> 16 and {last} >> 16")
        self._checks.append(f"({low}) + ({word} >> 16) == {following} & 65535 <= end - at")
        piece = f"page[at + ({low}):at + ({following} & 65535) - 1]{limit}"
        self._code.append(f" {name} = {self.object(Memo(make))}[{piece}]")
        return name

    def _room_string(self, leaf: Leaf, record: BpfRecord, form: LineForm | None) -> str:
        # In a room of its own; one that fills the largest may be cut.
        word = self.word(self._makers.offset(leaf.field, 0), "I")
        low, name = f"at + ({word} & 65535)", f"s{len(self._code)}"
        limit = "" if leaf.decode.limit is None else f"[:{leaf.decode.limit}]"
        string = (lambda made: made) if form is None else form.string
        make = lambda raw: string(decoded(raw.partition(b"\0")[0]))  # noqa: E731
        self._checks.append(f"0 < {word} >> 16 < {record.longest}")
        self._checks.append(f"({word} & 65535) + ({word} >> 16) <= end - at")
        piece = f"page[{low}:{low} + ({word} >> 16) - 1]{limit}"
        self._code.append(f" {name} = {self.object(Memo(make))}[{piece}]")
        return name

    def _is_counted(self, text: StringShape, length: Leaf) -> bool:
        size = length.size or self._fields[length.field].size
        whole = length.decode.kind == "integer" and length.decode.bits in (None, 8 * size)
        plain = _plain(text.guards) and _plain(length.guards)
        return plain and whole and not length.shift and size in CODES

    def _counted(self, text: StringShape, length: Leaf, form: LineForm | None) -> str:
        # A length of 0 needs no address; one that no object has is a fault. Bytes that are all 0
        # may be a fault.
        size = length.size or self._fields[length.field].size
        count = self.word(self._makers.offset(length.field, length.offset), CODES[size])
        self._guard(length.guards, count, size)
        start, width = self._makers.offset(text.field, text.offset), WIDTHS.get(text.kind, 1)
        most = 1 << 8 * size - 1 if length.decode.signed else 1 << 8 * size
        if self._fields[text.field].text and self.format.bpf is not None:
            whole = min(text.size, self.format.bpf.longest)
            return self._copied(text, count, f"{count} < {min(most, HIGHEST)}", whole, form)
        checked = () if self.format.bpf is not None else text.guards
        guards = [_in_range(self.word(self._makers.offset(one.field, one.offset), "Q"), one)
                  for one in checked]  # fmt: skip
        checks = [*guards, f"{count} < {min(most, HIGHEST)}"]
        begun = f"page[at + {start}:at + {start + text.size}]"
        if guards:
            checks.append(f"(page[at + {start}] or {begun} != {self.object(bytes(text.size))})")
        kind, name = text.kind, f"s{len(self._code)}"
        string = (lambda made: made) if form is None else form.string
        memo = self.object(Memo(lambda raw: string(decoded(raw, kind))))
        cut = f"CutString(decoded({begun}, {kind!r}, True), {count})"
        self._code += [
            f" if not {count}: {name} = {self.object(string(''))}",
            f" elif not ({' and '.join(checks)}): return None",
            f" elif {count} <= {text.size // width}:",
            f"  {name} = {memo}[page[at + {start}:at + {start} + {count} * {width}]]",
            " else:",
            f"  {name} = {cut}",
        ]
        if form is not None:
            self._code += [" " + line for line in self._written(name, form)]
        return name

    def _copied(
        self, text: StringShape, count: str, possible: str, whole: int, form: LineForm | None
    ) -> str:
        # As `list_values.copied_text` has it where all could be read.
        word = self.word(self._makers.offset(text.field, 0), "I")
        width, kind, name = WIDTHS.get(text.kind, 1), text.kind, f"s{len(self._code)}"
        string = (lambda made: made) if form is None else form.string
        memo = self.object(Memo(lambda raw: string(decoded(raw, kind))))
        raw = f"page[at + ({word} & 65535):at + ({word} & 65535) + ({word} >> 16)]"
        self._checks.append(f"({word} & 65535) + ({word} >> 16) <= end - at")
        self._code += [
            f" if not {count}: {name} = {self.object(string(''))}",
            f" elif not ({possible}): return None",
            f" elif {count} * {width} == {word} >> 16: {name} = {memo}[{raw}]",
            f" elif not {count} * {width} > {word} >> 16 == {whole}: return None",
            " else:",
            f"  {name} = CutString(decoded({raw}, {kind!r}, True), {count})",
        ]
        if form is not None:
            self._code += [" " + line for line in self._written(name, form)]
        return name


def _plain(guards: Sequence[Guard]) -> bool:
    return not any(guard.empty or guard.read_checks for guard in guards)


def _in_range(pointer: str, guard: Guard) -> str:
    # As `guards.guarded` has it, but for sums that wrap around, which are not ordinary.
    either = [f"{low} <= {pointer} < {high}" for low, high in _ranges(guard)]
    return f"({' or '.join(either)})"


def _ranges(guard: Guard) -> list[tuple[int, int]]:
    ranges = OF_KERNEL if guard.kernel else ((LOWEST, HIGHEST),)
    return [(max(low, low - guard.moved), min(high, high - guard.moved)) for low, high in ranges]
