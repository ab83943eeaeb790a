"""What an event fetches for the values that are wanted."""

from __future__ import annotations

from typing import Any

import pytest

import fetchc
from fetchc.tracer import caller_values, event_plan
from fetchc.tracer.events import COMM, PLAN_INDEX, Plan
from fetchc.tracer.filter_conditions import value_shape
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    Leaf,
    ListShape,
    NumbersShape,
    SequenceShape,
    Shape,
    StringShape,
    StructShape,
)
from tests.support.programs import fixture

KERNEL = "6.1"


def _probe(function: str, name: str = "c/layouts/gcc-O2-dwarf5") -> fetchc.Probe:
    return fetchc.open(str(fixture(name))).probe(function, kernel=KERNEL)


def _go(function: str = "main.(*server).handleRequest") -> fetchc.Probe:
    return _probe(function, "go/dnsforward/go1.27")


def _fetched(plan: Plan) -> list[str]:
    # But for the fault_probes, which come after the values and before the task's name.
    (line,) = plan.definitions
    fault_probes = tuple([f"{one.field}=" for one in plan.fault_probes])
    fetched = line.split(" ")[2:]
    assert [
        one for one in fetched[-1 - len(fault_probes) : -1] if not one.endswith(":string")
    ] == []
    return [one for one in fetched if not one.startswith(fault_probes)]


def _fault_probes(plan: Plan) -> list[str]:
    named = dict([one.split("=") for one in plan.definitions[0].split(" ")[2:]])
    return [named[one.field] for one in plan.fault_probes]


def test_the_kernel_tells_whether_a_number_could_be_read() -> None:
    probe = _probe("visit")
    # The highest byte of a number behind each pointer; the stack is always there.
    plan = probe.plan(["r->head->next->value", "r->head->value", "depth"], "fetchc_g")
    assert _fault_probes(plan) == ["+3(+8(+288(%di))):string", "+3(+288(%di)):string"]
    assert _fault_probes(probe.plan(["r->in", "r->head"], "fetchc_g")) == [
        "+81(%di):string",
        "+295(%di):string",
    ]
    assert _fault_probes(probe.plan(["*(int *)0x4000"], "fetchc_g")) == ["@0x4003:string"]


def test_fault_probes_give_way_to_values() -> None:
    probe = _probe("visit")
    many = [f"w{number}=*(long *)({number} * 64)" for number in range(60)]
    assert len(probe.plan(many[:40], "fetchc_g").fault_probes) == 40
    assert probe.plan(many, "fetchc_g").fault_probes == ()


def test_a_number_has_the_pointers_on_its_way() -> None:
    plan = _probe("visit").plan(["r->head->next->value", "depth"], "fetchc_g")
    assert _fetched(plan) == [
        "r_head_next_value=+0(+8(+288(%di))):s32",
        "fetchc_1=%di",
        "fetchc_2=+288(%di)",
        "fetchc_3=+8(+288(%di))",
        "depth=%si:s32",
        f"{COMM}=$comm",
    ]
    chain, register = [one.shape for one in plan.values]
    assert isinstance(chain, Leaf)
    assert isinstance(register, Leaf)
    assert [(g.field, g.moved) for g in chain.guards] == [
        ("fetchc_1", 288),
        ("fetchc_2", 8),
        ("fetchc_3", 0),
    ]
    assert register.guards == ()
    assert [one.label for one in plan.values] == ["r->head->next->value", "depth"]
    assert (plan.group, plan.event, plan.function, plan.kind) == (
        "fetchc_g", "visit", "visit", "entry",
    )  # fmt: skip


def test_what_two_chains_share_is_fetched_once() -> None:
    wanted = ["r->head", "r->head->value", "r->head->next->value", "v=r->head->value", "%di"]
    plan = _probe("visit").plan(wanted, "fetchc_g")
    bodies = [one.partition("=")[2] for one in _fetched(plan)]
    assert bodies == [
        "+288(%di):x64",
        "%di",
        "+0(+288(%di)):s32",
        "+0(+8(+288(%di))):s32",
        "+8(+288(%di))",
        "$comm",
    ]
    assert len(plan.values) == 5


def test_the_stack_and_globals_need_no_guard() -> None:
    name = "go/dnsforward/go1.15"
    plan = _probe("main.ten", name).plan(["a", "main.theServer.low"], "fetchc_g")
    bodies = [one.partition("=")[2] for one in _fetched(plan)]
    assert bodies[0] == "+8(%sp):s64"
    assert bodies[1].endswith("):s8")
    assert bodies[2].startswith("@+")  # the pointer that the global is
    assert len(bodies) == 4


def test_a_structure_is_its_bytes() -> None:
    plan = _probe("visit").plan(["it=r->in", "list=r->list", "r->name", "r->grid"], "fetchc_g")
    assert _fetched(plan) == [
        "it=+80(%di):s16",  # small enough to be fetched one by one
        "fetchc_1=%di",
        "fetchc_2=+84(%di):s32",
        "list=+192(%di):x64[3]",
        "r_name=+112(%di):x64[2]",
        "r_grid=+152(%di):x64[3]",
        f"{COMM}=$comm",
    ]


def test_nothing_is_read_past_the_end_of_an_object() -> None:
    plan = _probe("flags").plan(["*p"], "fetchc_g")
    assert _fetched(plan)[0] == "p=+0(%si):x64[3]"
    assert _fetched(plan)[1] == "fetchc_1=+24(%si):x8[4]"


def test_strings_come_with_their_lengths() -> None:
    plan = _go().plan(["r.Question[0].Name"], "fetchc_g")
    assert _fetched(plan) == [
        "r_Question_0_Name=+0(+0(+40(%di))):x64[32]",
        "fetchc_1=+8(+40(%di)):s64",
        "fetchc_2=%di",
        "fetchc_3=+40(%di)",
        "fetchc_4=+0(+40(%di))",
        "fetchc_5=+48(%di):s64",  # of the slice, whose element 0 may not be there
        f"{COMM}=$comm",
    ]
    inside = plan.values[0].shape
    assert isinstance(inside, BoundsCheckShape)
    assert inside.least == 1
    shape = inside.inner
    assert isinstance(shape, StringShape)
    assert shape.length is not None
    assert (shape.size, shape.length.field) == (256, "fetchc_1")


def test_slices_come_with_their_first_elements() -> None:
    plan = _go().plan(["main.levels", "s.aliases"], "fetchc_g")
    numbers, texts = [one.shape for one in plan.values]
    assert isinstance(numbers, SequenceShape)
    assert isinstance(numbers.elements, NumbersShape)
    assert (numbers.elements.count, numbers.elements.size) == (64, 2)
    assert isinstance(texts, SequenceShape)
    assert isinstance(texts.elements, ListShape)
    assert len(texts.elements.items) == 4


@pytest.mark.parametrize("wanted", ["s.cache", "len(s.cache)", "len(s.queue)"])
def test_a_map_that_is_nil_is_empty(wanted: str) -> None:
    (value,) = _go().plan([wanted], "fetchc_g").values
    count = value_shape(value.shape)
    assert isinstance(count, Leaf)
    assert [guard.empty for guard in count.guards] == [False, True]


def test_a_format_is_as_the_user_says() -> None:
    plan = _probe("visit").plan(["r->i:x16", "r->grid:s32[2]", "r->i"], "fetchc_g")
    assert [one.label for one in plan.values] == ["r->i:x16", "r->grid:s32[2]", "r->i"]
    assert [one for one in _fetched(plan) if not one.startswith("fetchc")] == [
        "r_i_x16=+8(%di):x16",
        "r_grid_s32_2=+152(%di):s32[2]",
        "r_i=+8(%di):s32",
    ]
    first, second, _ = [one.shape for one in plan.values]
    assert isinstance(first, Leaf)
    assert first.decode.kind == "address"  # a number to be shown in hexadecimal
    assert isinstance(second, NumbersShape)


def test_objects_are_cut_shorter_until_all_fit() -> None:
    probe = _go()
    sizes = []
    for count in (2, 12, 24):
        plan = probe.plan([f"q{i}=r.Question[{i}].Name" for i in range(count)], "fetchc_g")
        inside = plan.values[0].shape
        assert isinstance(inside, BoundsCheckShape)
        assert isinstance(inside.inner, StringShape)
        sizes.append(inside.inner.size)
    assert sizes == [256, 128, 64]


def test_what_never_fits_is_refused() -> None:
    probe = _go()
    with pytest.raises(fetchc.CompileError) as raised:
        probe.plan([f"q{i}=r.Question[{i}].Name" for i in range(80)], "fetchc_g")
    assert raised.value.diagnostics[0].code in ("FC0504", "FC0508")


def test_one_label_is_one_value() -> None:
    probe = _probe("visit")
    assert len(probe.plan(["r->i", "r->i"], "fetchc_g").values) == 1
    with pytest.raises(fetchc.CompileError) as raised:
        probe.plan(["a=r->i", "a=r->u"], "fetchc_g")
    assert raised.value.diagnostics[0].code == "FC0207"
    for name in (COMM, PLAN_INDEX):
        with pytest.raises(fetchc.CompileError, match="fetchc reserves the name") as raised:
            probe.plan([f"{name}=r->i"], "fetchc_g")
        assert raised.value.diagnostics[0].code == "FC0207"


def test_hidden_names_give_way() -> None:
    plan = _probe("visit").plan(["fetchc_1=depth", "r->i"], "fetchc_g")
    assert _fetched(plan) == [
        "fetchc_1=%si:s32", "r_i=+8(%di):s32", "fetchc_2=%di", f"{COMM}=$comm",
    ]  # fmt: skip


def test_an_argument_is_refused_alone() -> None:
    probe = _probe("visit")
    with pytest.raises(fetchc.CompileError) as raised:
        probe.asked("r->missing")
    assert raised.value.diagnostics[0].code == "FC0302"
    with pytest.raises(fetchc.CompileError) as raised:
        probe.asked("r->i @ chain")
    assert raised.value.diagnostics[0].code == "FC0206"
    warning = probe.asked("*r").warnings[0]
    assert warning.code == "FC0605"
    assert warning.notes == ("`tail`: `struct inner[]` has no fixed number of elements",)


def test_members_that_cannot_be_had_leave_no_trace() -> None:
    plan = _probe("visit").plan(["*r"], "fetchc_g")
    (value,) = plan.values
    assert isinstance(value.shape, StructShape)
    assert "tail" not in dict(value.shape.members)
    assert "words" in dict(value.shape.members)


def test_several_addresses_are_one_event() -> None:
    program = fetchc.open(str(fixture("go/dnsforward/go1.27")))
    probe = program.probe("main.(*server).forward", returns=True, kernel=KERNEL)
    plan = probe.plan(["$ret0"], "fetchc_g", "leaves")
    assert len(plan.definitions) > 1
    assert {line.split(" ")[0] for line in plan.definitions} == {"p:fetchc_g/leaves"}
    assert len({tuple(line.split(" ")[2:]) for line in plan.definitions}) == 1
    assert plan.kind == "return-site"


@pytest.mark.parametrize("binary", ["go/features/go1.27", "go/features/go1.15"])
def test_returns_with_a_value_in_one_place_are_laid_out_once(
    binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = fetchc.open(str(fixture(binary))).probe("main.(*store).get", returns=True, kernel="6.1")
    assert len(probe.each()) > 1
    shaped: list[str] = []
    argument_shape = caller_values.argument_shape

    def counted(*arguments: Any) -> Shape:
        shaped.append("value")
        return argument_shape(*arguments)

    monkeypatch.setattr(event_plan, "argument_shape", counted)
    plan = probe.plan(["err", "value"], "fetchc_t")
    assert len(shaped) == 4  # each when it is asked for, and in the event
    monkeypatch.setattr(event_plan, "_is_laid_out_alike", lambda checker: False)
    assert probe.plan(["err", "value"], "fetchc_t") == plan
    assert len(shaped) == 4 + 4 * len(probe.each())


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("(depth)", "(depth)"),
        (" ( (depth) ) ", "( (depth) )"),
        ("(depth):x32", "(depth):x32"),
        ("(r)->head", "(r)->head"),
        ("(int)(depth)", "(int)(depth)"),
        ("n=(depth)", "n"),
        ("(depth) @ visit", "(depth)"),
    ],
)
def test_a_label_is_the_expression_with_its_brackets(text: str, label: str) -> None:
    program = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5")))
    probe, bare = program.point(text) if "@" in text else (_probe("visit"), text)
    assert probe.asked(bare).label == label
