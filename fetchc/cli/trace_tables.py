"""What ``trace`` counts: one table of ``--sum``, ``--histogram``, ``--linear`` and ``--count-by``.

A row a key, the heaviest first. :class:`fetchc.tracer.tables.Table` has the numbers; here they
become lines of text, for a terminal's width or for none, and lines of JSON.
"""

from __future__ import annotations

from itertools import zip_longest

from fetchc.cli.trace_request import value_of
from fetchc.diag.render import printable
from fetchc.tracer.display_values import CutString, EntryCount, printed
from fetchc.tracer.tables import Cell, Row, Table, bar_lines, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from fetchc.cli.trace_events import Hit
    from fetchc.cli.trace_request import Measure
    from fetchc.cli.trace_targets import Target
    from fetchc.tracer.events import Value
    from fetchc.tracer.tables import Number

    ValueOf = Callable[[Hit], Value]
    KeyOf = Callable[[Hit], Hashable]

__all__ = ["Summary", "Tally", "key_of", "key_shown", "summed"]

_BAR = 52  # columns
_QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
_LEVELS = "▁▂▃▄▅▆▇█"
_WIDEST = 32  # buckets of a distribution in one line
_TOGETHER = "(all)"


def _encode(found: dict[str, object]) -> str:
    import json  # 1 ms, which a table of text does without

    return json.dumps(found, allow_nan=False)


class Tally:
    """Hits counted into a table: ``measures`` are its cells, ``keys`` the expressions of its key.

    ``interval``: the hits since the last :meth:`turn` are counted apart, too.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        keys: Sequence[str],
        most: int | None = None,
        interval: bool = False,
    ) -> None:
        self.measures = tuple(measures)
        self.keys = tuple(keys)
        self._most = most
        self._table = Table([each.step for each in measures])
        self._recent = Table(self._table.steps) if interval else self._table
        self._sums = [at for at, each in enumerate(measures) if each.kind == "sum"]
        self._sources: dict[str, tuple[list[ValueOf], list[KeyOf]]] = {}

    @property
    def table(self) -> Table:
        """All that was counted, up to the last :meth:`turn`."""
        return self._table

    def add(self, hit: Hit) -> None:
        """Count a hit."""
        values, key = self._sources_of(hit)
        self._recent.add(key, [number(source(hit)) for source in values])

    def add_row(self, hit: Hit, row: Row) -> None:
        """Count the hits of a row, which a kernel counted; they all have the key of ``hit``.

        The kernel's map bounds such rows. They come after hits that it had no room for, and are
        of keys that were there before, so those do not keep them out.
        """
        table = Table(self._table.steps)
        own = table.rows[self._sources_of(hit)[1]] = Row(())
        own.hits, own.cells = row.hits, row.cells[: len(self.measures)]
        self._recent.merge(table, beyond=True)

    def _sources_of(self, hit: Hit) -> tuple[list[ValueOf], tuple[Hashable, ...]]:
        target = hit.target
        sources = self._sources.get(target.plan.event)
        if sources is None:
            values, keys = map(value_of, target.measures), map(key_of, target.keys)
            sources = self._sources[target.plan.event] = (list(values), list(keys))
        return sources[0], tuple([source(hit) for source in sources[1]])

    def turn(self) -> Table:
        """The table of the hits since the last turn; they belong to the whole one now."""
        if self._recent is self._table:
            return self._table
        recent, self._recent = self._recent, Table(self._table.steps)
        self._table.merge(recent)
        return recent

    def remarks(self) -> Iterator[str]:
        """What is not in the table."""
        table = self._table
        if table.missing:
            yield f"{table.missing} values that are no numbers are not counted"
        if table.dropped:
            yield f"{table.dropped} hits are in no row: there were too many keys"
        beyond = sum(cell.beyond for row in table.rows.values() for cell in row.cells)
        if beyond:
            yield f"{beyond} values are in no bucket: there were too many for the step of --linear"

    # Text.

    def text(self) -> Iterator[str]:
        """The whole table: first the histograms where it has no key."""
        self.turn()
        if not self.keys and self._table.rows:
            (row,) = self._table.rows.values()
            for measure, cell in zip(self.measures, row.cells, strict=True):
                if measure.kind == "histogram" and cell.buckets:
                    yield ""
                    yield f"{_unit(measure)}:"
                    yield from bar_lines(list(cell.bars()), _BAR)
        yield ""
        yield from self.lines()

    def lines(
        self, recent: Table | None = None, seconds: float = 0.0, width: int | None = None
    ) -> Iterator[str]:
        """The rows, heaviest first. ``recent`` is of the last ``seconds``: adds hits a second.

        With a ``width``, the columns that people miss least are left out until the keys fit.
        """
        shown = self._table.heaviest(self._most, self._sums)
        graphs = _distributions([row for _, row in shown], self.measures) if self.keys else {}
        rows: list[list[str]] = []
        hits = sum([row.hits for row in self._table.rows.values()])
        for key, row in shown:
            rate = []
            if recent is not None:
                now = recent.rows.get(key)
                rate = [f"{(0 if now is None else now.hits) / seconds:.0f}"]
            rows += self._cells(key, row, rate, graphs, hits)
        head = ["COUNT", *(["/s"] if recent is not None else [])]
        if self.measures:
            head += ["SUM"] * bool(self._sums) + ["MEAN", "MIN", "P50", "P90", "P99", "MAX"]
        else:
            head.append("SHARE")
        last = ["DISTRIBUTION"] * bool(graphs) + [printable(each) for each in self.keys]
        last += ["EXPRESSION"] * bool(self.measures)
        yield from _columns([*head, *last], rows, len(head), width)
        more = len(self._table.rows) - len(shown)
        if more > 0:
            yield f"and {more} more"

    def _cells(
        self,
        key: Hashable,
        row: Row,
        rate: list[str],
        graphs: dict[int, dict[int, str]],
        hits: int,
    ) -> Iterator[list[str]]:
        assert isinstance(key, tuple)
        keys = [key_shown(each) for each in key]
        if not self.measures:
            yield [str(row.hits), *rate, f"{100 * row.hits / hits:.1f}%", *keys]
            return
        named = [*zip(map(_unit, self.measures), row.cells, strict=True)]
        if len(self._sums) > 1:
            named.append((_TOGETHER, summed(row, self._sums)))
        for at, (name, cell) in enumerate(named):
            if name in [later for later, _ in named[at + 1 :]]:
                continue  # a histogram of it has the same numbers
            numbers = [str(cell.count), *rate]
            numbers += [_shown(cell.total)] * bool(self._sums)
            mean = None if not cell.count else cell.total / cell.count
            ends = [_rounded(cell.quantile(part)) for _, part in _QUANTILES]
            numbers += [_shown(mean), _shown(cell.smallest), *ends, _shown(cell.largest)]
            if graphs:
                numbers.append(graphs.get(at, {}).get(id(row), ""))
            yield [*numbers, *keys, name]

    # JSON.

    def json(self) -> Iterator[str]:
        """An object for each key and measure; of a table without measures one for each key."""
        self.turn()
        for key, row in self._table.heaviest(self._most, self._sums):
            assert isinstance(key, tuple)
            of_key = self._of_key(key)
            if not self.measures:
                yield _encode({"count": row.hits, **of_key})
            for measure, cell in zip(self.measures, row.cells, strict=True):
                yield _encode({measure.kind: measure.text, **of_key, **_object(measure, cell)})
            if len(self._sums) > 1:
                both = _numbers(summed(row, self._sums))
                yield _encode({"sum": _TOGETHER, **of_key, **both})

    def _of_key(self, key: tuple[object, ...]) -> dict[str, object]:
        values, marked = [_value(each) for each in key], self._marks(key)
        if len(values) > 1:
            return {"by": list(self.keys), "key": values, **marked}
        return {"by": next(iter(self.keys), None), "key": next(iter(values), None), **marked}

    def _marks(self, key: tuple[object, ...]) -> Mapping[str, object]:
        # As events have them. What is cut has no length here: a row has hits of several.
        from fetchc.cli.trace_json import marks

        found = marks([(by, _value(each)) for by, each in zip(self.keys, key, strict=True)])
        if "cut" in found:
            found["cut"] = dict.fromkeys(found["cut"])
        faults = [
            by + path
            for by, each in zip(self.keys, key, strict=True)
            if isinstance(each, _Composed)
            for path in each.faults
        ]
        return {"faults": faults, **found} if faults else found

    def interval(self, table: Table, start: float, end: float, name: str = "interval") -> str:
        """One object for a table of the hits between two times, in seconds from the start."""
        rows = []
        for key, row in table.heaviest(self._most, self._sums):
            assert isinstance(key, tuple)
            values = {
                measure.text: _object(measure, cell)
                for measure, cell in zip(self.measures, row.cells, strict=True)
            }
            shown: dict[str, object] = {"key": [_value(each) for each in key], "hits": row.hits}
            shown.update(self._marks(key))
            rows.append({**shown, "values": values} if values else shown)
        left_out = len(table.rows) - len(rows)
        times = [round(start, 3), round(end, 3)]
        found = {name: times, "by": list(self.keys), "rows": rows, "left_out": left_out}
        return _encode(found)


def summed(row: Row, cells: Sequence[int]) -> Cell:
    """Several cells of a row, which have no linear buckets, as one."""
    together = Cell()
    for at in cells:
        together.merge(row.cells[at])
    return together


def _numbers(cell: Cell) -> dict[str, object]:
    ends = {"count": cell.count, "total": cell.total}
    return {**ends, "smallest": cell.smallest, "largest": cell.largest, **_quantiles(cell)}


def _object(measure: Measure, cell: Cell) -> dict[str, object]:
    numbers = _numbers(cell)
    if measure.kind == "histogram":
        numbers["buckets"] = [list(bar) for bar in cell.bars()]
    return numbers


def _quantiles(cell: Cell) -> dict[str, object]:
    found = {name: cell.quantile(part) for name, part in _QUANTILES}
    return {name: round(at, 3) if isinstance(at, float) else at for name, at in found.items()}


def _unit(measure: Measure) -> str:
    step = f" by {measure.step}" if measure.step else ""
    return printable(measure.text) + (" (us)" if measure.text == "$latency" else "") + step


def _shown(value: Number | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _rounded(value: Number | None) -> str:
    # Of an estimate no more digits than are known of it.
    if not isinstance(value, float):
        return _shown(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


_DROPPED = ("DISTRIBUTION", "MIN", "MEAN", "P90", "EXPRESSION", "/s", "P50", "SUM")


def _columns(
    head: list[str], rows: list[list[str]], numeric: int, most: int | None
) -> Iterator[str]:
    # Numbers to the right; what is no number, as wide as it is, at the end.
    every = [head, *rows]
    widths = [max(map(len, column)) for column in zip_longest(*every, fillvalue="")]
    for name in _DROPPED if most is not None else ():
        if sum(widths) + 2 * (len(widths) - 1) <= (most or 0):
            break
        at = every[0].index(name) if name in every[0] else None
        distinct = at is not None and len({row[at] for row in every[1:]}) > 1
        if at is None or (name == "EXPRESSION" and distinct):
            continue
        every = [row[:at] + row[at + 1 :] for row in every]
        del widths[at]
        numeric -= at < numeric
    for row in every:
        cells = [
            f"{cell:>{width}}" if at < numeric else f"{cell:<{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "  ".join(cells).rstrip()


def _distributions(rows: Iterable[Row], measures: Sequence[Measure]) -> dict[int, dict[int, str]]:
    # Of each histogram, of each row: a level for each bucket, of all rows the same buckets.
    found: dict[int, dict[int, str]] = {}
    for at, measure in enumerate(measures):
        if measure.kind != "histogram":
            continue
        bars = {id(row): {bar[:2]: bar[2] for bar in row.cells[at].bars()} for row in rows}
        bounds = sorted({each for one in bars.values() for each in one}, key=lambda one: one[1])
        if not bounds or len(bounds) > _WIDEST:
            continue
        found[at] = {
            row: "".join(
                [_level(one.get(each, 0), max(one.values(), default=0)) for each in bounds]
            )
            for row, one in bars.items()
        }
    return found


def _level(count: int, most: int) -> str:
    return " " if not count else _LEVELS[(count * len(_LEVELS) - 1) // most]


# ------------------------------------------------------------------------------
# Values as keys.


def key_of(label: str) -> Callable[[Hit], Hashable]:
    """How to have the value of that label as a key of a table, by what it holds.

    The beginning of a text is another key than a text that is all of it, null than a fault.
    """
    source = value_of(label)

    inside = (label + ".", label + "[")

    def key(hit: Hit) -> Hashable:
        value, event = source(hit), hit.event
        if isinstance(value, EntryCount):
            return int(value)  # a nil map and an empty one have the same number of entries
        if isinstance(value, str | int | float) and not isinstance(value, CutString):
            return value
        faults = [path for path in event.faults if path == label or path.startswith(inside)]
        if value is None and not faults and label not in event.args:
            faults = [label]
        paths = tuple([path.removeprefix(label) for path in faults])
        return _Composed(value, printed(value, faults, label), paths)

    return key


class _Composed:
    """A value as a key, by how it is shown: what is cut says so.

    ``faults`` are the paths in it to what could not be read; ``""`` is all of it.
    """

    __slots__ = ("faults", "shown", "value")

    def __init__(self, value: Value, shown: str, faults: tuple[str, ...]) -> None:
        self.value = value
        self.shown = shown
        self.faults = faults

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Composed) and self.shown == other.shown

    def __hash__(self) -> int:
        return hash(self.shown)


def _value(key: object) -> Value:
    return key.value if isinstance(key, _Composed) else key  # type: ignore[return-value]


def key_shown(key: object) -> str:
    """A key as text."""
    return key.shown if isinstance(key, _Composed) else printed(_value(key))


# ------------------------------------------------------------------------------
# ``--summary``: hits of each function.


class Summary:
    """``--summary``: hits of each function, with the times they took where those were measured."""

    def __init__(self, timed: bool = False) -> None:
        """``timed``: the last cell of a row has the times of its hits."""
        self._timed = timed
        self._counts: dict[str, list[float]] = {}  # count, measured times, their sum, the longest

    def add(self, hit: Hit) -> None:
        """Count a hit."""
        measured = hit.latency is not None
        self._add(hit.target, 1, int(measured), hit.latency or 0.0, hit.latency or 0.0)

    def add_row(self, hit: Hit, row: Row) -> None:
        """Count the hits of a row, which a kernel counted."""
        times = row.cells[-1] if self._timed else Cell()
        self._add(hit.target, row.hits, times.count, times.total, times.largest or 0.0)

    def _add(self, target: Target, hits: int, measured: int, total: float, longest: float) -> None:
        counts = self._counts.setdefault(_function(target), [0, 0, 0.0, 0.0])
        counts[0] += hits
        counts[1] += measured
        counts[2] += total
        counts[3] = max(counts[3], longest)

    def _sorted(self) -> list[tuple[str, list[float]]]:
        return sorted(self._counts.items(), key=lambda each: (each[1][0], each[0]))

    def text(self) -> Iterator[str]:
        """A table, the function with most hits last."""
        rows = self._sorted()
        timed = any(counts[1] for _, counts in rows)
        yield ""
        yield (
            f"{'HITS':>10}  " + (f"{'MEAN us':>12}  {'MAX us':>12}  " if timed else "") + "FUNCTION"
        )
        for name, (count, measured, total, longest) in rows:
            times = ""
            if timed:
                times = f"{total / measured:>12.3f}  {longest:>12.3f}  " if measured else f"{'':28}"
            yield f"{count:>10}  {times}{printable(name)}"

    def remarks(self) -> Iterator[str]:
        """Nothing is left out."""
        yield from ()

    def json(self) -> Iterator[str]:
        """An object for each function."""
        for name, (count, measured, total, longest) in self._sorted():
            shown: dict[str, object] = {"summary": name, "hits": count}
            if measured:
                mean = round(total / measured, 3)
                shown["latency_us"] = {"count": measured, "mean": mean, "max": longest}
            yield _encode(shown)


def _function(target: Target) -> str:
    return target.plan.function or f"{target.plan.address:#x}"
