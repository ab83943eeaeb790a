"""What is written for perf and bpftrace, from fetches alone."""

from __future__ import annotations

import re

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.emit.output_formats import FORMATS, Event, Item, KernelPoint, settled, written
from fetchc.ir.arithmetic import Number
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Decode,
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
    Store,
    Symbol,
    Term,
    Text,
    Value,
    Word,
)
from fetchc.ir.term_operators import Numeral, calculate, converted, fails_where, negated
from fetchc.quantities import Address, FileOffset
from fetchc.target.kernel_versions import kernel

DI = Register("di")
INTEGER = Decode("integer", 32, True)


def item(value: Value, store: Store, decode: Decode = INTEGER, name: str = "v") -> Item:
    return Item(name, name, Fetch(value, store), decode, None)


def event(
    *items: Item,
    kind: str = "uprobe",
    path: str = "/bin/x",
    start: bool = True,
    ambiguous: bool = False,
    machine: str = "x86_64",
    semaphore: FileOffset | None = None,
    static: str = "",
    point: KernelPoint | None = None,
) -> Event:
    rules = kernel("6.18")
    address, offset = Address(0x401139), FileOffset(0x1139)
    return Event(
        kind, "fetchc_x", "e", path, address, offset, start, ambiguous, machine, 8, rules, items,
        semaphore, static=static, point=point,
    )  # fmt: skip


def expression(one: Item, *more: Item, kind: str = "uprobe") -> str:
    """What bpftrace prints of a value, with its conversion."""
    text = written("bpftrace", [event(one, *more, kind=kind)]).text
    conversion = re.search(r" v=(\S+?)(?:\\n| )", text)
    argument = re.search(r"^        (.*?)(?:\);|,)  // v$", text, re.MULTILINE)
    assert conversion
    assert argument, text
    return f"{conversion[1]} {argument[1]}"


@pytest.mark.parametrize(
    ("value", "store", "shown"),
    [
        (DI, Word(), '0x%llx reg("di")'),
        (DI, Scalar("s", 32), '%lld (int32)reg("di")'),
        (DI, Scalar("u", 64), '%llu reg("di")'),
        (DI, Scalar("s", 64), '%lld (int64)reg("di")'),
        (DI, Char(), "'%c' (uint8)reg(\"di\")"),
        (Deref(DI, 0), Scalar("s", 16), '%lld *(int16*)(reg("di"))'),
        (Deref(DI, -8), Scalar("x", 8), '0x%llx *(uint8*)(reg("di") - 8)'),
        (Deref(Deref(DI, 8), 16), Word(), '0x%llx *(uint64*)(*(uint64*)(reg("di") + 8) + 16)'),
        (Deref(Deref(DI, 8), 4), Text(), '\\"%s\\" str(*(uint64*)(reg("di") + 8) + 4)'),
        (StackPointer(), Word(), '0x%llx reg("sp")'),
        (StackEntry(2), Scalar("u", 8), '%llu (uint8)*(uint64*)(reg("sp") + 16)'),
        (Comm(), Text(), '\\"%s\\" comm'),
        (Deref(Absolute(0x404010), 4), Scalar("s", 32), "%lld *(int32*)(uptr(0x404014))"),
        # The global at 0x5000 of the file: 0x3ec7 after the probed instruction.
        (Deref(Image(0x5000), 0), Scalar("s", 32), '%lld *(int32*)(reg("ip") + 16071)'),
        (Immediate(-1), Scalar("s", 64), "%lld -1"),
        (Immediate(0x1FF), Scalar("u", 8), "%llu 255"),
        (Immediate(-1), Scalar("u", 64), "%llu 0xffffffffffffffff"),
    ],
)
def test_values(value: Value, store: Store, shown: str) -> None:
    assert expression(item(value, store)) == shown


def test_bits() -> None:
    field = Deref(DI, 4)
    unsigned = Decode("integer", 5)
    assert expression(item(field, Bits(5, 3, 8), unsigned)) == (
        '%llu (*(uint8*)(reg("di") + 4) >> 3) & 0x1f'
    )
    signed = Decode("integer", 5, True)
    assert expression(item(field, Bits(5, 0, 32), signed)) == (
        '%lld (int64)((*(uint32*)(reg("di") + 4) & 0x1f) ^ 0x10) - 0x10'
    )
    assert expression(item(DI, Bits(32, 32, 64), unsigned)) == (
        '%llu (reg("di") >> 32) & 0xffffffff'
    )
    whole = Decode("integer", 64, True)
    assert expression(item(field, Bits(64, 0, 64), whole)) == (
        '%lld (int64)*(uint64*)(reg("di") + 4)'
    )


def test_counted_text() -> None:
    text = Item("v", "v", Fetch(Deref(Deref(DI, 0), 0), Array(Scalar("x", 64), 32)),
                Decode("text", 64, count=32), "v_len")  # fmt: skip
    length = Item(
        "v_len", "", Fetch(Deref(DI, 8), Scalar("s", 64)), Decode("integer", 64, True), None
    )
    assert expression(text, length) == (
        '\\"%s\\" str(*(uint64*)(reg("di")), (uint64)(*(int64*)(reg("di") + 8)) + 1)'
    )
    line = written("perf", [event(text, length)]).text
    assert "v=+0(+0(%di)):x8[64] v_64=+64(+0(%di)):x8[64] v_128=" in line
    assert line.endswith("v_len=+8(%di):s64'")


def test_returns() -> None:
    value = item(ReturnValue(), Scalar("s", 32))
    assert expression(value, kind="uretprobe") == "%lld (int32)retval"
    line = written("perf", [event(value, kind="uretprobe")]).text
    assert line == "perf probe -x /bin/x 'fetchc_x:e=0x1139%return v=$retval:s32'"
    image = item(Deref(Image(0), 0), Word())
    with pytest.raises(CompileError, match="FC0514"):
        written("bpftrace", [event(image, kind="uretprobe")])


@pytest.mark.parametrize(
    ("version", "head", "limit", "counted", "field", "entry"),
    [
        ("0.17.0", "BPFTRACE_STRLEN=200 bpftrace", "4", "{}", "args->file", "kfunc"),
        ("0.19", "BPFTRACE_STRLEN=200 bpftrace", "4", "{}", "args.file", "kfunc"),
        ("0.22.0", "BPFTRACE_STRLEN=200 bpftrace", "4", "{}", "args.file", "fentry"),
        ("0.23.0", "bpftrace", "5", "(uint64)({}) + 1", "args.file", "fentry"),
        ("v0.26.1", "bpftrace", "5", "(uint64)({}) + 1", "args.file", "fentry"),
        ("", "bpftrace", "5", "(uint64)({}) + 1", "args.file", "fentry"),
    ],
)
def test_versions_of_bpftrace(
    version: str, head: str, limit: str, counted: str, field: str, entry: str
) -> None:
    four = item(Deref(DI, 128), Text(), Decode("text", limit=4), "four")
    text = Item("v", "v", Fetch(Deref(Deref(DI, 0), 0), Array(Scalar("x", 64), 32)),
                Decode("text", 64, count=32), "v_len")  # fmt: skip
    length = item(Deref(DI, 8), Scalar("u", 8), name="v_len")
    made = written("bpftrace", [event(four, text, length)], version=version).text
    assert made.startswith(f"#!/usr/bin/env -S {head}\n")
    assert f'str(reg("di") + 128, {limit})' in made
    size = counted.format('*(uint8*)(reg("di") + 8)')
    assert f'str(*(uint64*)(reg("di")), {size})' in made
    file = item(KernelValue("argument", "$arg1"), Word())
    kernel = written("bpftrace", [event(file, kind="fprobe", point=READ)], version=version).text
    assert f"\n{entry}:vfs_read\n" in kernel
    assert field in kernel


def test_bpftrace_computes_the_place_of_an_element() -> None:
    # `items[n]` of a pointer, of 16 bytes each, as many as the word behind it says; `n` is a short.
    items, index = Deref(DI, 0), converted(Register("si"), Number(16, True)).term
    address: Term = calculate("add", items, calculate("mul", index, 16))
    beyond = negated(calculate("lt", index, Part(DI, 8, 4)))
    found = fails_where(beyond, Numeral(address, Number(64, False)), None).term
    element = item(Deref(ElementAddress(found), 8), Scalar("s", 32))
    made = written("bpftrace", [event(element)]).text
    assert made.partition("{\n")[2].partition('    printf("')[0] == (
        '    $reg_di = reg("di");\n'
        '    $reg_si = reg("si");\n'
        "    $v_0 = (uint64)*(uint64*)($reg_di);\n"
        "    $v_1 = (uint64)*(uint32*)($reg_di + 8);\n"
        "    $v_2 = ((uint64)(int64)(int16)(uint64)$reg_si >= $v_1 || $v_0 == 0"
        " ? (uint64)0xff80000000000000"
        " : ($v_0 + ((uint64)(int64)(int16)(uint64)$reg_si * (uint64)16)));\n"
    )
    assert "*(int32*)(uptr($v_2 + 8))" in made


def test_a_bpftrace_that_is_too_old_is_refused() -> None:
    with pytest.raises(CompileError, match=r"bpftrace 0\.9 is older than 0\.17"):
        written("bpftrace", [event()], version="0.9")


def test_a_line_of_bpftrace_fits_the_stack() -> None:
    numbers = [item(Deref(DI, 4 * n), Scalar("s", 32), name=f"n{n}") for n in range(90)]
    texts = [item(Deref(DI, n), Text(), Decode("text"), f"t{n}") for n in range(3)]
    lines = [
        line
        for line in written("bpftrace", [event(*numbers, *texts)]).text.splitlines()
        if "printf" in line
    ]
    assert [line.count("%lld") for line in lines] == [40, 40, 10, 0, 0, 0]
    assert [line.count('\\"%s\\"') for line in lines] == [0, 0, 0, 1, 1, 1]


def test_long_lists_are_ranges() -> None:
    many = item(Deref(DI, 0), Array(Scalar("u", 8), 64), Decode("integer", 8, count=64))
    text = written("bpftrace", [event(many)]).text
    assert " v[0:40]={%llu," in text
    assert " v[40:64]={%llu," in text


@pytest.mark.parametrize(
    ("start", "ambiguous", "point", "unsafe", "codes"),
    [
        (True, True, 0x401139, False, []),
        (False, False, 0x1139, True, []),
        (False, True, 0x401139, False, ["FC0610"]),
    ],
)
def test_where_bpftrace_attaches(
    start: bool, ambiguous: bool, point: int, unsafe: bool, codes: list[str]
) -> None:
    result = written("bpftrace", [event(item(DI, Word()), start=start, ambiguous=ambiguous)])
    assert f'uprobe:"/bin/x":{point:#x}\n' in result.text
    assert result.text.splitlines()[0].endswith(" --unsafe") == unsafe
    assert [each.code for each in result.warnings] == codes


@pytest.mark.parametrize("path", ["/a*b", "/a?b", "/a[b", '/a"b', "/a\\b", "/a\nb", "/a:b"])
def test_paths_that_bpftrace_cannot_have(path: str) -> None:
    with pytest.raises(CompileError, match="FC0510"):
        written("bpftrace", [event(item(DI, Word()), path=path)])


def test_what_a_tool_cannot_carry() -> None:
    symbol = item(DI, Symbol())
    with pytest.raises(CompileError, match="FC0514"):
        written("bpftrace", [event(symbol)])
    with pytest.raises(CompileError, match="FC0514"):
        written("bpftrace", [event(item(DI, Word()), machine="s390x")])
    for store in (Char(), Array(Char(), 4)):
        with pytest.raises(CompileError, match="FC0514"):
            written("perf", [event(item(Deref(DI, 0), store))])


def test_perf_takes_a_name_once() -> None:
    text = written("perf", [event(item(DI, Word())), event(item(DI, Word()))]).text
    assert [line.split("'")[1].split("=")[0] for line in text.splitlines()] == [
        "fetchc_x:e",
        "fetchc_x:e_2",
    ]


def test_perf_lists_and_signs() -> None:
    numbers = item(Deref(DI, 8), Array(Scalar("s", 32), 2))
    short = item(Deref(DI, 0), Scalar("s", 8), name="short")
    texts = item(Deref(DI, 16), Array(Text(), 2), Decode("text", count=2), "t")
    result = written("perf", [event(numbers, short, texts)])
    assert result.text == (
        "perf probe -x /bin/x 'fetchc_x:e=0x1139 v_0=+8(%di):s32 v_1=+12(%di):s32"
        " short=+0(%di):s8 t_0=+0(+16(%di)):string t_1=+0(+24(%di)):string'"
    )
    assert [each.code for each in result.warnings] == ["FC0611", "FC0625"]


def test_perf_shows_another_text_in_place_of_one_that_is_not_there() -> None:
    first = item(Deref(Deref(DI, 8), 0), Text(), Decode("text"), "first")
    middle = item(DI, Word(), name="middle")
    last = item(Deref(DI, 16), Text(), Decode("text"), "last")
    (warning,) = written("perf", [event(first, middle, last)]).warnings
    assert warning.code == "FC0625"
    assert warning.message == "perf shows the next string of the event where `first` cannot be read"
    for alone in ([first, middle], [item(Comm(), Text(), Decode("text"), "comm"), last]):
        assert written("perf", [event(*alone)]).warnings == ()


def test_perf_asks_the_kernels_rules() -> None:
    with pytest.raises(CompileError, match="FC0510"):
        written("perf", [event(item(DI, Word()), path="/a b")])


def test_every_format_says_which_warnings_it_settles() -> None:
    for name in FORMATS:
        assert all(code.startswith("FC06") for code in settled(name))


def test_static_probes_by_name() -> None:
    one = item(DI, Scalar("s", 32))
    made = written(
        "bpftrace", [event(one, start=False, semaphore=FileOffset(0x3010), static="python:line")]
    )
    assert 'usdt:"/bin/x":python:line\n{' in made.text
    assert "--unsafe" not in made.text
    assert made.warnings == ()
    uncounted = event(one, start=False, ambiguous=True, static="lib:go")
    made = written("bpftrace", [uncounted])
    assert 'usdt:"/bin/x":lib:go\n{' in made.text
    assert made.warnings == ()
    by_offset = written("bpftrace", [event(one, start=False, static="lib:go")]).text
    assert 'uprobe:"/bin/x":0x1139\n{' in by_offset
    for format, static in (("perf", "python:line"), ("bpftrace", "")):
        with pytest.raises(CompileError, match="semaphore"):
            written(format, [event(one, start=False, semaphore=FileOffset(0x3010), static=static)])


READ = KernelPoint("vfs_read", "", 0, (("$arg1", "file"), ("$arg3", "count")))
OPENED = KernelPoint(
    "syscalls:sys_enter_openat", "", 0, (("$filename", "filename"), ("$comm", "comm")), ("comm",)
)


def kernel_expression(one: Item, kind: str, point: KernelPoint = READ) -> str:
    text = written("bpftrace", [event(one, kind=kind, point=point)]).text
    argument = re.search(r"^        (.*?)\);  // v$", text, re.MULTILINE)
    assert argument, text
    return argument[1]


COUNT = KernelValue("argument", "$arg3")


@pytest.mark.parametrize(
    ("kind", "value", "store", "shown"),
    [
        ("kprobe", Deref(DI, 8), Scalar("u", 32), '*(uint32*)(reg("di") + 8)'),
        ("kprobe", COUNT, Scalar("u", 64), "(uint64)arg2"),
        ("kprobe", Deref(DI, 8, user=True), Scalar("u", 32), '*(uint32*)(uptr(reg("di") + 8))'),
        ("kprobe", Deref(DI, 0), Text(user=True), 'str(uptr(reg("di")))'),
        ("kprobe", Deref(KernelValue("symbol", "@jiffies"), 8), Scalar("u", 64),
         '*(uint64*)(kaddr("jiffies") + 8)'),
        ("kprobe", Deref(Absolute(0x10), 8), Word(), "*(uint64*)(0x18)"),
        ("kprobe", Deref(KernelValue("current", "$current"), 16), Scalar("s", 32),
         "*(int32*)((uint64)curtask + 16)"),
        ("kprobe", DI, Symbol(), 'ksym(reg("di"))'),
        ("kretprobe", ReturnValue(), Scalar("s", 32), "(int32)retval"),
        ("fprobe", COUNT, Scalar("u", 32), "(uint32)(uint64)args.count"),
        ("fexit", Deref(KernelValue("argument", "$arg1"), 40), Text(),
         "str((uint64)args.file + 40)"),
    ],
)  # fmt: skip
def test_values_in_the_kernel(kind: str, value: Value, store: Store, shown: str) -> None:
    assert kernel_expression(item(value, store), kind) == shown


def test_texts_of_events() -> None:
    for name, shown in (("comm", "args.comm"), ("filename", "str(args.filename)")):
        field = item(KernelValue("event_field", f"${name}"), Text())
        assert kernel_expression(field, "eprobe", OPENED) == shown
    field = item(KernelValue("event_field", "$COMM"), Text())
    assert kernel_expression(field, "eprobe", OPENED) == "comm"
    for value in (
        Deref(KernelValue("event_array", "$args"), 8), KernelValue("event_field", "$comm")
    ):  # fmt: skip
        with pytest.raises(CompileError, match="the elements of an event's array alone"):
            kernel_expression(item(value, Scalar("u", 64)), "eprobe", OPENED)


def test_places_in_the_kernel() -> None:
    inside = KernelPoint("vfs_read", "", 16, ())
    for kind, point, place, named in (
        ("kprobe", READ, "kprobe:vfs_read", "vfs_read"),
        ("kprobe_inside", inside, "kprobe:vfs_read+16", "vfs_read+16"),
        ("kretprobe", READ, "kretprobe:vfs_read", "vfs_read%return"),
    ):
        made = event(kind=kind, point=point)
        text = written("bpftrace", [made]).text
        assert f"\n{place}\n{{" in text
        # In a function bpftrace needs to know that the address is an instruction's.
        assert text.splitlines()[0].endswith(" --unsafe") == (point is inside)
        assert written("perf", [made]).text == f"perf probe fetchc_x:e={named}"
    for kind, place in (("fprobe", "fentry:vfs_read"), ("fexit", "fexit:vfs_read")):
        assert f"\n{place}\n{{" in written("bpftrace", [event(kind=kind, point=READ)]).text
    of_module = KernelPoint("loop_open", "loop", 0, ())
    made = event(kind="kprobe", point=of_module)
    assert written("perf", [made]).text == "perf probe -m loop fetchc_x:e=loop_open"


def test_what_a_tool_cannot_carry_of_the_kernel() -> None:
    count, unnamed = item(COUNT, Word()), item(KernelValue("argument", "$arg2"), Word())
    with_room = KernelPoint("vfs_read", "", 0, (), (), True)
    others = ("fprobe", "fexit", "tprobe", "eprobe")
    refused = [
        ("bpftrace", event(count, kind="kretprobe", point=READ)),
        ("bpftrace", event(unnamed, kind="fprobe", point=READ)),
        ("bpftrace", event(kind="tprobe", point=READ)),
        *[("perf", event(kind=kind, point=READ)) for kind in others],
        ("perf", event(kind="kretprobe", point=with_room)),
    ]
    for format, made in refused:
        with pytest.raises(CompileError, match="FC0514"):
            written(format, [made])
