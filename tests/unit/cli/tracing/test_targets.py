"""Functions and expressions to probes, without a kernel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fetchc.api.library import Program
from fetchc.api.probe import Probe
from fetchc.cli import parse, trace_targets
from fetchc.cli.option_table import Options
from fetchc.cli.trace_request import request
from fetchc.cli.trace_targets import CALLER, FRAME, GOROUTINE, Targets, collect, named
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.tracer.event_plan import CheckedArgument
from fetchc.tracer.events import Plan
from fetchc.tracer.filter_conditions import comparisons
from tests.support.btfwriter import BtfWriter
from tests.support.programs import fixture

C = str(fixture("c/layouts/gcc-O2-dwarf5"))
RUST = str(fixture("rust/requests/rustc-O0"))
GO = str(fixture("go/dnsforward/go1.27"))
CLOSURES = str(fixture("go/features/go1.27-N-l"))


def targets(binary: str, *words: str) -> Targets:
    options = parse(("trace", "-x", binary, *words))
    assert isinstance(options, Options)
    program = Program(binary, unsafe_return=options.unsafe_return)
    return collect(program, options, request(options), "fetchc_t")


def codes(found: Targets) -> list[tuple[str, str, str]]:
    return [(one.function, one.text, one.diagnostics[0].code) for one in found.left_out]


def test_names_with_stars_are_names() -> None:
    program = Program(GO)
    handle, forward = "main.(*server).handleRequest", "main.(*server).forward"
    assert [each.text for each in named(program, [handle])] == [handle]
    found = named(program, ["main.(*server).*", handle])
    assert [(each.text, each.by_glob) for each in found] == [(forward, True), (handle, True)]
    assert [each.text for each in named(program, ["(*server).forward"])] == ["(*server).forward"]


def test_stars_of_receivers_and_type_arguments_are_no_wildcards() -> None:
    # The linker writes (*stack[go.shape.string]).push, and stack[go.shape.*uint8].
    for name in ("(*stack[string]).push", "main.(*stack[string]).push", "stack[*Item].push"):
        assert [(each.text, each.by_glob) for each in named(Program(GO), [name])] == [(name, False)]
    with pytest.raises(CompileError, match="no function with code matches"):
        named(Program(GO), ["(*stack[string]).pu*h"])


def test_a_glob_that_matches_nothing() -> None:
    with pytest.raises(CompileError, match="no function with code matches `mian"):
        named(Program(GO), ["mian.*"])


def test_a_glob_of_a_part_of_names_has_help_for_the_whole() -> None:
    with pytest.raises(CompileError) as refused:
        named(Program(GO), ["(*server).*"])
    diagnostic = "`*(*server).*` matches 2: a glob is of whole names"
    assert refused.value.diagnostics[0].help == diagnostic


def test_more_functions_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_targets, "MOST", 3)
    with pytest.raises(CompileError) as refused:
        named(Program(C), ["*"])
    assert refused.value.diagnostics[0].code == "FC0755"


def test_functions_without_the_name_are_left_out() -> None:
    found = targets(C, "depth", "-f", "visit", "-f", "chain")
    assert [(each.role, each.plan.function) for each in found.chosen] == [("hit", "visit")]
    assert codes(found) == [("chain", "depth", "FC0201")]


def test_a_plain_name_that_no_function_has_is_refused() -> None:
    with pytest.raises(CompileError, match=r"FC0202: no function `nosuch`"):
        targets(C, "depth", "-f", "visit", "-f", "nosuch")


def test_events_of_a_session_have_names_of_their_own() -> None:
    found = targets(GO, "-f", "*.String")
    events = [each.plan.event for each in found.chosen]
    assert len(events) == len(set(events)) > 3
    addresses = [each.plan.address for each in found.chosen]
    assert len(addresses) == len(set(addresses))


def test_a_call_is_two_probes() -> None:
    found = targets(C, "$retval", "n", "-f", "triple", "--latency")
    enter, leave = found.chosen
    assert (enter.role, enter.plan.kind, enter.key, enter.pushed) == ("enter", "entry", FRAME, 0)
    assert (leave.role, leave.plan.kind, leave.key, leave.pushed) == ("leave", "return", FRAME, 8)
    assert [each.label for each in enter.plan.values] == ["n", FRAME]
    assert [each.label for each in leave.plan.values] == ["$retval", FRAME]
    assert enter.labels == leave.labels == ("$retval", "n")


def test_a_go_call_is_paired_by_its_goroutine() -> None:
    found = targets(GO, "depth", "-f", "main.(*server).forward", "--latency")
    assert [(each.plan.kind, each.key, each.pushed) for each in found.chosen] == [
        ("entry", GOROUTINE, 0),
        ("return-site", GOROUTINE, 0),
    ]


def test_with_return_values_are_taken_there_if_they_can() -> None:
    found = targets(C, "shared_counter", "n", "-f", "triple", "--latency", "--return")
    assert [[each.label for each in one.plan.values] for one in found.chosen] == [
        ["n", FRAME],
        ["shared_counter", FRAME],
    ]


def test_a_call_that_has_it_at_neither_end() -> None:
    assert codes(targets(C, "nn", "-f", "triple", "--latency")) == [("triple", "nn", "FC0201")]
    found = targets(C, "$retval->x", "-f", "triple", "--latency")
    assert codes(found) == [("triple", "$retval->x", "FC0301")]


@pytest.mark.parametrize("words", [(), ("--return",)])
def test_help_for_a_call_names_options_that_go_together(words: tuple[str, ...]) -> None:
    (left_out,) = targets(RUST, "r", "-f", "requests::handle", "--latency", *words).left_out
    help = "without `--latency`, probe where it has been stored: `--at body`"
    assert left_out.diagnostics[0].help == help
    (stored,) = targets(RUST, "r", "-f", "requests::handle").chosen
    assert stored.plan.kind == "body"


def test_what_filters_and_histograms_need_is_hidden() -> None:
    found = targets(
        C, "d=depth", "-f", "visit", "--filter", "d > 1 && r->i < 5", "--histogram", "r->u",
        "--by", "$comm",
    )  # fmt: skip
    (one,) = found.chosen
    assert one.labels == ("d",)
    assert [each.label for each in one.plan.values] == ["d", "r->i", "r->u"]
    assert one.filter is not None
    assert [each.expression for each in comparisons(one.filter)] == ["d", "r->i"]
    assert (one.measures, one.keys) == (("r->u",), ("$comm",))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--filter", 'depth == "a"'), "FC0752"),
        (("--filter", "r->name == 1"), "FC0752"),
        (("--filter", "r->colour == MAUVE"), "FC0752"),
        (("--filter", "$pid == 'x'"), "FC0752"),
        (("--histogram", "r->name"), "FC0756"),
        (("--histogram", "r->in"), "FC0756"),
        (("--histogram", "r->list[0:2]"), "FC0756"),
        (("--sum", "r->grid[1]"), "FC0756"),
        (("--histogram", "$comm"), "FC0756"),
        (("--linear", "10,r->name"), "FC0756"),
        (("--count-by", "depth,nn"), "FC0201"),
        (("--histogram", "nn"), "FC0201"),
    ],
)
def test_what_cannot_be_compared_or_counted(words: tuple[str, ...], code: str) -> None:
    found = targets(C, "-f", "visit", *words)
    assert not found.chosen
    assert [each[2] for each in codes(found)] == [code]


def test_a_filter_is_refused_in_its_own_text() -> None:
    text = "(depth > 1) && r->nome == 3"
    found = targets(C, "-f", "visit", "--filter", text)
    (left,) = found.left_out
    assert left.text == text
    (diagnostic,) = left.diagnostics
    assert diagnostic.code == "FC0302"
    assert diagnostic.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == "nome"
    # What is printed, too, is refused where that was typed.
    (left,) = targets(C, "-f", "visit", "r->nome", "--filter", text).left_out
    assert left.text == "r->nome"


@pytest.mark.parametrize(
    ("condition", "help"),
    [
        ("w != nil", None),
        ("w == nil", None),
        ("w == 3", "compare what is in it, of one type: `e.(*T).x == 1`"),
        ("w == false", "compare what is in it, of one type: `e.(*T).x == 1`"),
        ("w > 0", "compare what is in it, of one type: `e.(*T).x == 1`"),
        ("r.Question[0].Name == x", 'compare it with a string: `== "x"`'),
        ("r.Question[0].Name == nil", 'compare it with the empty string: `== ""`'),
    ],
)
def test_interfaces_and_texts_compare_as_they_are(condition: str, help: str | None) -> None:
    found = targets(GO, "-f", "main.(*server).handleRequest", "--filter", condition)
    assert bool(found.chosen) == (help is None)
    assert [one.diagnostics[0].help for one in found.left_out] == ([] if help is None else [help])


@pytest.mark.parametrize("number", ["r.Question[0].Qtype", "len(r.Question[1].Name)"])
def test_numbers_that_may_not_be_there_are_counted(number: str) -> None:
    found = targets(GO, "-f", "main.(*server).handleRequest", "--histogram", number)
    assert [one.measures for one in found.chosen] == [(number,)]
    found = targets(GO, "-f", "main.(*server).handleRequest", "--sum", number)
    assert [one.measures for one in found.chosen] == [(number,)]


def test_the_caller_is_fetched_for_stacks_at_an_entry() -> None:
    (entry,) = targets(C, "-f", "visit", "--stack=fp").chosen
    assert entry.caller
    assert [each.label for each in entry.plan.values] == [CALLER]
    (leave,) = targets(C, "-f", "visit", "--stack=fp", "--return").chosen
    assert not leave.caller


@pytest.mark.parametrize(
    "words",
    [
        ("a=depth", "a=r->i"),
        ("--latency", "a=depth", "a=$retval"),
        ("--latency", "--return", "a=$retval", "a=depth"),
        ("a=depth", "--filter", "depth > 1", "fetchc_which=r->i"),
        ("--latency", "fetchc_comm=depth"),
    ],
)
def test_two_values_of_one_name_are_refused(words: tuple[str, ...]) -> None:
    assert codes(targets(C, "-f", "visit", *words)) == [("visit", "", "FC0207")]


def test_where_something_is_for_ebpf_alone_lists_are_copied() -> None:
    # So they are at another function of the trace, which lacks what is for eBPF alone.
    lists = ("-f", "main.(*server).forward", "-f", "main.(*server).handleRequest", "s.aliases")
    for alone, copied in (("s.aliases[r.Id & 1]", True), ("r.Id", False)):
        found, bpf = (targets(GO, *lists, alone, "--engine", each) for each in ("auto", "bpf"))
        assert labels(found)[0] == ("main.(*server).forward", ["s.aliases"])
        assert (found.chosen == bpf.chosen) == copied


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ([f"*(int *){0x4000 + 4 * number}" for number in range(150)], "FC0504"),
        ([f"(long *){0x4000 + 480 * number}:x64[60]" for number in range(7)], "FC0508"),
        (["r->head" + 20 * "->next"], "FC0502"),
    ],
)
def test_what_no_definition_has_room_for_is_for_ebpf(wanted: list[str], code: str) -> None:
    words = ("-f", "visit", *wanted, "--engine")
    assert [one for _, _, one in codes(targets(C, *words, "tracefs"))] == [code]
    found = targets(C, *words, "auto")
    assert found == targets(C, *words, "bpf")
    (one,) = found.chosen
    assert list(one.labels) == wanted
    assert one.plan.ebpf_alone is not None
    assert one.plan.ebpf_alone[0] == code
    less = targets(C, "depth", *words, "auto").defined
    labelled = [] if less is None else [each.labels for each in less.chosen]
    assert labelled == ([("depth",)] if code == "FC0502" else [])  # else the event is too large
    (small,) = targets(C, "-f", "visit", "depth", "--engine", "bpf").chosen
    assert small.plan.ebpf_alone is None


def test_one_value_is_shown_once() -> None:
    (hit,) = targets(
        C, "-f", "visit", "a=r->i", "a= r->i", "depth", "--by", "depth", "--sum", "a"
    ).chosen
    assert hit.labels == ("a", "depth")
    enter, leave = targets(C, "-f", "visit", "--latency", "a=r->i", "a= r->i", "%sp").chosen
    assert enter.labels == leave.labels == ("a", "%sp")


def test_points_in_expressions() -> None:
    found = targets(C, "n @ triple", "depth@visit", "r->i@visit", "n", "x@nosuch")
    assert [(one.plan.function, one.labels) for one in found.chosen] == [
        ("triple", ("n",)),
        ("visit", ("depth", "r->i")),
    ]
    assert [(text, code) for _, text, code in codes(found)] == [
        ("n", "FC0206"),
        ("x@nosuch", "FC0202"),
    ]


def test_an_address() -> None:
    address = f"{Program(C).probe('triple').address:#x}"
    (one,) = targets(C, "n", "--at", address).chosen
    assert one.plan.function == "triple"


def test_since() -> None:
    found = targets(C, "-f", "gone", "--since", "main")
    assert [(one.role, one.plan.function) for one in found.chosen] == [
        ("hit", "gone"),
        ("start", "main"),
    ]
    with pytest.raises(CompileError):
        targets(C, "-f", "gone", "--since", "nosuch")


def test_calls_that_nothing_tells_apart(tmp_path: Path) -> None:
    writer = BtfWriter()
    number = writer.integer("long", 8, 1)
    writer.function("vfs_read", number, ("count", number))
    path = tmp_path / "vmlinux.btf"
    path.write_bytes(writer.bytes())
    assert not codes(targets(str(path), "count", "--latency", "-f", "vfs_read"))
    (refused,) = targets(str(path), "count", "--latency", "-f", "fprobe:vfs_read").left_out
    (diagnostic,) = refused.diagnostics
    assert (diagnostic.code, diagnostic.help) == ("FC0507", "leave `fprobe:` out: `-f vfs_read`")
    assert "%sp" not in diagnostic.message


def test_of_many_functions_what_may_end_the_program_is_reported_once() -> None:
    words = ("--return", "--unsafe-return", "-f", "AddressBook::*")
    found = targets(str(fixture("cpp/addressbook/g++-O0")), *words)
    assert len(found.chosen) > 2
    ((_, diagnostic),) = found.warnings
    assert diagnostic.code == "FC0621"
    assert diagnostic.notes[-1].startswith("so it is of ")


def test_what_is_stored_later_is_probed_there() -> None:
    entry = targets(RUST, "-f", "requests::handle", "--at", "+0", "r.id")
    assert codes(entry) == [("requests::handle", "r.id", "FC0401")]
    body = targets(RUST, "-f", "requests::handle", "--at", "body", "r.id")
    moved = targets(RUST, "-f", "requests::handle", "r.id")
    assert moved.chosen[0].plan.address == body.chosen[0].plan.address
    assert [warning.code for _, warning in moved.warnings] == ["FC0633"]
    # What is nowhere does not keep it at the entry, and what is had there stays.
    most = targets(RUST, "-f", "requests::handle", "r.id", "nothing")
    assert most.chosen[0].plan.address == body.chosen[0].plan.address
    assert [one.text for one in most.without] == ["nothing"]
    assert codes(targets(RUST, "-f", "requests::handle", "nothing")) != []
    stays = targets(RUST, "-f", "requests::handle", "%di")
    assert stays.chosen[0].plan.address < body.chosen[0].plan.address
    assert stays.warnings == ()


def test_why_a_probe_stays_where_nothing_is_stored_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capstone", None)
    stays = targets(RUST, "-f", "requests::handle", "$args")
    ((_, warning),) = stays.warnings
    assert (warning.code, warning.help) == ("FC0606", "install it: pip install capstone")
    assert warning.message == "the probe of `requests::handle` stays at its first instruction"


@pytest.mark.parametrize(
    ("text", "code", "place", "help"),
    [
        ("depth > 1 && dept > 3", "FC0201", "dept", "a variable with a similar name"),
        ("depth > 1 && (dept & 1) > 2", "FC0201", "dept", "a variable with a similar name"),
        ("r * 2 > 2", "FC0308", "*", "cast the pointer"),
        ("depth == 1 || r->nope == 2", "FC0302", "nope", None),
    ],
)
def test_a_refused_filter_has_its_place_in_the_filter(
    text: str, code: str, place: str, help: str | None
) -> None:
    found = targets(C, "-f", "visit", "depth", "--filter", text)
    assert not found.chosen
    (refused,) = found.left_out
    (diagnostic,) = refused.diagnostics
    assert (refused.text, diagnostic.code) == (text, code)
    assert diagnostic.primary is not None
    span = diagnostic.primary.span
    assert text[span.start : span.end] == place
    assert span.start >= text.index(place)
    assert help is None or str(diagnostic.help).startswith(help)
    assert "--filter" not in str(diagnostic.help)


def test_a_goroutine_that_is_not_known_at_the_return_is_refused_in_words_of_the_command() -> None:
    # The pair is made by `$goid`, which nobody wrote: Go 1.15 has it in thread-local storage.
    found = targets(str(fixture("go/features/go1.15")), "-f", "main.callMaps", "--latency")
    (left,) = found.left_out
    (said,) = left.diagnostics
    assert "$goid" not in left.text
    assert said.message == "at the return of `main.callMaps` its goroutine is not known"
    assert said.help == "trace one of the two: leave `--latency` out"


def labels(found: Targets) -> list[tuple[str, list[str]]]:
    return [
        (one.plan.function or "", [each.label for each in one.plan.values]) for one in found.chosen
    ]


def test_parameters_are_the_default_of_a_function_that_is_named() -> None:
    assert labels(targets(C, "-f", "visit")) == [("visit", ["r", "depth"])]
    assert targets(C, "-f", "visit", "-f", "triple").chosen[1].labels == ("n",)
    handle = "main.(*server).handleRequest"
    assert labels(targets(GO, "-f", handle, "--filter", "r.Id > 3"))[0][1] == [
        "s",
        "w",
        "r",
        "r.Id",
    ]
    for words in (
        ["--calls-only"],
        ["--stack"],
        ["--summary"],
        ["--since", "triple"],
    ):
        found = targets(C, "-f", "visit", *words)
        assert all(one.labels == () for one in found.chosen), words
    assert labels(targets(C, "-f", "visi*")) == [("visit", [])]
    assert labels(targets(C, "-f", "visit", "--return")) == [("visit", ["$retval"])]


def test_what_has_no_parameters_is_traced_without() -> None:
    stripped = targets(str(fixture("go/stripped/go1.27")), "-f", "main.main")
    assert [(one.role, one.labels) for one in stripped.chosen] == [("hit", ())]
    assert stripped.without == ()


def test_parameters_that_are_too_many_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(
        probe: Probe, wanted: Sequence[CheckedArgument], group: str, event: str, most: int
    ) -> Plan:
        if wanted:
            raise reject("FC0505", "too many")
        return given(probe, wanted, group, event, most)

    given = Probe.plan
    monkeypatch.setattr(Probe, "plan", plan)
    found = targets(C, "-f", "visit")
    assert labels(found) == [("visit", [])]
    assert [(one.function, one.text) for one in found.without] == [("visit", "$args")]


def test_parameters_of_unoptimized_rust_are_behind_the_prologue() -> None:
    found = targets(RUST, "-f", "requests::visit")
    assert [(one.plan.kind, one.labels) for one in found.chosen] == [
        ("body", ("p", "b", "o", "name"))
    ]


def test_what_is_stored_later_and_refused_there_is_refused_as_there() -> None:
    found = targets(RUST, "-f", "requests::handle", "r.id[0]")
    assert codes(found) == [("requests::handle", "r.id[0]", "FC0304")]


def test_a_line_with_a_closure_has_the_names_of_each_function() -> None:
    # `defer func(step int) { done <- step + n }(n + 1)`: the first address is of `main.later`.
    found = targets(CLOSURES, "step", "-f", "main.go:187")
    assert [one.plan.function for one in found.chosen] == ["main.later.func1"]
    assert ("main.later", "step", "FC0201") in codes(found)
    both = targets(CLOSURES, "$args", "-f", "main.go:187")
    assert {(one.plan.function, one.labels) for one in both.chosen} >= {
        ("main.later", ("done", "n")), ("main.later.func1", ("step",))
    }  # fmt: skip
    alike = targets(CLOSURES, "$goid", "-f", "main.go:187")
    assert [one.plan.function for one in alike.chosen] == ["main_go_187"]


def test_without_a_disassembler_a_note_names_no_other_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("-v", "-f", "_rt0_amd64")
    (with_place,) = targets(GO, *words).notes
    monkeypatch.setitem(sys.modules, "capstone", None)
    (without,) = targets(GO, *words).notes
    assert with_place == f"{without}; `--at +0x9` is one, where values may be elsewhere"
