"""What the tool prints as JSON is what the schemas of docs/schema say, no key more or less."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.cli.option_table import COMMANDS, OPTIONS
from fetchc.cli.trace_events import Hit
from fetchc.cli.trace_json import JsonLines
from fetchc.cli.trace_request import Measure
from fetchc.cli.trace_tables import Summary, Tally
from fetchc.conformance import suite
from fetchc.tracer.display_values import CutList, CutString, CutStructure, Enumerator, NoAddress
from fetchc.tracer.stacks import Frame
from tests.support.cases import CORPUS, Case, all_cases
from tests.support.schemas import errors, names, trace_errors
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes
from tests.unit.cli.tracing.events import event, plan, target

CASES = [case for case in all_cases() if case.format is None]
C = "c/layouts/bin/gcc-O2-dwarf5"
GO, OLD_GO = "go/dnsforward/bin/go1.27", "go/dnsforward/bin/go1.15"
HANDLE = "main.(*server).handleRequest"
VISIT = f"p:g/e {CORPUS / C}:0x47e0"  # the entry of `visit`
GROUP = "fetchc_schemas"

# Each schema, the command, and how the command ends; `{}` is a folder of the test.
RUNS = [
    ("compile", f"compile r.Question[0].Name $nothing --format json -x {GO} -f {HANDLE}", 1),
    ("compile", f"compile depth --format json -x {C} -f visit", 0),
    ("compile", f"compile depth --format json -x {C} -f no_such_function", 1),
    ("compile", "compile depth --format json -x no_such_file -f visit", 3),
    ("compile", "compile --batch {}/questions", 1),
    ("functions", f"functions *visit* --format json -x {C}", 0),
    ("functions", f"functions *visit* --long --format json -x {C}", 0),
    ("functions", "functions * --long --format json -x dotnet/echo/bin/sample.dll", 0),
    ("variables", f"variables {HANDLE} --format json -x {GO}", 0),
    ("variables", f"variables visit --format json -x {C}", 0),
    ("types", f"types --format json -x {C}", 0),
    ("types", f"types *node* --format json -x {C}", 0),
    ("types", f"types *bits* --format json -x {C}", 0),
    ("types", f"types no_such_type --format json -x {C}", 1),
    ("offsets", f"offsets bits.five main.Msg.Ns --format json -x {C} -x {GO}", 1),
    ("offsets", f"offsets main.Msg.Ns --format json -x {GO} -x no_such_file", 3),
    ("offsets-params", f"offsets --params *handleRequest --format json -x {GO} -x {OLD_GO}", 0),
    ("offsets-params", f"offsets --params visit nothing --format json -x {C} -x no_such_file", 3),
    ("offsets-builds", f"offsets runtime.g.goid runtime.g.x --format builds -x {GO}", 0),
    ("offsets-otel-go", f"offsets runtime.g.goid runtime.g.x --format otel-go -x {GO}", 0),
    ("offsets-obi", f"offsets runtime.g.goid runtime.g.x --format obi -x {OLD_GO} -x {GO}", 0),
    ("btf", f"btf main.Question --format json -x {GO} -o {{}}/types.btf", 0),
    ("check", "check --format json --kernel 6.1 {definition} +0(%zz):u32 nonsense", 1),
    ("explain", f"explain r->head->value --format json -x {C} -f visit", 0),
    ("explain", f"explain +8(+288(%di)):s32 --format json -x {C} -f visit", 0),
    ("explain", "explain FC0302 --format json", 0),
    ("doctor", "doctor --format json", 0),
    ("cache", "cache show --format json", 0),
    ("cache", "cache clear --format json", 0),
    ("perfmap", "perfmap find 40000 --format json -x dotnet/echo/bin/sample.dll", 0),
    ("conformance", "conformance --cc gcc --only signatures --engine none --format json", 0),
]  # fmt: skip

# Those that need a kernel, in their order: what one adds the next ones find.
ADD = f"add depth -x {C} -f visit --group {GROUP} --format json"
LIVE_RUNS = [
    ("list", ADD), ("list", "list --format json"), ("list", f"list {GROUP}/* --format json"),
    ("remove", f"remove {GROUP}/visit --format json"),
    ("trace", f"trace depth -x {C} -f visit --count 2 --format jsonl -- {C}"),
    ("trace", f"trace --sum depth --by $comm --summary -x {C} -f visit --format jsonl -- {C}"),
]  # fmt: skip

# Formats that are no JSON, or (speedscope) a document with a schema of its own that it names.
OTHER_FORMATS = {
    "text", "fetcharg", "probe", "perf", "bpftrace", "tetragon", "systemtap", "bpf-c", "svg",
    "folded", "perfetto", "speedscope",
}  # fmt: skip


def words_of(line: str, folder: Path) -> list[str]:
    # No word of these has a blank but a definition.
    return [
        word.replace("{}", str(folder)).replace("{definition}", f"{VISIT} n=%di:u32")
        for word in line.split()
    ]


def formats_of(words: list[str]) -> Iterator[tuple[str, str]]:
    """The command and the format of a command line; a batch is always JSON."""
    format = words[words.index("--format") + 1] if "--format" in words else "json"
    yield words[0], format


def printing_json() -> set[tuple[str, str]]:
    """Every command with each of its formats that is JSON."""
    found = set()
    for name, command in COMMANDS.items():
        for option in command.options:
            if OPTIONS[option].flags == ("--format",):
                found |= {*product([name], set(OPTIONS[option].choices) - OTHER_FORMATS)}
    return found


def documents(schema_name: str, text: str) -> Iterator[Any]:
    """What a command printed: one document, or a line each."""
    lines = text.splitlines()
    if lines and all(line.startswith("{") and line.endswith("}") for line in lines):
        yield from map(json.loads, lines)
    else:
        yield json.loads(text)


@pytest.mark.parametrize(("name", "line", "status"), RUNS, ids=[each[1][:50] for each in RUNS])
def test_every_document(
    name: str,
    line: str,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(CORPUS)
    if name == "conformance":
        require("gcc")
        for setting in ("_FAMILIES", "_EXPRESSIONS", "_FUNCTIONS"):
            monkeypatch.setattr(suite, setting, 2)
        monkeypatch.setattr("fetchc.conformance.toolchains._C_OPTIONS", [("-O0", "-gdwarf-4")])
    if name == "cache":
        (tmp_path / "fetchc").mkdir(mode=0o700)
        (tmp_path / "fetchc/1234.names").write_bytes(b"x")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    question = {"id": 7, "binary": C, "function": "visit", "expressions": ["depth"]}
    (tmp_path / "questions").write_text(json.dumps(question) + '\n{"no question": 1}\n')
    assert main(words_of(line, tmp_path)) == status
    found = list(documents(name, capsys.readouterr().out))
    assert found
    for each in found:
        assert errors(name, each) == []


@pytest.mark.live
def test_every_document_about_the_kernel(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_uprobes()
    monkeypatch.chdir(CORPUS)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name, line in LIVE_RUNS:
        assert main(words_of(line, tmp_path)) == 0, line
        lines = capfd.readouterr().out.splitlines()
        if name != "trace":
            assert errors(name, json.loads("".join(lines))) == []
            continue
        shown = [json.loads(each) for each in lines if each.startswith('{"')]
        assert len(shown) >= 2, line
        assert [trace_errors(each) for each in shown] == [[] for _ in shown]


def test_every_command_that_prints_json_has_a_schema() -> None:
    lines = [line for _, line, _ in RUNS] + [line for _, line in LIVE_RUNS]
    run = {each for line in lines for each in formats_of(line.split())}
    assert printing_json() - run == set()
    used = {name for name, _, _ in RUNS} | {name for name, _ in LIVE_RUNS} - {"trace"}
    assert set(names()) == used | {"trace-event", "trace-table"}


def test_a_command_without_a_schema_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "count", COMMANDS["doctor"])
    with pytest.raises(AssertionError):
        test_every_command_that_prints_json_has_a_schema()


@pytest.mark.parametrize("part", range(4))
def test_documents_of_compile(
    part: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS)
    for case in CASES[part::4]:
        assert errors("compile", _document(case, capsys)) == [], f"{case.path}: {case.name}"


def _document(case: Case, capsys: pytest.CaptureFixture[str]) -> Any:
    main([*case.arguments(), "--format=json"])
    return json.loads(capsys.readouterr().out)


def test_a_document_that_lies_is_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS)
    good = next(one for one in CASES if not one.error)
    changes: list[Callable[[Any], object]] = [
        lambda document: document.update(more=1),
        lambda document: document.pop("kernel"),
        lambda document: document["probes"][0].update(kind="guess"),
        lambda document: document["probes"][0]["args"][0]["chain"]["base"].update(kind="guess"),
        lambda document: document["probes"][0]["args"][0]["chain"]["loads"].append({"offset": "8"}),
        lambda document: document["probes"][0]["args"][0].pop("decode"),
        lambda document: document["diagnostics"].append({"code": "FC0302"}),
    ]
    for change in changes:
        document = _document(good, capsys)
        assert errors("compile", document) == []
        change(document)
        assert errors("compile", document)


def test_lines_of_trace() -> None:
    values: dict[str, Any] = {
        "n": 1, "r": {"x": [1, None]}, "f": 0.5, "none": None, "yes": True, "e": Enumerator(
            {"name": None, "value": 3}), "s": CutString("abc", 9), "l": CutList([1], 5),
        "c": CutStructure({"own": 2}, ("a",)), "p": NoAddress(0x5A5A),
    }  # fmt: skip
    frames = (
        Frame(0x10, "leaf", 2, "/bin/x", line="a.c:7", inlined=True),
        Frame(0x20, None, 0, None, not_unwound="no unwind information"),
    )
    line = ""
    for kind in ("entry", "return", "line"):
        made = plan(kind=kind, function=None if kind == "line" else "main.f")
        shown = target("hit", made, *values)
        hit = Hit(shown, event(made, dict(values), faults=("none",)), None)
        for latency in (None, 1.25):
            hit.latency = latency
            for timed, stack in ((True, frames), (False, ())):
                line = JsonLines([shown], timed).line(hit, stack)
                assert trace_errors(json.loads(line)) == []
    wrong = json.loads(line) | {"kind": "guess", "pid": "7"}
    assert len(trace_errors(wrong)) == 2


def test_lines_of_tables() -> None:
    made = plan()
    measures = [Measure("n", "sum"), Measure("n", "histogram"), Measure("m", "sum")]
    for keys in ((), ("$comm",), ("$comm", "k")):
        for measured in (measures, measures[1:2], []):
            if not (keys or measured):
                continue
            named = tuple(each.text for each in measured)
            shown = target("hit", made, measures=named, keys=keys)
            tally = Tally(measured, keys, interval=True)
            for value in (1, 2.5, None):
                tally.add(Hit(shown, event(made, {"n": value, "m": 1, "k": {"x": [value]}}), None))
            lines = [tally.interval(tally.turn(), 0.0, 1.5, name) for name in ("interval", "total")]
            for line in (*lines, *tally.json()):
                assert trace_errors(json.loads(line)) == [], line
                assert trace_errors(json.loads(line) | {"more": 1}), line
    summary = Summary()
    for latency in (None, 3.5):
        summary.add(Hit(target("hit", made), event(made, {}), latency))
        for line in summary.json():
            assert trace_errors(json.loads(line)) == []
            assert trace_errors(json.loads(line) | {"more": 1})
