"""The whole run: which programs are drawn for which toolchain, and what each of them brings."""

from __future__ import annotations

from pathlib import Path
from random import Random

from fetchc.conformance import c_comparison, dwarf_comparison, go_drawing, rust_programs
from fetchc.conformance import go_comparison as go_reduce
from fetchc.conformance.c_comparison import check as check_c
from fetchc.conformance.c_programs import Build, build_c, c_source
from fetchc.conformance.child_processes import written
from fetchc.conformance.dotnet_programs import MonoBuild, check_dotnet, draw_dotnet, reproducer
from fetchc.conformance.go_comparison import check as check_go
from fetchc.conformance.go_programs import GoBuild, build_go, go_source
from fetchc.conformance.results import REFUSED, Reproducer, Tally
from fetchc.conformance.rust_drawing import rust_source
from fetchc.conformance.rust_programs import RustBuild, build_rust
from fetchc.conformance.toolchains import ProgramBuild, Toolchain
from fetchc.conformance.written_programs import WRITTEN, check_written
from fetchc.record import Record

__all__ = ["PARTS", "Job", "Result", "jobs", "run"]

PARTS = ("layouts", "signatures", *WRITTEN, "entries")
# Of one program: as many as keep a compiler's start from being most of the time.
_FAMILIES, _EXPRESSIONS, _FUNCTIONS = 9, 24, 40
_STRUCTURES = 40  # of a Go program


class Job(Record):
    """One program: drawn by ``seed``, for one part and one build of a toolchain."""

    toolchain: Toolchain
    build: ProgramBuild
    part: str
    seed: str
    engines: tuple[str, ...] = ()  # of the running kernel, which fetch the values, too


class Result(Record):
    """What one program brought: ``wrong`` values, and the first of them in a small program."""

    tally: Tally
    wrong: int
    reproducer: Reproducer | None


def jobs(
    toolchains: list[Toolchain],
    parts: tuple[str, ...],
    rounds: int,
    seed: str,
    engines: tuple[str, ...] = (),
) -> list[Job]:
    """All programs of a run, round by round; the same ones for the same seed."""
    return [
        Job(each, build, part, f"{seed}/{number}/{build}/{part}", engines)
        for number in range(rounds)
        for each in toolchains
        for build in each.builds
        for part in parts
        if _has_part(build, part, engines)
    ]


def _has_part(build: ProgramBuild, part: str, engines: tuple[str, ...]) -> bool:
    match build, part:
        case MonoBuild(), _:  # its code has no address before it runs: no oracle sees it
            return part == "signatures" and bool(engines)
        case Build(plus=plus), "containers":
            return plus
        case Build(options=options), _ if "-stdlib=libc++" in options:
            return False  # only what the library has is different
        case Build(options=options), "operators":
            return "-O0" in options  # an optimizer does not divide by zero as the machine does
        case _:
            return True


def run(job: Job, folder: Path, small: bool) -> Result:
    """Draw, build, run and compare one program in ``folder``.

    With ``small`` a wrong value is looked for in smaller and smaller programs. Raises
    ConformanceError where the toolchain fails.
    """
    random = Random(job.seed)
    if isinstance(job.build, MonoBuild):
        return _dotnet(job.build, job, random, folder, small)
    if job.part == "entries":
        return _entries(job.build, random, folder)
    if job.part in WRITTEN:
        return Result(*check_written(job.build, job.part, random, folder, job.engines, small))
    if isinstance(job.build, GoBuild):
        return _go(job.build, job, random, folder, small)
    if isinstance(job.build, RustBuild):
        return _rust(job.build, job, random, folder, small)
    return _c(job.build, job, random, folder, small)


def _dotnet(build: MonoBuild, job: Job, random: Random, folder: Path, small: bool) -> Result:
    program = draw_dotnet(random, _FUNCTIONS)
    tally, failures = check_dotnet(program, build, folder, job.engines)
    found = reproducer(program, failures[0], build) if failures and small else None
    return Result(tally, len(failures), found)


def _entries(build: Build | GoBuild | RustBuild, random: Random, folder: Path) -> Result:
    # The programs of the other parts; only their debug information is of interest.
    if isinstance(build, GoBuild):
        types, probes = go_drawing.draw(random, _STRUCTURES, 1, build.generics)
        return _of_entries(build, go_source(types, probes, 0), folder)
    if isinstance(build, RustBuild):
        return _of_entries(build, rust_source(rust_programs.draw(random, "layouts")), folder)
    drawn = [c_comparison.layouts(random, it, 1, plus=build.plus) for it in range(_FAMILIES)]
    result = _of_entries(build, c_source(drawn), folder)
    smaller = (_of_entries(build, c_source([each]), folder) for each in drawn if result.wrong)
    found = next((each.reproducer for each in smaller if each.wrong), result.reproducer)
    return Result(result.tally, result.wrong, found)


def _of_entries(build: Build | GoBuild | RustBuild, source: str, folder: Path) -> Result:
    tally = Tally()
    if isinstance(build, GoBuild):
        binary, command = build_go(source, build, folder), build.line("reproducer.go", "reproducer")
    elif isinstance(build, RustBuild):
        binary = build_rust(source, build, folder)
        command = build.line("reproducer.rs", "reproducer")
    else:
        binary = build_c(source, build, folder)
        command = build.command(f"reproducer.{'cc' if build.plus else 'c'}", "reproducer")
    tally.programs = 1
    tally.compared, wrong = dwarf_comparison.compare(binary, str(build))
    if not wrong:
        return Result(tally, 0, None)
    ours, theirs = wrong[0]
    return Result(
        tally,
        len(wrong),
        Reproducer(
            command=written(command),
            source="(an entry of its debug information)",
            whole=source,
            function=REFUSED,
            stage="debug information",
            expression=REFUSED,
            fetcharg=REFUSED,
            fetched=ours,
            program=theirs,
        ),
    )


def _c(build: Build, job: Job, random: Random, folder: Path, small: bool) -> Result:
    if job.part == "layouts":
        numbers = range(_FAMILIES)
        drawn = [c_comparison.layouts(random, it, _EXPRESSIONS, plus=build.plus) for it in numbers]
    else:
        drawn = [c_comparison.signatures(random, 0, _FUNCTIONS, build.plus)]
    tally, failures = check_c(drawn, build, folder, engines=job.engines)
    found = None
    if failures and small:
        found = c_comparison.reproducer(*c_comparison.reduced(failures[0], build, folder))
    return Result(tally, len(failures), found)


def _go(build: GoBuild, job: Job, random: Random, folder: Path, small: bool) -> Result:
    if job.part == "layouts":
        types, probes = go_drawing.draw(random, _STRUCTURES, _EXPRESSIONS, build.generics)
    else:
        types, probes = go_drawing.draw_signatures(random, _FUNCTIONS, build.generics)
    tally, failures = check_go(types, probes, build, folder, engines=job.engines)
    found = None
    if failures and small:
        failure, salt = go_reduce.reduced(failures[0], build, folder)
        found = go_reduce.reproducer(failure, build, salt)
    return Result(tally, len(failures), found)


def _rust(build: RustBuild, job: Job, random: Random, folder: Path, small: bool) -> Result:
    program = rust_programs.draw(random, job.part)
    tally, failures = rust_programs.check_rust(program, build, folder, job.engines)
    found = None
    if failures and small:
        found = rust_programs.reduced(program, failures[0], build, folder)
    return Result(tally, len(failures), found)
