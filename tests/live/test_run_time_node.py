"""Functions that Node compiled, by the perf map that V8 writes: arguments and callers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.debuginfo.perf_map_format import parse_lines
from fetchc.debuginfo.perf_map_program import plain
from fetchc.tracer.breakpoints import most_breakpoints
from tests.live.test_run_time_code import Service, Trace
from tests.support.toolchains import require

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

SCRIPT = """
function addUp(n) { let t = 0; for (let i = 0; i < n % 5 + 3; i++) t += i * n; return t; }
function caller(n) { return addUp(n) + 1; }
let sum = 0;
for (let n = 0; n < 200000; n++) sum += caller(n % 1000);
process.stdin.on('data', line => {
    const [first, count] = line.toString().split(' ').map(Number);
    for (let n = first; n < first + count; n++) sum += caller(n);
    console.log('done');
});
console.log('ready');
"""
SMALL_INTEGER = 32  # bits that V8 shifts one by. Source: V8, include/v8-internal.h, kSmiShiftSize


class Node(Service):
    """Node, with the script; calls of ``addUp`` stay calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "add.js").write_text(SCRIPT)
        command = ["node", "--perf-basic-prof", "--no-turbo-inlining", str(folder / "add.js")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )
        self.pid = self.process.pid
        self.lines("ready")


@pytest.fixture(name="node")
def node_(tmp_path: Path) -> Iterator[Node]:
    require("node")
    node = Node(tmp_path)
    yield node
    node.end()


def test_arguments_and_callers_by_a_map_of_v8(node: Node) -> None:
    path = Path(f"/tmp/perf-{node.pid}.map")
    place = ("-f", "addUp")
    for begin in (5000, 70000):
        trace = Trace(node, "$stack2", "%ip", *place, "--stack=fp", "--format", "jsonl")
        for first in (begin, begin + 500):
            node.ask(f"{first} 50")
            node.lines("done")
        events, said = trace.ended()
        numbers = [event["args"]["$stack2"] >> SMALL_INTEGER for event in events]
        assert numbers == [*range(begin, begin + 50), *range(begin + 500, begin + 550)], said
        symbols = {one.start: one.symbol for one in parse_lines(str(path), path.read_bytes())}
        for event in events:
            assert event["args"]["%ip"] == event["address"]
            own, outer, *more = [one["function"] for one in event["stack"]]
            assert own == symbols[event["address"]]
            assert (plain(own), plain(outer)) == ("addUp", "caller")
            # The interpreter, and C++ that called it: 16 KiB of the stack reach up to there.
            assert "Builtins_JSEntry" in more
            assert any(str(one).startswith("node::StreamBase::") for one in more)
        place = ("--at", f"{events[-1]['address']:#x}")
