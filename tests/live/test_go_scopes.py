"""What a name means in Go where inner blocks declare it again, some of them on the heap.

Programs of random blocks tell at each mark what ``v`` is there; the kernel fetches it at the line
of the mark. ``FETCHC_SEEDS=1000-1040`` draws others.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

HEADER = """package main

var taken []*int

//go:noinline
func take(p *int) { taken = append(taken, p) }

//go:noinline
func report(line, v int) { println(line, v) }
"""
FUNCTIONS = 4
SHADOWED = (
    HEADER
    + """
//go:noinline
func shadowed(id, k int) int {
	report(13, id)
	if k > 0 {
		id := k * 100
		take(&id)
		report(17, id)
		report(18, id)
	}
	report(20, id)
	return id
}

func main() { shadowed(7, 3); shadowed(8, 4) }
"""
)


class Scopes:
    """The source of one program, and the lines that tell what ``v`` is, by their function."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.lines = HEADER.splitlines()
        self.marks: dict[int, str] = {}
        self._number = 100
        for number in range(FUNCTIONS):
            self._function = f"main.scope{number}"
            self.lines += ["", "//go:noinline", f"func scope{number}(v, k int) int {{"]
            self._block(1)
            self.lines += ["\treturn v", "}"]
        calls = [f"\tscope{number}({number}, {number % 3})" for number in range(FUNCTIONS)]
        self.lines += ["", "func main() {", *calls, "}", ""]

    def _mark(self, tabs: str) -> None:
        number = len(self.lines) + 1
        self.marks[number] = self._function
        self.lines.append(f"{tabs}report({number}, v)")

    def _block(self, depth: int, declares: bool = False) -> None:
        tabs, random = "\t" * depth, self._random
        self._mark(tabs)
        if declares:
            self._number += 7
            # Of a constant, optimised code has no trace at all, and the outer one is seen.
            self.lines.append(f"{tabs}v := {random.choice('vk')} + {self._number}")
            self._mark(tabs)
        if random.random() < 0.6:
            self.lines.append(f"{tabs}take(&v)")
        for _ in range(random.randrange(1, 4)):
            if depth < 5 and random.random() < 0.7:
                head = random.choice(["{", "if k > 0 {", "for i := 0; i < 2; i++ {"])
                self.lines.append(tabs + head)
                self._block(depth + 1, random.random() < 0.7)
                self.lines.append(tabs + "}")
            else:
                self.lines.append(f"{tabs}v += {random.randrange(1, 9)}")
            self._mark(tabs)


# What is optimised may leave out a variable without a word (a constant; 1.27, one on the heap), and
# then the outer one is seen: of random programs only those that are not are asked.
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_the_innermost_declaration_counts(version: str, seed: int, tmp_path: Path) -> None:
    scopes = Scopes(seed)
    program = go_program(
        version, tmp_path, "\n".join(scopes.lines), "-gcflags=-N -l", name="scopes"
    )
    printed, fetched = values(program, scopes.marks, "v")
    assert fetched == printed
    print(f"seed {seed}, Go {version}: {len(scopes.marks)} marks, {len(fetched)} values")
    assert len(fetched) > 30


@pytest.mark.parametrize("flags", [(), ("-gcflags=-N -l",)], ids=["optimised", "-N"])
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_an_inner_variable_on_the_heap_hides_a_parameter(
    version: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    program = go_program(version, tmp_path, SHADOWED, *flags, name="shadowed")
    lines = [number for number, line in enumerate(SHADOWED.splitlines(), 1) if "report(" in line]
    printed, fetched = values(program, dict.fromkeys(lines[1:], "main.shadowed"), "id")
    assert fetched == printed
    assert {value for _, value in fetched} == {7, 8, 300, 400}


def values(
    program: Path, marks: dict[int, str], name: str
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What the program printed at its marks and what the kernel fetched: lines and values."""
    require_uprobes()
    opened = fetchc.open(str(program))
    probes = {line: opened.probe(function, at=f":{line}") for line, function in marks.items()}
    printed, events = watched(
        lambda group: [
            probe.plan([name], group, event=f"at{line}") for line, probe in probes.items()
        ],
        ["/bin/sh", "-c", f"exec {program} 2>&1"],
    )
    expected = [(int(line), int(value)) for line, value in map(str.split, printed.splitlines())]
    fetched = [(int(event.name.removeprefix("at")), event.args[name]) for event in events]
    return expected, [(line, value) for line, value in fetched if isinstance(value, int)]
