"""Calculations of a trace against those of a compiler: drawn, built, run and compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from fetchc.conformance import rust_programs
from fetchc.conformance.c_programs import Build, build_c
from fetchc.conformance.child_processes import written
from fetchc.conformance.go_programs import GoBuild, build_go
from fetchc.conformance.operator_drawing import Operators, c_operators, go_operators
from fetchc.conformance.results import LIMITS, Reproducer, Tally
from fetchc.conformance.rust_operators import draw_operators
from fetchc.conformance.rust_programs import RustBuild, check_rust
from fetchc.conformance.shown_values import ShownFailure, ShownProbe, check, lettered

__all__ = ["check_operators", "evaluates"]

_EXPRESSIONS, _CALLS, _FUNCTIONS = 120, 6, 6


def evaluates(build: Build | GoBuild | RustBuild) -> bool:
    """Whether its programs calculate as the machine does: optimizers of C do not divide by zero."""
    return not isinstance(build, Build) or "-O0" in build.options


def check_operators(
    build: Build | GoBuild | RustBuild,
    random: Random,
    folder: Path,
    engines: Sequence[str] = (),
    small: bool = False,
) -> tuple[Tally, int, Reproducer | None]:
    """What was compared, how many values are wrong, and with ``small`` a program for the first."""
    if isinstance(build, RustBuild):
        program = draw_operators(random, _FUNCTIONS, _EXPRESSIONS // _FUNCTIONS)
        tally, failures = check_rust(program, build, folder, engines)
        found = None
        if failures and small:
            found = rust_programs.reduced(program, failures[0], build, folder)
        return tally, len(failures), found
    if isinstance(build, GoBuild):
        drawn = go_operators(random, _EXPRESSIONS, _CALLS)
        binary = build_go(drawn.source, build, folder)
        line = build.line("reproducer.go", "reproducer")
    else:
        # A sum that is too large wraps; ptrace finds a program where its file says.
        build = build.replaced(options=(*build.options, "-fwrapv", "-no-pie"))
        drawn = c_operators(random, _EXPRESSIONS, _CALLS)
        binary = build_c(drawn.source, build, folder)
        line = build.command(f"reproducer.{'cc' if build.plus else 'c'}", "reproducer")
    tally = Tally()
    tally.programs = 1
    probes = [ShownProbe(drawn.function, drawn.function, None, drawn.texts, drawn.left_open)]
    read = partial(lettered, drawn.function)
    failures = check(binary, [str(binary)], probes, tally, LIMITS, engines, read)
    found = _reproducer(drawn, failures[0], line) if failures and small else None
    return tally, len(failures), found


def _reproducer(drawn: Operators, failure: ShownFailure, line: Sequence[str]) -> Reproducer:
    return Reproducer(
        command=written(line),
        source=f"(a calculation in `{drawn.function}`)",
        whole=drawn.source,
        function=drawn.function,
        stage="entry",
        expression=failure.text,
        fetcharg=f"by {failure.reader}",
        fetched=str(failure.got),
        program=str(failure.expected),
    )
