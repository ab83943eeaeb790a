"""Generic code and code that a compiler took apart, compiled at run time: values beside the log."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.tracer.bpf.features import running, unusable
from fetchc.tracer.breakpoints import most_breakpoints
from tests.live.test_run_time_code import Service, Trace
from tests.support.dotnet import BUNDLES, NET8, NET9, NET10, NETCORE31, compiled
from tests.support.schemas import errors
from tests.support.toolchains import ROOT

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
    pytest.mark.skipif(
        unusable() is not None or not running()[0].tried,
        reason="eBPF is not allowed here, or the kernel is too old: values are read later",
    ),
]

CORPUS = ROOT / "corpus/dotnet"
RUNTIMES = [
    pytest.param(NET9, id="9.0"),
    pytest.param(NET10, id="10.0", marks=pytest.mark.long),
    pytest.param(NET8, id="8.0", marks=pytest.mark.long),
    pytest.param(NETCORE31, id="3.1", marks=pytest.mark.long),
]
WATCHED = ("Box`1[System.Int32]::Put(", "<Captured>g__Local|7_0(")  # which have no loops
ROUNDS = 30

# Methods as people name them, four at a time, and what is asked for: their own names are in events.
GENERIC = (
    (
        ("Box<int>.Put", "Box<Point>.Put", "Box<DateTime>.Put", "Slot<byte>.Add"),
        "value value.X value.Y value._dateData n this.held this.held.X this.count more this.last",
    ),
    (
        (
            "Box<string>.Put",
            "Box<string>.Same",
            "Pair<string, int>.Kept<short>.Swap",
            "Box<KeyValuePair<string, int>>.Put",
        ),
        "(string)value ((Order)value).Customer ((Order)value).Id (string)this.held n this.count "
        "(string)one (string)other (string)key value next this.last (string)value.Key value.Value",
    ),
)
REFUSED = {  # the type arguments of a method decide where its parameters are, also of `Count(int)`
    "Program.Pick": "does not have a method's type arguments.*registers are at `--at 0x.* or 0x",
    "Program.Count<string>": "`Store.Program.Count` cannot be traced: .*registers are at `--at 0x",
    "Box<long>.Put": "is compiled for other types: .*`System.Int32`",
}
STEPS = {
    "Steps.<Wait>c__async0.MoveNext": "Wait",
    "Steps.<Count>c__Iterator1.MoveNext": "Count",
    "Steps.<Captured>c__AnonStorey2.<>m__0": "Captured",
    "Steps.<Captured>g__Local|7_0": "Local",
}
ASKED = (
    "sum note i__1 i__2 text retries handled this.label this.this.handled "
    "at each limit label x inner tag seen factor start"
)

LOCAL_FUNCTION = (b"XCapturedXg__LocalX7_0", b"<Captured>g__Local|7_0")
IN_SOURCE = {
    "Steps.<Wait>c__async0.MoveNext()": "body of Steps.Wait",
    "Steps.<Count>c__Iterator1.MoveNext()": "body of Steps.Count",
    "Steps.<Captured>c__AnonStorey2.<>m__0(int)": "lambda in Steps.Captured",
    "Steps.<Captured>g__Local|7_0(int, string)": "local function Steps.Captured.Local",
}


def started(runtime: Path, source: str, folder: Path, *arguments: str) -> Service:
    """A program of the corpus that has called each of its methods once."""
    # The name of an assembly in a program of one file is that of the one whose place it has.
    name = BUNDLES[runtime].name if runtime in BUNDLES else Path(source).stem
    assembly = compiled(CORPUS / source, folder / f"{name}.dll")
    assembly.write_bytes(assembly.read_bytes().replace(*LOCAL_FUNCTION))
    settings = {"COMPlus_PerfMapEnabled": "1"} if runtime == NETCORE31 else {}
    service = Service(runtime, assembly, settings, *arguments)
    asked(service)
    return service


def asked(service: Service, times: int = 1) -> list[dict[str, Any]]:
    """What the program logs when it calls each method so many times."""
    found = []
    for _ in range(times):
        service.ask("")
        lines = service.lines("done")
        found += [json.loads(one.removeprefix("EVENT ")) for one in lines]
        time.sleep(0.002)
    return found


def unlike(events: list[dict[str, Any]], log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of the log, in their order, that no event shows; raises for an event of no call."""
    left, missed = iter(log), []
    for event in events:
        for call in left:
            wanted = call["values"]
            if {name: event["args"].get(name, "nothing") for name in wanted} == wanted:
                break
            missed.append(call)
        else:
            raise AssertionError(f"no call has these values: {event}")
    return missed + list(left)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_values_of_generic_code_are_those_of_the_log(
    runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = started(runtime, "generics/generics.cs", tmp_path)
    try:
        moved = [compared(service, *each) for each in GENERIC]
        assert any(moved)
        for name, why in REFUSED.items():
            assert main(["variables", name, "-p", str(service.pid)]) == 3
            assert re.search(why, capsys.readouterr().err)
        described = ["compile", "value", "this.held", "-f", "Box<int>.Put", "-p", str(service.pid)]
        assert main([*described, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert not errors("compile", document)
        (probe,) = document["probes"]
        assert (probe["offset"], probe["definition"]) == (None, None)
        assert f"{probe['address']:x}" in Path(f"/tmp/perf-{service.pid}.map").read_text().lower()
        assert [one["fetcharg"] for one in probe["args"]] == ["%si:s32", "+8(%di):s32"]
        assert main([*described, "--format", "bpftrace"]) == 3
        assert "a uprobe needs code of a file" in capsys.readouterr().err
        assert main(["functions", "-p", str(service.pid)]) == 0
        assert not {"Pick", "Count"} & set(re.findall(r"\w+(?=\()", capsys.readouterr().out))
    finally:
        service.end()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_values_of_steps_and_lambdas_are_those_of_the_log(
    runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = started(runtime, "aot/steps.cs", tmp_path, "lines")
    try:
        *taken_apart, _ = STEPS
        assert compared(service, [*taken_apart, "Steps.Captured.Local"], ASKED)
        words = ["functions", "-p", str(service.pid), "--long", "--format", "json"]
        assert main(words) == 0
    finally:
        service.end()
    listed = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["in_source"] for one in listed if "in_source" in one} == IN_SOURCE


def compared(service: Service, methods: Iterable[str], expressions: str) -> bool:
    """Trace the methods, and compare each event with the log; whether any was compiled again."""
    named = [word for name in methods for word in ("-f", name)]
    trace = Trace(service, *expressions.split(), *named, "--format", "jsonl")
    log = asked(service, 20)
    for _ in range(ROUNDS):  # the runtime compiles no method again before 30 calls and 100 ms
        time.sleep(0.15)
        log += asked(service, 20)
        lines = Path(f"/tmp/perf-{service.pid}.map").read_text()
        if any(lines.count(one) > 1 for one in WATCHED):
            break
    log += asked(service, 20)
    events, said = trace.ended()
    # The first step of a method has no values yet, and the log has none of it.
    events = [one for one in events if 0 not in (one["args"].get("sum"), one["args"].get("at"))]
    functions = dict.fromkeys(one["function"] for one in events)
    assert len(functions) == len(list(methods)), said
    for function in functions:
        own = [event for event in events if event["function"] == function]
        missed = unlike(own, [one for one in log if is_of(one, function)])
        assert not missed or f"`{function}` was compiled again" in said, said
        assert len(own) >= 4, said
    return len({one["address"] for one in events}) > len(functions)


def is_of(call: dict[str, Any], function: str) -> bool:
    """Whether the log's name of a method is that of an event's function."""
    return call["method"] == STEPS.get(function) or function.endswith(f".{call['method']}")


def test_an_event_of_no_call_is_noticed() -> None:
    calls = [{"values": {"n": 1}}, {"values": {"n": 2}}, {"values": {"n": 3}}]
    events = [{"args": {"n": 1, "x": 5}}, {"args": {"n": 3}}]
    assert unlike(events, calls) == [calls[1]]
    wrong: list[dict[str, Any]]
    for wrong in ([{"args": {"n": 4}}], [{"args": {}}], events[::-1], [events[0]] * 2):
        with pytest.raises(AssertionError, match="no call has these values"):
            unlike(wrong, calls)
