"""Traces of Perfetto: TrackEvent packets of its protobuf, written one by one.

A trace is a sequence of packets, so what was written so far is a trace at any time. Times are
nanoseconds of CLOCK_MONOTONIC; a snapshot ties that clock to the others, for traces that are looked
at together. Numbers of fields: protos/perfetto/trace of google/perfetto (trace_packet.proto,
track_event/*.proto, clock_snapshot.proto); wire format: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from struct import Struct

from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Annotation = None | bool | int | float | str | list["Annotation"] | dict[str, "Annotation"]

__all__ = ["PerfettoWriter", "Pointer", "StackFrame"]

_MONOTONIC, _BOOTTIME, _REALTIME = 3, 6, 1  # BuiltinClock
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_SEQUENCE = 1  # all packets are of one writer
_STATE_CLEARED = 1  # of the first packet's sequence_flags
_VARINT, _FIXED64, _BYTES = 0, 1, 2  # wire types
_DOUBLE, _WORD = Struct("<d"), Struct("<Q")
_UNSIGNED = 1 << 64
_TRACKS = 1 << 16  # that are remembered: a long trace of a server has goroutines without number


class Pointer(int):
    """An address, which is shown in hexadecimal."""

    __slots__ = ()


class StackFrame(Record):
    """A frame of a call stack; ``file`` and ``line`` are empty and 0 where they are not known."""

    function: str
    file: str = ""
    line: int = 0


def _varint(value: int) -> bytes:
    value %= _UNSIGNED  # a negative number has the ten bytes of its two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _message(field: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    # Bytes that are no UTF-8 are not allowed there.
    return _message(field, text.encode("utf-8", "backslashreplace"))


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | _FIXED64) + _DOUBLE.pack(value)


def _word(field: int, value: int) -> bytes:
    return _varint(field << 3 | _FIXED64) + _WORD.pack(value)


class PerfettoWriter:
    """Makes the packets of one trace. Tracks are declared where they are first used."""

    def __init__(self) -> None:
        self._tracks: dict[object, int] = {}
        self._names: dict[int, str] = {}
        self._last = 0  # number of a track

    def begin(self, monotonic: int, boottime: int, realtime: int) -> bytes:
        """The first packets: the same moment by three clocks, in nanoseconds."""
        clocks = [
            _message(1, _number(1, clock), _number(2, time))
            for clock, time in (
                (_MONOTONIC, monotonic), (_BOOTTIME, boottime), (_REALTIME, realtime)
            )
        ]  # fmt: skip
        snapshot = _message(6, *clocks, _number(2, _MONOTONIC))
        return _message(1, _number(10, _SEQUENCE), _number(13, _STATE_CLEARED), snapshot)

    def process(self, pid: int, name: str) -> tuple[int, bytes]:
        """The track of a process, and the packet that declares it or its new name, if needed."""
        described = _message(3, _number(1, pid), _text(6, name))
        return self._track(("process", pid), described, name)

    def thread(self, pid: int, thread: int, name: str) -> tuple[int, bytes]:
        """The track of a thread."""
        described = _message(4, _number(1, pid), _number(2, thread), _text(5, name))
        return self._track(("thread", pid, thread), described, name)

    def named(self, parent: int, name: str) -> tuple[int, bytes]:
        """A track of that name below another one: ``goroutine 17``."""
        described = _number(5, parent) + _text(2, name)
        return self._track(("named", parent, name), described, name)

    def counter(self, parent: int, name: str) -> tuple[int, bytes]:
        """A track of numbers below another one."""
        described = _number(5, parent) + _text(2, name) + _message(8)
        return self._track(("counter", parent, name), described, name)

    def _track(self, key: object, described: bytes, name: str) -> tuple[int, bytes]:
        number = self._tracks.get(key)
        if number is None:
            if len(self._tracks) >= _TRACKS:  # it gets a new number, should it come again
                del self._names[self._tracks.pop(next(iter(self._tracks)))]
            self._last += 1
            number = self._tracks[key] = self._last
        elif self._names[number] == name:
            return number, b""
        self._names[number] = name  # a thread can get another name later
        return number, self._packet(_message(60, _number(1, number), described))

    def slice(
        self,
        track: int,
        name: str,
        start: int,
        end: int,
        values: Mapping[str, Annotation],
        frames: Iterable[StackFrame] = (),
        flow: int | None = None,
    ) -> bytes:
        """Something that lasts, from ``start`` to ``end``. ``frames`` are innermost first."""
        head = self._event(_BEGIN, track, start, name, values, frames, flow)
        return head + self._event(_END, track, end)

    def instant(
        self,
        track: int,
        name: str,
        time: int,
        values: Mapping[str, Annotation],
        frames: Iterable[StackFrame] = (),
        flow: int | None = None,
    ) -> bytes:
        """Something that happens at a moment."""
        return self._event(_INSTANT, track, time, name, values, frames, flow)

    def value(self, track: int, time: int, value: int | float) -> bytes:
        """What a counter shows from a moment on; rounded, where it has no 64 bits with a sign."""
        whole = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
        shown = _number(30, int(value)) if whole else _double(44, float(value))
        return self._event(_COUNTER, track, time, more=shown)

    def _event(
        self,
        kind: int,
        track: int,
        time: int,
        name: str = "",
        values: Mapping[str, Annotation] | None = None,
        frames: Iterable[StackFrame] = (),
        flow: int | None = None,
        more: bytes = b"",
    ) -> bytes:
        parts = [_number(9, kind), _number(11, track), more]
        if name:
            parts.append(_text(23, name))
        parts += [
            _message(4, _text(10, key), _annotated(each)) for key, each in (values or {}).items()
        ]
        outermost_first = [_message(1, *_frame(each)) for each in reversed(list(frames))]
        if outermost_first:
            parts.append(_message(55, *outermost_first))
        if flow is not None:
            parts.append(_word(47, flow))
        return self._packet(_message(11, *parts), time)

    def _packet(self, content: bytes, time: int | None = None) -> bytes:
        when = b"" if time is None else _number(8, time) + _number(58, _MONOTONIC)
        return _message(1, when, _number(10, _SEQUENCE), content)


def _annotated(value: Annotation) -> bytes:
    # The value of a DebugAnnotation.
    match value:
        case None:
            return _text(6, "null")
        case bool():
            return _number(2, value)
        case Pointer():
            return _number(7, value)
        case int():
            if -(1 << 63) <= value < 1 << 63:
                return _number(4, value)
            return _number(3, value) if 0 <= value < _UNSIGNED else _text(6, str(value))
        case float():
            return _double(5, value)
        case str():
            return _text(6, value)
        case dict():
            entries = [_message(11, _text(10, one), _annotated(it)) for one, it in value.items()]
            return b"".join(entries) or _text(6, "{}")
        case list():
            return b"".join([_message(12, _annotated(each)) for each in value]) or _text(6, "[]")
        case _:
            assert_never(value)


def _frame(frame: StackFrame) -> tuple[bytes, ...]:
    file = (_text(2, frame.file),) if frame.file else ()
    line = (_number(3, frame.line),) if frame.line else ()
    return (_text(1, frame.function), *file, *line)
