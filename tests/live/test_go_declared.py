"""Go's variables between the entry and their declaration; named results on the way to the return.

Code without optimisation gives each a slot of its own. Before its declaration has run a variable
has what an earlier call left there; a named result has its zero value from the start.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
package main

//go:noinline
func step(text string, by int) int { return len(text) + by }

//go:noinline
func sum(name string, numbers []int) (n int, last string) {
	text := name + "!"
	for i, number := range numbers {
		n += number
		step(text, i)
	}
	rest := numbers[1:]
	last = text
	return n + len(rest), last
}

func main() {
	for round := 1; round < 4; round++ {
		sum("name", []int{round, 10 * round})
	}
}
"""


def _build(folder: Path, version: str) -> Path:
    flags = "-gcflags=-N -l"
    return go_program(version, folder, SOURCE.lstrip(), flags, name="declared")


def _refusal(program: Path, line: int, name: str) -> tuple[str, str]:
    probe = fetchc.open(str(program)).probe("main.sum", at=f":{line}")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile(name)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code, diagnostic.message


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_what_is_not_declared_yet_is_refused(version: str, tmp_path: Path) -> None:
    program = _build(tmp_path, version)
    for line, name, declared in ((8, "text", 8), (11, "rest", 13), (13, "rest", 13), (9, "i", 9)):
        code, message = _refusal(program, line, name)
        assert code == "FC0401"
        assert f"its declaration on line {declared} has not run yet" in message


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_values_behind_the_declaration(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program = _build(tmp_path, version)
    opened = fetchc.open(str(program))
    inside, behind = (opened.probe("main.sum", at=f":{line}") for line in (11, 15))
    _, events = watched(
        lambda group: [
            inside.plan(["text", "i", "n", "last"], group),
            behind.plan(["rest", "n", "last"], group),
        ],
        [program],
    )
    printed = [dict(event.args) for event in events]
    wanted: list[dict[str, object]] = []
    for round in (1, 2, 3):
        wanted.append({"text": "name!", "i": 0, "n": round, "last": ""})
        wanted.append({"text": "name!", "i": 1, "n": 11 * round, "last": ""})
        wanted.append({"rest": [10 * round], "n": 11 * round, "last": "name!"})
    assert printed == wanted
