"""The whole run: which programs are drawn for which toolchain, and what each of them brings."""

from __future__ import annotations

from pathlib import Path
from random import Random

from fetchc.conformance import c_comparison, go_drawing
from fetchc.conformance import go_comparison as go_reduce
from fetchc.conformance.c_comparison import check as check_c
from fetchc.conformance.c_programs import Build
from fetchc.conformance.go_comparison import check as check_go
from fetchc.conformance.go_programs import GoBuild
from fetchc.conformance.results import Reproducer, Tally
from fetchc.conformance.toolchains import Toolchain
from fetchc.record import Record

__all__ = ["PARTS", "Job", "Result", "jobs", "run"]

PARTS = ("layouts", "signatures")
# Of one program: as many as keep a compiler's start from being most of the time.
_FAMILIES, _EXPRESSIONS, _FUNCTIONS = 9, 24, 40
_STRUCTURES = 40  # of a Go program


class Job(Record):
    """One program: drawn by ``seed``, for one part and one build of a toolchain."""

    toolchain: Toolchain
    build: Build | GoBuild
    part: str
    seed: str


class Result(Record):
    """What one program brought: ``wrong`` values, and the first of them in a small program."""

    tally: Tally
    wrong: int
    reproducer: Reproducer | None


def jobs(toolchains: list[Toolchain], parts: tuple[str, ...], rounds: int, seed: str) -> list[Job]:
    """All programs of a run, round by round; the same ones for the same seed."""
    return [
        Job(each, build, part, f"{seed}/{number}/{build}/{part}")
        for number in range(rounds)
        for each in toolchains
        for build in each.builds
        for part in parts
    ]


def run(job: Job, folder: Path, small: bool) -> Result:
    """Draw, build, run and compare one program in ``folder``.

    With ``small`` a wrong value is looked for in smaller and smaller programs. Raises
    ConformanceError where the toolchain fails.
    """
    random = Random(job.seed)
    if isinstance(job.build, GoBuild):
        return _go(job.build, job.part, random, folder, small)
    return _c(job.build, job.part, random, folder, small)


def _c(build: Build, part: str, random: Random, folder: Path, small: bool) -> Result:
    if part == "layouts":
        numbers = range(_FAMILIES)
        drawn = [c_comparison.layouts(random, it, _EXPRESSIONS, plus=build.plus) for it in numbers]
    else:
        drawn = [c_comparison.signatures(random, 0, _FUNCTIONS, build.plus)]
    tally, failures = check_c(drawn, build, folder)
    found = None
    if failures and small:
        found = c_comparison.reproducer(*c_comparison.reduced(failures[0], build, folder))
    return Result(tally, len(failures), found)


def _go(build: GoBuild, part: str, random: Random, folder: Path, small: bool) -> Result:
    if part == "layouts":
        types, probes = go_drawing.draw(random, _STRUCTURES, _EXPRESSIONS, build.generics)
    else:
        types, probes = go_drawing.draw_signatures(random, _FUNCTIONS, build.generics)
    tally, failures = check_go(types, probes, build, folder)
    found = None
    if failures and small:
        failure, salt = go_reduce.reduced(failures[0], build, folder)
        found = go_reduce.reproducer(failure, build, salt)
    return Result(tally, len(failures), found)
