"""Plans with equal argument lists share an event of the kernel."""

from __future__ import annotations

import pytest

from fetchc.target.kernel_versions import kernel
from fetchc.tracer.events import Plan
from fetchc.tracer.install import kernel_events, own_names

NEW, OLD = kernel("6.18"), kernel("5.3")
GROUP = "fetchc_1_2_3"


def plan(event: str, arguments: str, *offsets: int, letter: str = "p") -> Plan:
    lines = tuple(
        f"{letter}:{GROUP}/{event} /bin/true:{offset:#x} {arguments}" for offset in offsets or (16,)
    )
    return Plan(GROUP, event, "/bin/true", event, "entry", 0, lines, ())


def test_equal_lists_become_one_event_with_numbers() -> None:
    one, two = plan("one", "n=%di:s32 c=$comm", 16, 32), plan("two", "n=+8(%si):s32 c=$comm", 48)
    (event,) = kernel_events([one, two], {}, NEW)
    assert event.event == "one"
    assert event.plans == (one, two)
    assert event.definitions == (
        f"p:{GROUP}/one /bin/true:0x10 n=%di:s32 c=$comm fetchc_which=\\0:u32",
        f"p:{GROUP}/one /bin/true:0x20 n=%di:s32 c=$comm fetchc_which=\\0:u32",
        f"p:{GROUP}/one /bin/true:0x30 n=+8(%si):s32 c=$comm fetchc_which=\\1:u32",
    )


def test_a_plan_without_its_like_is_left_as_it_is() -> None:
    one = plan("one", "n=%di:s32")
    (event,) = kernel_events([one], {}, NEW)
    assert event.definitions == one.definitions


@pytest.mark.parametrize(
    "other",
    [
        plan("two", "n=%di:u32"),
        plan("two", "n=%di:s32 m=%si"),
        plan("two", "n=%di:s32", letter="r"),
    ],
)
def test_other_types_or_kinds_are_other_events(other: Plan) -> None:
    assert len(kernel_events([plan("one", "n=%di:s32"), other], {}, NEW)) == 2


def test_names_are_those_of_the_first_plan() -> None:
    one, two = plan("one", "n=%di:s32 p=%si c=$comm"), plan("two", "a=%si:s32 n=%di c=$comm", 48)
    (event,) = kernel_events([one, two], {}, NEW)
    assert event.definitions == (
        f"p:{GROUP}/one /bin/true:0x10 n=%di:s32 p=%si c=$comm fetchc_which=\\0:u32",
        f"p:{GROUP}/one /bin/true:0x30 n=%si:s32 p=%di c=$comm fetchc_which=\\1:u32",
    )
    assert own_names(two, one) == {"n": "a", "p": "n", "c": "c"}


def test_a_filter_names_the_fields_of_its_own_plan() -> None:
    plans = [plan("one", "a=%di:s32 b=%si:s32"), plan("two", "b=%di:s32 a=%si:s32")]
    assert len(kernel_events(plans, {}, NEW)) == 1
    assert len(kernel_events(plans, {"one": "a > 1", "two": "a > 1"}, NEW)) == 2


def test_the_name_of_a_task_is_no_word() -> None:
    assert len(kernel_events([plan("one", "n=%di"), plan("two", "n=$comm")], {}, NEW)) == 2


def test_a_filter_is_of_the_whole_event() -> None:
    plans = [plan(name, "n=%di:s32") for name in ("a", "b", "c", "d")]
    events = kernel_events(plans, {"b": "n > 1", "c": "n > 1", "d": "n > 2"}, NEW)
    assert [[one.event for one in event.plans] for event in events] == [["a"], ["b", "c"], ["d"]]


def test_kernels_before_5_4_have_one_place_an_event() -> None:
    assert len(kernel_events([plan("one", "n=%di"), plan("two", "n=%di")], {}, OLD)) == 2


@pytest.mark.parametrize(
    ("arguments", "events"),
    [
        (" ".join(f"a{n}=%di:u8" for n in range(127)), 1),
        (" ".join(f"a{n}=%di:u8" for n in range(128)), 2),
        # 3072 bytes are the most (6.18), and the number takes 4 of them.
        (" ".join(f"a{n}=+0(%di):x64[64]" for n in range(5)) + " b=+0(%di):x64[63]", 1),
        (" ".join(f"a{n}=+0(%di):x64[64]" for n in range(6)), 2),
        (" ".join(f"a{n}=+0(%di):b3@1/32[64]" for n in range(12)), 2),
        ("s=+0(%di):string[64] c=+0(%si):char[64] d=+0(%si):string", 1),
        ("a=%di:symbol b=+0(%di):symstr", 1),
        (
            " ".join(f"a{n}=+0(%di):x64[64]" for n in range(5)) + " b=+0(%di):x64[63] c=%di:symbol",
            2,
        ),
    ],
)
def test_the_number_must_fit_into_the_event(arguments: str, events: int) -> None:
    assert len(kernel_events([plan("one", arguments), plan("two", arguments)], {}, NEW)) == events


@pytest.mark.parametrize(("more", "events"), [(0, 1), (1, 2)])
def test_the_number_must_fit_into_the_line(more: int, events: int) -> None:
    names = ("a" * 63, "b")
    # 4094 bytes are the most, of which the number takes up to 25.
    length = 4094 - 25 - len(f"p:{GROUP}/{names[0]} :0x10 n=%di:s32") + more
    path = "/" + "x" * (length - 1)
    plans = []
    for name in names:
        line = f"p:{GROUP}/{name} {path}:0x10 n=%di:s32"
        plans.append(Plan(GROUP, name, path, name, "entry", 0, (line,), ()))
    made = kernel_events(plans, {}, NEW)
    assert len(made) == events
    assert max(len(line) for event in made for line in event.definitions) <= 4094


def test_a_descriptor_s_name_fits_into_the_line_in_place_of_the_path() -> None:
    names, path = ("a" * 63, "b"), "/p"
    length = 4094 - 25 - len(f"p:{GROUP}/{names[0]} {path}:0x10 =%di:s32")
    plans = []
    for name in names:
        line = f"p:{GROUP}/{name} {path}:0x10 {'n' * length}=%di:s32"
        plans.append(Plan(GROUP, name, path, name, "entry", 0, (line,), (), identity="1 2 3 4 5"))
    assert len(kernel_events(plans, {}, NEW)) == 2


def test_probes_of_events_have_an_event_each() -> None:
    plans = [plan(name, "n=$id:s32", letter="e") for name in ("one", "two")]
    assert [event.definitions for event in kernel_events(plans, {}, NEW)] == [
        one.definitions for one in plans
    ]
