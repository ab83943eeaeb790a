"""What C for libbpf says by the kernel's version and the probe; its values: tests/live."""

from __future__ import annotations

import re

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.emit.output_formats import FORMATS, TESTING, WALKING, Event, Item, KernelPoint, written
from fetchc.ir.arithmetic import DOUBLE, Calculation, Fetched, Number
from fetchc.ir.fetch import (
    Array,
    Bits,
    Calculated,
    Comm,
    Cursor,
    Decode,
    Deref,
    ElementAddress,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    Register,
    Scalar,
    Store,
    Symbol,
    Term,
    Text,
    Value,
    Walk,
    Word,
)
from fetchc.ir.term_operators import Numeral, calculate, fails_where, negated
from fetchc.quantities import Address, FileOffset
from fetchc.target.kernel_versions import kernel

DI = Register("di")
S32 = Scalar("s", 32)


def item(value: Value, store: Store = S32, decode: str = "integer", name: str = "v") -> Item:
    return Item(name, name, Fetch(value, store), Decode(decode, 32, True), None)


def event(*items: Item, kind: str = "uprobe", version: str = "6.18", offset: int = 0x1139) -> Event:
    address = Address(0x400000 + offset)
    return Event(
        kind, "fetchc_x", "e", "/bin/x", address, FileOffset(offset), True, False, "x86_64", 8,
        kernel(version), items,
    )  # fmt: skip


def text(*events: Event) -> str:
    return written("bpf-c", events).text


def test_a_program_sleeps_where_the_kernel_allows_it() -> None:
    new, old = (text(event(item(Deref(DI, 8)), version=one)) for one in ("6.0", "5.15"))
    assert ('SEC("uprobe.s")' in new, "bpf_copy_from_user(to" in new) == (True, True)
    assert ('SEC("uprobe")' in old, "bpf_copy_from_user" in old) == (True, False)
    assert "    if (read(&e->v, sizeof(e->v), rdi + 8))\n" in old


@pytest.mark.parametrize(
    ("value", "version", "sections"),
    [
        (DI, "6.18", ['SEC("uprobe.multi.s")']),
        (DI, "6.1", ['SEC("uprobe.s")']),
        # The distance to the file's memory is not the same in both places.
        (Deref(Image(0x4010), 0), "6.18", ['SEC("uprobe.s")'] * 2),
    ],
)
def test_addresses_with_the_same_values_share_a_program(
    value: Value, version: str, sections: list[str]
) -> None:
    both = [event(item(value), version=version, offset=offset) for offset in (0x1139, 0x1150)]
    program, _, loaders = text(*both).partition("/* A loader")
    assert [line for line in program.splitlines() if line.startswith('SEC("u')] == sections
    assert ("0x1139" in loaders, "0x1150" in loaders) == (True, True)
    assert loaders.count("bpf_program__attach") == (1 if ".multi" in sections[0] else 2)


def test_the_semaphore_of_a_static_probe_is_raised() -> None:
    counted = event(item(DI)).replaced(semaphore=FileOffset(0x3010), static="a:b")
    found = text(counted)
    assert "file offset 0x1139, semaphore at 0x3010" in found
    assert (".ref_ctr_offset = 0x3010" in found, "RefCtrOffset: 0x3010" in found) == (True, True)


def test_names_that_c_or_the_event_has_end_in_an_underscore() -> None:
    numbers = [item(DI, name=name) for name in ("int", "w", "int_", "TEXT_BYTES")]
    found = text(event(*numbers, item(Comm(), Text(), name="pid")))
    for line in ("__s32 int_;", "char pid_[16];", "__s32 w;", "e->int_ = (__s32)rdi;"):
        assert line in found
    assert "__s32 int__;  // bit 2: int_\n    __s32 TEXT_BYTES_;" in found


def test_numbers_have_the_width_and_sign_of_their_member() -> None:
    flag = Item("b", "b", Fetch(Deref(DI, 4), Bits(5, 3, 16)), Decode("integer", 5, True), None)
    found = text(event(item(Immediate((1 << 64) - 1), Scalar("s", 8)), flag))
    assert "e->v = (__s8)0xffffffffffffffffULL;" in found
    assert "e->b = (__s64)((__u64)word << 56) >> 59;" in found


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (event(item(Deref(DI, 8), Array(Text(), 2))), "it has no lists of strings"),
        (event(item(Deref(DI, 8), Array(Bits(1, 0, 8), 2))), "it has no lists of bit fields"),
        (event(item(DI, Symbol())), "it names addresses of the kernel"),
        (event(item(DI, Text())), "it is in no memory"),
        (event(item(Deref(Deref(DI, 0), 1 << 55))), "it is too far behind a pointer"),
        (event(item(KernelValue("argument", "$arg1"))), "the kernel alone has it"),
        (event(item(Deref(Image(8), 0)), kind="uretprobe"), "not known when a function returns"),
        (event(item(Register("xyz"))), "it has no register `xyz`"),
        (event(*[item(DI, name=f"v{n}") for n in range(65)]), "64 fault bits, not 65"),
        (event(item(DI), version="5.4"), "Linux before 5.8"),
        (event(item(DI)).replaced(machine="riscv64"), "the registers of riscv64"),
        (event().replaced(point=KernelPoint("f", "", 0, ())), "a probe of the kernel"),
        (event(item(DI)).replaced(path="/bin/*/x"), "which C would read otherwise"),
    ],
)
def test_what_it_cannot_carry_is_refused_by_name(wrong: Event, why: str) -> None:
    with pytest.raises(CompileError) as refused:
        text(wrong)
    assert why in str(refused.value)


def test_what_is_computed_has_a_fault_bit_for_its_operands() -> None:
    s32 = Number(32, True)
    quotient = Calculation("/", ((Fetched(0), s32), (Fetched(1), s32)), s32, "c", s32)
    whole = (quotient, Decode("integer", 32, True))
    one, two, after = item(Deref(DI, 8)), item(Register("si")), item(DI, name="w")
    found = text(event(one.replaced(computed=whole), two.replaced(computed=whole), after))
    assert "__s32 v;  // bit 0: v\n    __s32 w;  // bit 1: w\n" in found
    assert "bool unread = read(&operand, sizeof(operand), rdi + 8);" in found
    assert (
        "if (unread || !operand2 || (operand2 == -1 && operand == (__s32)0x80000000U)) {\n"
        "            e->v = 0;\n            e->faults |= 1ULL << 0;"
    ) in found
    assert "e->v = quotient(operand, operand2);" in found.replace("(__s32)quotient", "quotient")
    assert "static __always_inline __s64 quotient(" in found


def test_floating_point_is_not_computed() -> None:
    double = Calculation("-", ((Fetched(0), DOUBLE),), DOUBLE, "c", DOUBLE)
    computed = item(Deref(DI, 8)).replaced(computed=(double, Decode("float", 64)))
    with pytest.raises(CompileError) as refused:
        text(event(computed))
    assert "BPF has no floating-point numbers" in str(refused.value)


def test_an_element_of_floating_point_numbers_is_its_bits() -> None:
    s32 = Number(32, True)
    element = Calculation("[]", ((Fetched(0), s32), (Fetched(1), DOUBLE)), DOUBLE, "c", DOUBLE, 4)
    double = item(Deref(DI, 8), Scalar("x", 64), "float")
    computed = [
        one.replaced(computed=(element, Decode("float", 64)))
        for one in (item(Register("si")), double)
    ]
    found = text(event(*computed))
    assert "    __u64 v;  // bit 0: v: the bits of the number\n" in found
    assert "if (index >= 4 || unread) {" in found
    assert "e->v = operand2;" in found


def test_an_element_by_index_is_not_the_first_one() -> None:
    s32 = Number(32, True)
    element = Calculation("[]", ((Fetched(0), s32), (Fetched(1), s32)), s32, "c", s32, 4)
    whole = Calculation("+", ((element, s32), (Fetched(2), s32)), s32, "c", s32)
    fetched = [item(Register("si")), item(Deref(DI, 8)), item(Deref(DI, 8))]
    computed = [one.replaced(computed=(whole, Decode("integer", 32, True))) for one in fetched]
    found = text(event(*computed))
    assert "read(&operand2, sizeof(operand2), rdi + 8 + index * sizeof(operand2));" in found
    assert "read(&operand3, sizeof(operand3), rdi + 8);" in found
    assert "__u64 index = (__u64)operand;" in found
    assert "e->v = (__s32)((__u32)operand2 + operand3);" in found


def walked(*entry: Item, count: Value | None = None, name: str = "v") -> Item:
    """A list that the register di leads to: the first word of an element leads to the next one."""
    end = Calculated("eq", Cursor(0), 0)
    start: tuple[Value, ...] = (DI,)
    following: tuple[Value, ...] = (Deref(Cursor(0), 0),)
    whole = None
    if count is not None:
        start, following, whole = (*start, count), (*following, Cursor(1)), Cursor(1)
    rounds = Walk(start, end, 1, (), following, whole, None, None, (), 32, 4096, True)
    return item(rounds, Word(), "list", name).replaced(entry=entry)


@pytest.mark.parametrize(
    ("version", "call"),
    [
        ("5.17", "        bpf_loop(4096, round_e_v, context, 0);"),
        ("5.10", "for (__u32 round = 0; round < 48; round++)"),
    ],
)
def test_the_rounds_of_a_walk_are_calls_of_a_function(version: str, call: str) -> None:
    entry = item(Deref(Cursor(0), 8), name="value")
    found = text(event(walked(entry), version=version))
    for line in (
        "    __s32 value;  // bit 0: value\n};\n\nstruct e_event {",
        "    struct e_v_entry v[32];  // bit 0: the walk came to what cannot be read\n",
        "static long round_e_v(__u32 round, void *context)\n",
        "    if (e->v_place == 0) {\n        e->v_ended = true;\n        return 1;\n    }\n",
        "    unread |= read(&loaded1, 8, e->v_place);\n    if (unread) {\n"
        "        e->faults |= 1ULL << 0;\n        return 1;\n    }\n",
        "        if (read(&entry->value, sizeof(entry->value), e->v_place + 8))\n"
        "            entry->faults |= 1ULL << 0;\n",
        "    e->v_place = loaded1;\n",
        "    __u64 rdi = ctx->rdi;\n    struct e_event *e = *context;\n",
        call,
    ):
        assert line in found
    assert found.count("        walk_e_v(ctx, &context);\n") == 2


def test_another_number_of_entries_after_a_walk_is_a_change() -> None:
    counted, taken = (walked(item(DI), count=DI), item(DI, name="v_count"))
    found = text(event(counted.replaced(entry=(item(Deref(Cursor(0), 8)),)), taken))
    assert "__s32 v_count;" in found  # the member's name is the user's
    assert "e->v_count_ = e->v_word1;" in found
    assert "e->v_changed |= e->v_word1 != e->v_count_ || (e->v_ended && " in found
    assert "if (number >= 32)\n        return 1;" in found


def test_a_condition_is_tested_before_there_is_an_event() -> None:
    flag = item(Register("si"), name="n")
    found = text(event(item(DI)).replaced(conditions=((item(Deref(DI, 8), name="c"),), (flag,))))
    tested, _, sent = found.partition("    e = bpf_ringbuf_reserve")
    for line in (
        "    { // only where c\n",
        "        if (unread || !(operand != 0))\n            return 0;\n",
        "        if (!(operand != 0))\n            return 0;\n",
    ):
        assert line in tested
    assert "only where" not in sent


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ((item(Deref(DI, 8), Text()),), "a condition is a whole number"),
        ((item(Deref(DI, 8), Scalar("x", 64), "float"),), "a condition is a whole number"),
        ((item(DI, name="tag"), item(Deref(DI, 8))), "a condition is a whole number"),
        ((walked(item(DI)),), "a condition walks no container"),
    ],
    ids=["string", "float", "structure", "container"],
)
def test_a_condition_is_one_whole_number(condition: tuple[Item, ...], why: str) -> None:
    # Of a structure the first member decided, of a floating-point number the bits: -0.0 was true.
    with pytest.raises(CompileError, match=why):
        text(event(item(DI)).replaced(conditions=(condition,)))


@pytest.mark.parametrize("format", sorted({*FORMATS} - {*TESTING}))
def test_other_formats_test_no_condition(format: str) -> None:
    with pytest.raises(CompileError) as refused:
        written(format, [event(item(DI)).replaced(conditions=((item(DI),),))])
    assert "cannot test a condition" in str(refused.value)


def test_walks_of_two_events_have_names_of_their_own() -> None:
    entry = item(Deref(Cursor(0), 8), name="value")
    events = [
        event(walked(entry, name=name), offset=offset).replaced(event=one)
        for one, name, offset in (("work", "a_b", 0x1139), ("work_a", "b", 0x1150))
    ]
    defined = re.findall(r"^(?:struct|static|int) .*?(\w+) ?(?:{|\()", text(*events), re.M)
    assert len(defined) == len(set(defined)) > 10


def element(count: int | None = 4) -> Value:
    """The element of 16 bytes by an index in si, where the register di leads to."""
    index = Calculated("and", Register("si"), (1 << 32) - 1)
    address: Term = Calculated("add", DI, Calculated("mul", index, 16))
    if count is not None:
        beyond = negated(calculate("lt", index, count))
        address = fails_where(beyond, Numeral(address, Number(64, False)), None).term
    return ElementAddress(address)


def test_an_element_that_is_out_of_range_is_nowhere() -> None:
    found = text(event(item(Deref(element(), 8)), item(element(None), Word(), "address", "w")))
    for line in (
        "    __u64 element1 = NOWHERE;\n    { // the element of v\n        bool unread = false;\n",
        "        unread |= value1 >= 4;\n        if (!unread)\n"
        "            element1 = rdi + (value1 * 16);\n    }\n"
        "    if (read(&e->v, sizeof(e->v), element1 + 8))\n",
        "    __u64 element2 = rdi + ((rsi & 0xffffffffULL) * 16);  // the element of w\n",
        "    if (element2 == NOWHERE)\n        e->faults |= 1ULL << 1;\n",
    ):
        assert line in found


def test_the_address_of_an_element_is_computed_once_for_members_side_by_side() -> None:
    # The verifier follows each way that one has come about, for as long as it is needed.
    one, two = Deref(element(), 8), Deref(element(5), 8)
    found = text(
        event(*[item(one, name=f"v{n}") for n in range(3)], item(two), item(one, name="w"))
    )
    assert re.findall(r"    __u64 (element\d) =|(element\d) \+ 8", found) == [
        *[("element1", ""), *[("", "element1")] * 3],
        *[("element2", ""), ("", "element2"), ("element3", ""), ("", "element3")],
    ]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (item(Deref(Register("si"), 8)), "it is not in the entry of the container"),
        (item(Deref(Cursor(0), 8), Array(S32, 4096)), "have 524288 bytes, and an event holds"),
    ],
)
def test_entries_that_it_cannot_carry_are_refused(entry: Item, why: str) -> None:
    with pytest.raises(CompileError) as refused:
        text(event(walked(entry)))
    assert why in str(refused.value)


@pytest.mark.parametrize("format", sorted({*FORMATS} - {*WALKING}))
def test_other_formats_do_not_walk(format: str) -> None:
    with pytest.raises(CompileError) as refused:
        written(format, [event(walked(item(Deref(Cursor(0), 8))))])
    assert refused.value.diagnostics[0].code == "FC0314"
