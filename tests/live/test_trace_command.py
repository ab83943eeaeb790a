"""``fetchc trace`` on the running kernel: every option once, values as the program has them."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc import ceilings
from tests.live.traced import SECONDS, Traced, build, event, running, trace
from tests.support.programs import calls, fixture
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

SHADES = {-1: "DARK", 0: "PLAIN", 300: "LIGHT"}
NAMES = ["plain", "", 'a "b" \\', "two\nlines", "esc\x1b[31m", None]
CHECKED = [
    "n", "it->small", "it->big", "it->middle", "it->number", "it->wide", "it->five", "it->minus",
    "it->yes", "it->shade", "it->d", "it->name",
]  # fmt: skip


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("traced"))


def reported(traced: Traced) -> list[dict[str, object]]:
    """The values of each call as the program printed them, under the names of CHECKED."""
    found = []
    for line in traced.program:
        numbers = line.split()[1:]
        values: list[object] = [int(word) for word in numbers[:8]]
        values += [numbers[8] == "1", {"name": SHADES[int(numbers[9])], "value": int(numbers[9])}]
        values += [float(numbers[10]), NAMES[int(numbers[11])]]
        found.append(dict(zip(CHECKED, values, strict=True)))
    return found


def test_values_as_json(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(capfd, *CHECKED, "-x", program, "-f", "work", "--format", "jsonl", "--", program)
    assert (traced.status, traced.errors) == (0, "")
    assert traced.args == reported(traced)
    assert len(traced.args) == 12
    assert all(each["faults"] == [] for each in traced.objects)  # NULL is no text, and no fault
    first = traced.objects[0]
    assert (first["event"], first["function"], first["kind"]) == ("work", "work", "entry")
    assert (first["comm"], first["pid"]) == ("traced", first["thread"])
    times = [each["timestamp"] for each in traced.objects]
    assert times == sorted(times)


def test_a_wrong_value_would_be_noticed(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = trace(capfd, "n=n", "-x", program, "-f", "work", "--format", "jsonl", "--", program)
    shifted = [{"n": value["n"]} for value in reported(shown)[1:]]
    assert shown.args[:-1] != shifted
    assert shown.args[1:] == shifted


def test_values_as_text(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "n", "it->name", "it->shade", "it->pair", "it->row", "it->act", "it->fixed",
        "-x", program, "-f", "work", "--", program, "calls", "6",
    )  # fmt: skip
    assert traced.errors == ""
    assert all(line.isprintable() for line in traced.lines)
    values = [line.split("  work  ")[1] for line in traced.lines]
    assert [re.sub(r"  +", "  ", line) for line in values] == [
        'n=0  it->name="plain"  it->shade=DARK  it->pair={x=0, y=0}  it->row=[0, 0, 0]  it->act=act'
        '  it->fixed="ab"',
        'n=1  it->name=""  it->shade=PLAIN  it->pair={x=1, y=-1}  it->row=[0, 1, 0]  it->act=act'
        '  it->fixed="full"',
        'n=2  it->name="a \\"b\\" \\\\"  it->shade=LIGHT  it->pair={x=2, y=-2}  it->row=[0, 2, 0]'
        '  it->act=act  it->fixed="ab"',
        'n=3  it->name="two\\nlines"  it->shade=DARK  it->pair={x=3, y=-3}  it->row=[0, 3, 0]'
        '  it->act=act  it->fixed="full"',
        'n=4  it->name="esc\\x1b[31m"  it->shade=PLAIN  it->pair={x=4, y=-4}  it->row=[0, 4, 0]'
        '  it->act=act  it->fixed="ab"',
        "n=5  it->name=null  it->shade=LIGHT  it->pair={x=5, y=-5}  it->row=[0, 5, 0]"
        '  it->act=act  it->fixed="full"',
    ]


@pytest.mark.parametrize(
    ("name", "function", "wanted"),
    [
        ("c/layouts/gcc-O2-dwarf5", "visit", ["r->name", "r->in.i", "r->l", "r->colour"]),
        ("go/dnsforward/go1.27", "main.(*server).handleRequest", ["r->Question[0].Name"]),
        ("go/dnsforward/go1.15", "main.(*server).handleRequest", ["r->Question[0].Name"]),
    ],
)
def test_corpus_programs(
    name: str,
    function: str,
    wanted: list[str],
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    binary, printed = fixture(name), tmp_path / "printed"
    traced = trace(
        capfd, *wanted, "-x", binary, "-f", function, "--format", "jsonl",
        "--", "sh", "-c", f"exec {binary} >{printed}",
    )  # fmt: skip
    expected = [
        {label: call.values[label] for label in wanted}
        for call in calls(printed.read_text())
        if call.function == function
    ]
    assert traced.args == expected
    assert len(expected) >= 3


def test_results(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "$retval", "-x", program, "-f", "work", "--return", "--format", "jsonl",
        "--", program, "calls", "5",
    )  # fmt: skip
    assert [each["args"]["$retval"] for each in traced.objects] == [0, 4, 8, 12, 16]
    assert {each["kind"] for each in traced.objects} == {"return"}


def test_globs_and_what_they_leave_out(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "it->number", "-x", program, "-f", "w*", "-f", "ou?er", "-f", "down",
        "--format", "jsonl", "--", program, "calls", "2",
    )  # fmt: skip
    assert [(each["function"], each["args"]) for each in traced.objects] == [
        (name, {"it->number": number}) for number in (-50, -49) for name in ("outer", "work")
    ]
    assert traced.errors == (
        "left out `down`: `it->number`: no variable of that name is visible at the probe point"
        " (FC0201)\n"
    )


def test_hits_alone(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "-x", program, "-f", "*", "--format", "jsonl", "--", program, "calls", "2"
    )
    names = [each["function"] for each in traced.objects]
    assert [name for name in names if name in ("outer", "work")] == ["outer", "work"] * 2
    assert names.count("main") == 1
    assert all(each["args"] == {} for each in traced.objects)


def test_a_process_that_runs(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loop: list[str | Path] = [program, "loop"]
    with (
        subprocess.Popen(loop, stdout=subprocess.PIPE) as one,
        subprocess.Popen(loop, stdout=subprocess.PIPE) as other,
    ):
        try:
            traced = trace(
                    capfd, "n", "-x", program, "-f", "work", "-p", str(one.pid), "--count", "5",
                    "--format", "jsonl",
                )  # fmt: skip
            with running("n", "-x", program, "-f", "work") as everybody:
                pids: set[object] = set()
                while len(pids) < 2:
                    pids.add(event(everybody)["pid"])
                everybody.send_signal(signal.SIGTERM)
                everybody.communicate(timeout=SECONDS)
        finally:
            one.kill()
            other.kill()
    assert [each["pid"] for each in traced.objects] == [one.pid] * 5
    numbers = [each["args"]["n"] for each in traced.objects]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert pids == {one.pid, other.pid}


def test_stacks(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("n", "-x", program, "-f", "work", "--stack")
    traced = trace(capfd, *words, "--format", "jsonl", "--", program, "calls", "3")
    for each in traced.objects:
        frames = [frame["function"] for frame in each["stack"]]
        assert frames[:3] == ["work", "outer", "main"]
        assert each["stack"][0]["address"] == each["address"]
        assert each["stack"][0]["file"] == str(program)
    shown = trace(capfd, *words, "--", program, "calls", "1").lines
    assert re.fullmatch(r" {14}outer\+0x[0-9a-f]+ \(traced\)", shown[2])


def test_more_than_one_thread_and_fork(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    script = f"{program} calls 2 & {program} calls 3; wait"
    traced = trace(
        capfd, "n", "-x", program, "-f", "work", "--format", "jsonl", "--", "sh", "-c", script
    )
    pids = [each["pid"] for each in traced.objects]
    assert sorted(pids.count(pid) for pid in set(pids)) == [2, 3]
    assert json.dumps(traced.objects[0])


@pytest.mark.parametrize("engine", ["tracefs", "bpf"])
def test_a_thread_executes_a_program(
    capfd: pytest.CaptureFixture[str], program: Path, engine: str
) -> None:
    if engine == "bpf":
        require_bpf()
    # The thread has the number of its process from then on, which the main thread had before.
    script = (
        "import os, sys, threading\n"
        "threading.Thread(target=os.execv, args=(sys.argv[1], sys.argv[1:])).start()\n"
        "threading.Event().wait()\n"
    )
    words = ("--engine", engine, "n", "-x", program, "-f", "work", "--format", "jsonl")
    traced = trace(capfd, *words, "--", sys.executable, "-c", script, program, "calls", "3")
    assert [each["n"] for each in traced.args] == [0, 1, 2]


@pytest.mark.parametrize("engine", ["tracefs", "bpf"])
def test_a_command_has_its_own_limits(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    if engine == "bpf":
        require_bpf()
    before = signal.getsignal(signal.SIGPROF)
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    words = ("--engine", engine, "-x", program, "-f", "work", "--", sys.executable, "-c")
    script = "import resource; print('EVENT', *resource.getrlimit(resource.RLIMIT_DATA)[:1])"
    monkeypatch.setattr(ceilings, "_TICK", 0.001)
    ceilings.watch("", incremental=True)  # this process can hold much of earlier tests
    try:
        while resource.getrlimit(resource.RLIMIT_DATA)[0] == limit:
            pass  # until the question is bounded by what a program inherits
        assert trace(capfd, "n", *words, script).program == [f"EVENT {limit}"]
    finally:
        ceilings.unwatch()
        signal.signal(signal.SIGPROF, before)


def test_what_the_reader_knows_of_an_event(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = ["n", "$pid", "task=$tid", "$cpu", "$time", "$comm", "$function"]
    words: list[str | Path] = ["-x", program, "-f", "work", "--format", "jsonl"]
    found = trace(capfd, *wanted, "--filter", "$pid > 1", *words, "--", program, "calls", "3")
    assert [event["args"] for event in found.objects] == [
        {
            "n": number, "$pid": one["pid"], "task": one["thread"], "$cpu": one["cpu"],
            "$time": one["timestamp"], "$comm": one["comm"], "$function": "work",
        }
        for number, one in enumerate(found.objects)
    ]  # fmt: skip
    assert len(found.objects) == 3
    for text, code in (("$pid + 1", "FC0103"), ("$pid:x32", "FC0307")):
        refused = trace(capfd, text, *words, "--", program, "calls", "1")
        assert refused.status == 1
        assert code in refused.errors
        assert not refused.program  # it was not started


def test_parameters_are_shown_where_nothing_else_is(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words: list[str | Path] = ["-x", program, "-f", "nap", "--format", "jsonl"]
    words += ["--", program, "nap", "2"]
    assert trace(capfd, *words).args == [{"ms": 1}, {"ms": 2}]
    assert trace(capfd, "--calls-only", *words).args == [{}, {}]
    assert trace(capfd, "--return", "$ret", *words).args == [{"$ret": 1}, {"$ret": 2}]


def test_what_pointers_lead_to(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words: list[str | Path] = ["it", "*it", "-x", program, "-f", "work", "--filter", "it != NULL"]
    words += ["--format", "jsonl", "--", program, "calls", "3"]
    followed = trace(capfd, "--depth", "1", *words).args
    assert len(followed) == 3
    for number, one in enumerate(followed):
        assert one["it"] == one["*it"]
        assert (one["it"]["five"], one["it"]["pair"]) == (number, {"x": number, "y": -number})
    assert all(isinstance(one["it"], int) for one in trace(capfd, *words).args)
    refused = trace(capfd, "--depth", "9", *words)
    assert (refused.status, refused.program) == (2, [])
    assert "--depth takes 1 to 3" in refused.errors
