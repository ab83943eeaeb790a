"""Records become events: the fields that all have here, the values by the plan's reader."""

from __future__ import annotations

import struct

from fetchc.tracer.kernel.unread import unread
from fetchc.tracer.model import COMM, WHICH, Event
from fetchc.tracer.process.memory import mapped
from fetchc.tracer.values.decoders import reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.kernel.tasks import Processes
    from fetchc.tracer.model import Format, Plan, Sample, Value

    Symbol = Callable[[int, int], str | None]
    Reader = Callable[[bytes], tuple[dict[str, Value], tuple[str, ...]]]

__all__ = ["Decoder"]

_address = struct.Struct("<Q").unpack_from
_number = struct.Struct("<I").unpack_from
_HEADER = 8  # bytes of common fields; the probed address is behind them
_ADDRESSES = ("__probe_ip", "__probe_func")  # of an entry, of a return; an event has none


class Decoder:
    """Makes the events of one event of the kernel, which has ``plans``."""

    def __init__(
        self,
        format: Format,
        plans: Sequence[Plan],
        processes: Processes,
        symbol: Symbol | None = None,
    ) -> None:
        places = {field.name: field.offset for field in format.fields}
        self._format = format
        self._plans = plans
        self._readers: dict[int, Reader] = {}
        self._processes = processes
        self._symbol = symbol
        self._which = places.get(WHICH)
        if COMM not in places:
            raise unread(f"`{format.event}` lacks the field `{COMM}`")
        self._comm = places[COMM]
        self._placed = any(name in places for name in _ADDRESSES)
        ends = [field.offset + field.size * (field.count or 1) for field in format.fields]
        self._size = max(ends)

    def event(self, sample: Sample) -> Event:
        """The event of a record."""
        data = sample.data
        if len(data) < self._size:
            what = f"one of `{self._format.event}` has {len(data)} bytes, not {self._size}"
            raise unread(what)
        which = 0 if self._which is None else _number(data, self._which)[0]
        read = self._readers.get(which)
        if read is None:
            if which >= len(self._plans):
                raise unread(f"one of `{self._format.event}` is of its part {which}")
            known = mapped if self._processes.known else None
            read = reader(self._plans[which], self._format, known, self._symbol)
            self._readers[which] = read
        args, faults = read(data)
        comm = _number(data, self._comm)[0]
        start, length = comm & 0xFFFF, comm >> 16
        nanoseconds = sample.nanoseconds
        return Event(
            self._plans[which],
            self._processes.of(sample.thread, nanoseconds),
            sample.thread,
            data[start : start + length].rstrip(b"\0").decode("utf-8", "surrogateescape"),
            sample.cpu,
            nanoseconds / 1e9,
            _address(data, _HEADER)[0] if self._placed else 0,
            args,
            faults,
            sample.stack,
        )
