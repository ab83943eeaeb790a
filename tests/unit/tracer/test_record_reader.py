"""What a generated function reads is what the general readers read, values and lines."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.cli.trace_events import Hit
from fetchc.cli.trace_json import JsonLines
from fetchc.cli.trace_targets import Target
from fetchc.cli.trace_text import TextLines
from fetchc.diag.diagnostic import TracerError
from fetchc.ir.fetch import Decode
from fetchc.tracer import decode
from fetchc.tracer.decode import Decoder, ShapeMakers, reader
from fetchc.tracer.display_values import CutString
from fetchc.tracer.events import BpfRecord, Event, EventValue, FaultProbe, Format, Plan
from fetchc.tracer.record_reader import Memo, value_reader
from fetchc.tracer.ring_buffer import Records
from fetchc.tracer.value_shapes import Guard, Leaf, Shape, StringShape
from tests.support.every_shape import FIELDS, FORMAT, PLAN, SOUND
from tests.support.records import COMM, NEAR, THREAD, Nobody, format_of, record, sample

WORD, SHORT = Decode("integer", 64, True), Decode("integer", 16)
MAPPED: list[Callable[[int, int], bool | None]] = [
    lambda *_: True,
    lambda *_: None,
    lambda _, at: at & 0x1000 == 0,
]


def plan_of(shapes: dict[str, Shape], probes: tuple[FaultProbe, ...] = ()) -> Plan:
    values = tuple(EventValue(label, shape) for label, shape in shapes.items())
    return Plan("g", "ev", "/bin/x", "f", "entry", 0, ("",), values, probes)


def generated(
    plan: Plan, format: Format, mapped: Callable[[int, int], bool | None] | None, data: bytes
) -> dict[str, object] | None:
    """What the function of the plan reads; None where it leaves the record to others."""
    makers = ShapeMakers(format, plan.fault_probes, mapped, None, False)
    _, _, page, at, end, _ = sample(data)
    return value_reader(plan, format, makers)(page, at, end)  # type: ignore[return-value]


def alike(one: object, other: object) -> bool:
    """Equal, and of the same type, whose marks (of a cut string, for example) are equal, too."""
    if type(one) is not type(other) or getattr(one, "__dict__", 0) != getattr(other, "__dict__", 0):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)
    return repr(one) == repr(other)


EDITS = st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=4)


def edited(edits: list[tuple[int, int]]) -> bytes:
    data = bytearray(SOUND)
    for at, byte in edits:
        data[at] = byte
    return bytes(data)


@pytest.mark.parametrize("value", PLAN.values, ids=lambda one: one.label)
@given(edits=EDITS, mapped=st.sampled_from([*MAPPED, None]))
def test_a_value_of_every_shape(
    value: EventValue,
    edits: list[tuple[int, int]],
    mapped: Callable[[int, int], bool | None] | None,
) -> None:
    plan, data = plan_of({value.label: value.shape}), edited(edits)
    found = generated(plan, FORMAT, mapped, data)
    if found is not None:
        args, faults = reader(plan, FORMAT, mapped)(data)
        assert faults == ()
        assert alike(found, args)


@pytest.mark.parametrize("value", PLAN.values, ids=lambda one: one.label)
def test_a_sound_record_is_ordinary(value: EventValue) -> None:
    plan = plan_of({value.label: value.shape})
    if not reader(plan, FORMAT, MAPPED[0])(SOUND)[1]:
        assert generated(plan, FORMAT, MAPPED[0], SOUND) is not None


LEAVES: dict[str, Shape] = {
    "a": Leaf("a", WORD, guards=(Guard("p", 0, 8),)),
    "b": Leaf("b", SHORT, guards=(Guard("p", 0, 16),)),
    "c": Leaf("c", SHORT, guards=(Guard("p", 0, 8), Guard("q", 0, 4090))),
    "d": Leaf("d", WORD, guards=(Guard("p", 0, 8), Guard("q", 0, -8))),
    "e": Leaf("e", Decode("integer", 32, True)),
    "f": Leaf("a", Decode("integer", 5, True), 0, 8, 3, guards=(Guard("p", 0, 8),)),
    "g": Leaf("b", Decode("bool", 16), guards=(Guard("p", 0, 16, kernel=True),)),
    "h": Leaf("q", Decode("pointer", 64)),
    "i": Leaf("e", Decode("enum", 32, True, None, (("A", 0), ("B", 1)))),
}
NUMBERS = [("p", "Q"), ("q", "Q"), ("a", "q"), ("b", "H"), ("c", "H"), ("d", "q"), ("e", "i"),
           (COMM, "text")]  # fmt: skip
NUMBERS_FORMAT: Format = format_of(NUMBERS)
POINTERS = st.sampled_from([0, 8, 0x1000, NEAR, NEAR + 0xFFF, 1 << 47, 1 << 63, (1 << 64) - 8])
SMALL = st.sampled_from([0, 0, 1, 77])


@given(POINTERS, POINTERS, SMALL, SMALL, SMALL, SMALL, SMALL, st.sampled_from([0, 1, 2]))
def test_numbers_together(
    p: int, q: int, a: int, b: int, c: int, d: int, e: int, kind: int
) -> None:
    data = record(NUMBERS, [p, q, a, b, c, d, e, b"me"])
    plan, mapped = plan_of(LEAVES), MAPPED[kind]
    found = generated(plan, NUMBERS_FORMAT, mapped, data)
    args, faults = reader(plan, NUMBERS_FORMAT, mapped)(data)
    # Of a page that a neighbour's number came from nobody asks whether it is there.
    if found is not None and not (kind == 2 and faults):
        assert faults == ()
        assert alike(found, args)
    if not faults:
        assert found is not None or p >= 1 << 56 or q >= 1 << 56


def test_a_zero_beside_what_was_loaded_is_not_asked_about() -> None:
    asked = []

    def mapped(thread: int, address: int) -> bool:
        asked.append(address)
        return True

    plan = plan_of({label: LEAVES[label] for label in "ab"})
    page = NEAR & ~0xFFF
    values = [page, 0, 5, 0, 0, 0, 0, b"me"]
    found = generated(plan, NUMBERS_FORMAT, mapped, record(NUMBERS, values))
    assert found == {"a": 5, "b": 0}
    assert asked == []
    values[2] = 0
    found = generated(plan, NUMBERS_FORMAT, mapped, record(NUMBERS, values))
    assert found == {"a": 0, "b": 0}
    assert asked != []


STRINGS: dict[str, Shape] = {
    "s": Leaf("s", Decode("text"), guards=(Guard("p"),)),
    "limited": Leaf("t", Decode("text", limit=3)),
    "counted": StringShape("c", 8, length=Leaf("n", WORD), guards=(Guard("p"),)),
    "wide": StringShape("c", 8, "utf-16", length=Leaf("m", Decode("integer", 32, True))),
}
STRING_FIELDS = [("p", "Q"), ("n", "q"), ("m", "i"), ("c", "8s"), ("s", "text"), ("t", "text"),
                 (COMM, "text")]  # fmt: skip
TEXTS = st.sampled_from([None, b"", b"a", b"\xff\xe2\x82", b"two words", b'"\\\n'])


@given(
    POINTERS,
    st.sampled_from([0, 1, 7, 8, 9, -1, 1 << 40, 1 << 60]),
    st.sampled_from([0, 1, 4, 5, -1]),
    st.sampled_from([b"abcdefgh", bytes(8), b"\xe2\x82\xac\0\0\0\0\0", b"\0bcdefgh"]),
    TEXTS,
    TEXTS,
    st.sampled_from([b"comm", None]),
    st.integers(0, 12),
)
def test_strings(
    p: int, n: int, m: int, c: bytes, s: bytes | None, t: bytes | None, comm: bytes, cut: int
) -> None:
    format = format_of(STRING_FIELDS)
    data = record(STRING_FIELDS, [p, n, m, c, s, t, comm])
    data = data[: max(format.size, len(data) - cut)]
    plan = plan_of(STRINGS)
    found = generated(plan, format, MAPPED[0], data)
    if found is not None:
        args, faults = reader(plan, format, MAPPED[0])(data)
        assert faults == ()
        assert alike(found, args)


def test_whole_strings_and_cut_ones_are_ordinary() -> None:
    format = format_of(STRING_FIELDS)
    data = record(STRING_FIELDS, [NEAR, 9, 4, b"abcdefgh", b"text", b"abcdef", b"comm"])
    found = generated(plan_of(STRINGS), format, None, data)
    assert found == {
        "s": "text",
        "limited": "abc",
        "counted": "abcdefgh",
        "wide": b"abcdefgh".decode("utf-16-le"),
    }
    assert isinstance(found["counted"], CutString)
    assert found["counted"].length == 9


def test_a_fault_probe_speaks_for_its_page() -> None:
    fields = [("p", "Q"), ("a", "q"), ("f", "text"), (COMM, "text")]
    plan = plan_of({"a": Leaf("a", WORD, guards=(Guard("p"),))}, (FaultProbe("f", "p", 0, 7),))
    for text, wanted in ((b"", {"a": 0}), (None, None)):
        data = record(fields, [NEAR, 0, text, b"me"])
        assert generated(plan, format_of(fields), None, data) == wanted


def test_a_record_of_another_event_is_not_ordinary() -> None:
    fields = [("n", "Q"), (COMM, "text")]
    data = record(fields, [7, b"me"])
    plan = plan_of({"n": Leaf("n", WORD)})
    assert generated(plan, format_of(fields), None, data) == {"n": 7}
    assert generated(plan, format_of(fields), None, b"\2" + data[1:]) is None
    assert generated(plan, format_of(fields), None, data[:24]) is None


# ------------------------------------------------------------------------------
# Records of eBPF programs: each field has a fault bit, or is of a block with the bytes that were
# read.

ENDING = len(SOUND)  # then: process, unused, 64 bits of faults, the word of a block


def bpf_format(blocks: bool) -> Format:
    """The format of every shape, as that of an eBPF program."""
    parts = [(one.offset, one.offset + one.size * (one.count or 1)) for one in FORMAT.fields]
    numbers = [part for part, one in zip(parts, FORMAT.fields, strict=True) if not one.text]
    texts = [part for part, one in zip(parts, FORMAT.fields, strict=True) if one.text]
    low, high = min(numbers)[0], max(numbers)[1]
    listed = [*texts, *(() if blocks else numbers)]
    bits = tuple([(*part, number % 64) for number, part in enumerate(listed)])
    block = ((low, high, ENDING + 16),) if blocks else ()
    return FORMAT.replaced(bpf=BpfRecord(ENDING, ENDING + 8, 8, bits, block, 1 << 16))


def bpf_record(format: Format, faults: int, read: tuple[int, int]) -> bytes:
    """A sound record with these faults, and bytes of its block that were read; the others are 0."""
    assert format.bpf is not None
    data = bytearray(SOUND)
    for low, high, bit in format.bpf.bits:
        if faults >> bit & 1:
            data[low:high] = bytes(high - low)
    for low, high, _ in format.bpf.blocks:
        first, end = (min(max(one, low), high) for one in read)
        data[low:first] = bytes(first - low)
        data[max(first, end) : high] = bytes(high - max(first, end))
    return bytes(data) + struct.pack("=IIQHHI", THREAD, 0, faults, *read, 0)


@pytest.mark.parametrize("value", PLAN.values, ids=lambda one: one.label)
@given(
    faults=st.one_of(st.just(0), st.integers(0, (1 << 64) - 1)),
    blocks=st.booleans(),
    cut=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_a_value_of_a_bpf_record(
    value: EventValue, faults: int, blocks: bool, cut: tuple[int, int]
) -> None:
    plan, format = plan_of({value.label: value.shape}), bpf_format(blocks)
    assert format.bpf is not None
    whole = format.bpf.blocks[0][:2] if blocks else (0, 0)
    data = bpf_record(format, faults, (whole[0] + 4 * cut[0], max(whole[1] - 4 * cut[1], 0)))
    sound = bpf_record(format, 0, whole)
    found = generated(plan, format, None, data)
    args, said = reader(plan, format, None)(data)
    if found is not None:  # only where all was read
        assert (faults, said) == (0, ())
        assert not blocks or data == sound
        assert alike(found, args)
    if not said:  # a value without a fault is what it is where all was read
        wanted, none = reader(plan, format, None)(sound)
        assert alike(args, wanted) or _is_cut(args) or none


def _is_cut(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_is_cut, value.values()))
    if isinstance(value, list):
        return type(value) is not list or any(map(_is_cut, value))
    return isinstance(value, CutString)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_number_that_could_not_be_read_is_a_fault(blocks: bool) -> None:
    # Whatever its bytes are, and though no pointer leads to it.
    format = bpf_format(blocks)
    assert format.bpf is not None
    one = next(one for one in FORMAT.fields if not one.text and one.count is None)
    plan = plan_of({"n": Leaf(one.name, Decode("integer", 8 * one.size))})
    bit = next((bit for low, _, bit in format.bpf.bits if low == one.offset), 0)
    read = format.bpf.blocks[0][:2] if blocks else (0, 0)
    assert reader(plan, format, None)(bpf_record(format, 0, read))[1] == ()
    wrong = bpf_record(format, 0, (0, 0)) if blocks else bpf_record(format, 1 << bit, read)
    assert reader(plan, format, None)(wrong) == ({"n": None}, ("n",))
    assert generated(plan, format, None, wrong) is None


# ------------------------------------------------------------------------------
# Lines.


def lines_of(
    plan: Plan, fields: list[tuple[str, str]], records: list[bytes], json_lines: bool
) -> tuple[list[str | None], list[str]]:
    """Of each record what the function gives, and the line of its event."""
    decoder = Decoder(format_of(fields), [plan], Nobody())
    target = Target("hit", plan, tuple(one.label for one in plan.values))
    both = [JsonLines([target], False) if json_lines else TextLines([target], False) for _ in "12"]
    read, _ = both[0].readers(decoder, plan, target.labels, None)
    found: list[str | None] = []
    wanted = []
    for number, data in enumerate(records):
        one = sample(data, 10**15 + 1003 * number)
        now, cpu, page, at, end, _ = one
        found.append(read(now, cpu, page, at, end))
        hit = Hit(target, decoder.event(one), None)
        wanted.append(both[1].line(hit))
        if found[-1] is None:
            both[0].line(hit)  # the columns grow with it, too
    return found, wanted


@pytest.mark.parametrize("json_lines", [False, True], ids=["text", "jsonl"])
@given(several=st.lists(EDITS, min_size=1, max_size=4))
def test_lines_of_every_shape(json_lines: bool, several: list[list[tuple[int, int]]]) -> None:
    for value in PLAN.values:
        plan = plan_of({value.label: value.shape})
        records = [SOUND, *[edited([one for one in edits if one[0] >= 8]) for edits in several]]
        try:
            found, wanted = lines_of(plan, FIELDS, records, json_lines)
        except TracerError:  # a string out of its record
            continue
        for one, other in zip(found, wanted, strict=True):
            assert one in (None, other)


@pytest.mark.parametrize("json_lines", [False, True], ids=["text", "jsonl"])
def test_ordinary_lines_are_written_at_once(json_lines: bool) -> None:
    fields = [("n", "q"), ("p", "Q"), ("s", "text"), (COMM, "text")]
    plan = plan_of(
        {
            "n%": Leaf("n", WORD),
            "flag": Leaf("n", Decode("bool", 64)),
            "p": Leaf("p", Decode("pointer", 64)),
            "s": Leaf("s", Decode("text")),
        }
    )
    texts = [b"a", b'q"uote', b"long enough to grow", b"\xff", b"a"]
    records = [
        record(fields, [number * 10**number, NEAR, text, b"a % task"])
        for number, text in enumerate(texts)
    ]
    found, wanted = lines_of(plan, fields, records, json_lines)
    first = 0 if json_lines else 1  # the first line of a string says what time is 0
    assert found[first:] == wanted[first:]
    assert found[:first] == [None] * first
    if json_lines:
        assert [json.loads(line)["args"]["n%"] for line in wanted] == [0, 10, 200, 3000, 40000]


def test_records_of_a_task_that_waits_have_no_line() -> None:
    fields = [("n", "q"), (COMM, "text")]
    plan = plan_of({"n": Leaf("n", WORD)})
    decoder = Decoder(format_of(fields), [plan], Nobody())
    target = Target("hit", plan, ("n",))
    read, _ = JsonLines([target], False).readers(decoder, plan, ("n",), "waits")
    for comm, empty in ((b"waits", True), (b"runs", False)):
        now, cpu, page, at, end, _ = sample(record(fields, [7, comm]))
        line = read(now, cpu, page, at, end)
        assert line is not None
        assert (line == "") is empty
    event = decoder.event(sample(record(fields, [7, b"runs"])))
    assert isinstance(event, Event)
    assert event.thread == THREAD


# ------------------------------------------------------------------------------
# Lines of many records at once.

COLOUR = Decode("enum", 32, True, None, (("A", 0), ("B % C", 1)))
MANY: dict[str, Shape] = LEAVES | {
    "j%": Leaf("e", COLOUR),
    "k": Leaf("e", Decode("char", 32)),
    "l": Leaf("q", Decode("reference", 64)),
    "m": Leaf("d", Decode("float", 64)),
}
ROWS = st.tuples(POINTERS, POINTERS, SMALL, SMALL, SMALL, SMALL, st.sampled_from([0, 1, 32, -5]))
COMMS = [b"me", b"a % task", b"waits", b"you"]


def together(
    plan: Plan, format: Format, datas: list[bytes], json_lines: bool
) -> tuple[str | None, list[str]]:
    """What the function makes of all records together, and the line of each one's event."""
    size = len(datas[0])
    decoder = Decoder(format, [plan], Everybody())
    target = Target("hit", plan, tuple(one.label for one in plan.values))
    both = [JsonLines([target], False) if json_lines else TextLines([target], False) for _ in "12"]
    _, several = both[0].readers(decoder, plan, target.labels, "waits")
    assert several is not None
    page = b"\xa5" * 20 + b"".join([b"head" + data for data in datas]) + b"\x5a" * 8
    times = [10**15 + 1003 * number for number in range(len(datas))]
    records = Records(times, 3, page, (24, size + 4, size), [])
    events = [event for each in records.samples() if (event := decoder.event(each)).comm != "waits"]
    for event in events:  # what time is 0, and how wide columns are
        for form in both:
            form.line(Hit(target, event, None))
    wanted = [both[1].line(Hit(target, event, None)) for event in events]
    return several(records), wanted


class Everybody(Nobody):
    """Every thread is a process of which memory is looked at: it is gone, and nobody knows."""

    def __init__(self) -> None:
        self.visible = True

    def known(self, thread: int, nanoseconds: int) -> tuple[int, int]:
        return thread, nanoseconds + 1_000_000_000


@pytest.mark.parametrize("json_lines", [False, True], ids=["text", "jsonl"])
@given(
    rows=st.lists(ROWS, min_size=1, max_size=3),
    label=st.sampled_from(sorted(MANY)),
    comm=st.sampled_from(COMMS),
    edits=st.lists(st.tuples(st.integers(0, 79), st.integers(0, 255)), max_size=2),
)
def test_lines_together_are_those_one_by_one(
    json_lines: bool,
    rows: list[tuple[int, ...]],
    label: str,
    comm: bytes,
    edits: list[tuple[int, int]],
) -> None:
    plan = plan_of({"a": MANY["a"], label: MANY[label]})
    datas = [record(NUMBERS, [*row, comm]) for row in rows]
    for at, byte in edits:  # of the last record only
        datas[-1] = datas[-1][:at] + bytes([byte]) + datas[-1][at + 1 :]
    try:
        text, wanted = together(plan, NUMBERS_FORMAT, datas, json_lines)
    except TracerError:
        return
    assert text is None or text.split("\n") == (wanted or [""])


@pytest.mark.parametrize("json_lines", [False, True], ids=["text", "jsonl"])
@pytest.mark.parametrize("comm", COMMS)
def test_ordinary_records_are_read_together(json_lines: bool, comm: bytes) -> None:
    plan = plan_of({label: MANY[label] for label in "abcdefhijkm".replace("j", "")})
    datas = [record(NUMBERS, [NEAR, NEAR, one, 5, 7, -one, 1, comm]) for one in (1, 20, 300)]
    text, wanted = together(plan, NUMBERS_FORMAT, datas, json_lines)
    assert text is not None
    assert text.split("\n") == (wanted or [""])


NUMBERS_END = len(record(NUMBERS, [0, 0, 0, 0, 0, 0, 0, b"me"]))  # then as at ENDING
FIRST = NUMBERS_FORMAT.fields[0].offset
BPF_NUMBERS = NUMBERS_FORMAT.replaced(
    bpf=BpfRecord(
        NUMBERS_END, NUMBERS_END + 8, 8,
        tuple([(at, at + 8, bit) for bit, at in enumerate(range(FIRST + 16, FIRST + 40, 8))]),
        ((FIRST, FIRST + 16, NUMBERS_END + 16),), 1 << 16,
    )
)  # fmt: skip
READ = (FIRST, FIRST + 16)
ENDS = st.one_of(
    st.just((THREAD, 0, READ)),
    st.tuples(st.sampled_from([THREAD, 1]), st.sampled_from([0, 1, 4]),
              st.sampled_from([READ, (FIRST, FIRST + 8), (FIRST + 8, FIRST + 16)])),
)  # fmt: skip


def bpf_numbers(row: tuple[int, ...], process: int, faults: int, read: tuple[int, int]) -> bytes:
    """A record of an eBPF program: its process, its faults, and what of its block was read."""
    return record(NUMBERS, [*row, b"me"]) + struct.pack("=IIQHHI", process, 0, faults, *read, 0)


@pytest.mark.parametrize("json_lines", [False, True], ids=["text", "jsonl"])
@given(rows=st.lists(st.tuples(ROWS, ENDS), min_size=1, max_size=3), label=st.sampled_from("abde"))
def test_lines_of_bpf_records_together(
    json_lines: bool,
    rows: list[tuple[tuple[int, ...], tuple[int, int, tuple[int, int]]]],
    label: str,
) -> None:
    plan = plan_of({"a": MANY["a"], label: MANY[label]})
    datas = [bpf_numbers(row, *end) for row, end in rows]
    text, wanted = together(plan, BPF_NUMBERS, datas, json_lines)
    assert text is None or text.split("\n") == wanted
    if all(end == (THREAD, 0, READ) for _, end in rows):
        assert text is not None  # a 0 is in no doubt
    elif any(end[1:] != (0, READ) for _, end in rows):
        assert text is None


@pytest.mark.parametrize("there", [True, False, None])
def test_a_zero_of_memory_that_is_not_there(
    there: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode, "mapped", lambda thread, address: there)
    plan = plan_of({"a": MANY["a"]})
    datas = [record(NUMBERS, [NEAR, NEAR, one, 5, 7, 1, 1, b"me"]) for one in (3, 0)]
    text, wanted = together(plan, NUMBERS_FORMAT, datas, True)
    assert (text is None) is (there is False)
    assert text is None or text.split("\n") == wanted


def test_columns_are_wide_enough_first() -> None:
    plan = plan_of({"a": MANY["a"], "b": MANY["b"]})
    decoder = Decoder(NUMBERS_FORMAT, [plan], Nobody())
    target = Target("hit", plan, ("a", "b"))
    lines = TextLines([target], False)
    _, several = lines.readers(decoder, plan, target.labels, None)
    assert several is not None
    now = 10**15
    for value, wide in ((0, False), (0, True), (10, False), (7, True), (-7, True), (-10, False)):
        data = record(NUMBERS, [NEAR, NEAR, value, 5, 7, 1, 1, b"me"])
        records = Records([now], 0, b"head" + data, (4, len(data) + 4, len(data)), [])
        found = several(records)
        line = lines.line(Hit(target, decoder.event(records.samples()[0]), None))
        assert found == (line if wide else None)


def test_what_differs_within_a_page_is_not_read_together() -> None:
    plan = plan_of({"a": MANY["a"]})
    same = [record(NUMBERS, [NEAR, NEAR, one, 5, 7, 1, 1, b"me"]) for one in (1, 2)]
    assert together(plan, NUMBERS_FORMAT, same, True)[0] is not None
    for other in (
        record(NUMBERS, [NEAR, NEAR, 1, 5, 7, 1, 1, b"mo"]),  # another task
        same[0][:4] + struct.pack("<i", THREAD + 1) + same[0][8:],
        record(NUMBERS, [8, NEAR, 1, 5, 7, 1, 1, b"me"]),  # no address
    ):
        assert together(plan, NUMBERS_FORMAT, [*same, other], True)[0] is None


def test_a_memo_stays_small() -> None:
    made: list[object] = []

    def count(key: object) -> int:
        made.append(key)
        return len(made)

    memo = Memo(count)
    assert memo[b"a"] == memo[b"a"] == 1
    assert memo[b"a" * 300] != memo[b"a" * 300]
    for number in range(10_000):
        memo[struct.pack("<I", number)]
    assert len(memo) <= 4096
