"""Programs that write the values of their expressions: drawn, built, run, a trace of them compared.

They are of calculations, or of containers and their elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from fetchc.conformance import rust_programs
from fetchc.conformance.c_programs import Build, build_c
from fetchc.conformance.child_processes import written
from fetchc.conformance.container_drawing import cpp_containers, go_containers
from fetchc.conformance.go_programs import GoBuild, build_go
from fetchc.conformance.operator_drawing import c_operators, go_operators
from fetchc.conformance.results import LIMITS, Reproducer, Tally
from fetchc.conformance.rust_operators import draw_operators
from fetchc.conformance.rust_programs import RustBuild, check_rust
from fetchc.conformance.shown_values import ShownProbe, check, lettered, said
from fetchc.record import Record

__all__ = ["WRITTEN", "check_written"]

WRITTEN = ("operators", "containers")
"""The parts whose programs are of this kind."""
_EXPRESSIONS, _CALLS, _FUNCTIONS = 120, 6, 6


class _Program(Record):
    # ``read`` gives the values of what it prints, by the function's name and the call.
    source: str
    probes: tuple[ShownProbe, ...]
    read: Callable[[str], dict[str, list[list[object]]]]


def check_written(
    build: Build | GoBuild | RustBuild,
    part: str,
    random: Random,
    folder: Path,
    engines: Sequence[str] = (),
    small: bool = False,
) -> tuple[Tally, int, Reproducer | None]:
    """What was compared, how many values are wrong, and with ``small`` a program for the first."""
    if isinstance(build, RustBuild):
        if part == "operators":
            drawn = draw_operators(random, _FUNCTIONS, _EXPRESSIONS // _FUNCTIONS)
        else:
            drawn = rust_programs.draw(random, part)
        tally, failures = check_rust(drawn, build, folder, engines)
        found = None
        if failures and small:
            found = rust_programs.reduced(drawn, failures[0], build, folder)
        return tally, len(failures), found
    program = _drawn(build, part, random)
    if isinstance(build, GoBuild):
        binary = build_go(program.source, build, folder)
        line = build.line("reproducer.go", "reproducer")
    else:
        # A sum that is too large wraps; ptrace finds a program where its file says.
        build = build.replaced(options=(*build.options, "-fwrapv", "-no-pie"))
        binary = build_c(program.source, build, folder)
        line = build.command(f"reproducer.{'cc' if build.plus else 'c'}", "reproducer")
    tally = Tally()
    tally.programs = 1
    failures = check(binary, program.probes, tally, LIMITS, engines, program.read)
    if not failures or not small:
        return tally, len(failures), None
    part = f"(an expression of `{failures[0].probe.function}`)"
    return tally, len(failures), failures[0].reproducer(written(line), part, program.source)


def _drawn(build: Build | GoBuild, part: str, random: Random) -> _Program:
    if part == "containers":
        draw = go_containers if isinstance(build, GoBuild) else cpp_containers
        containers = draw(random, _FUNCTIONS, _EXPRESSIONS // (2 * _FUNCTIONS))
        return _Program(containers.source, containers.probes, said)
    if isinstance(build, GoBuild):
        drawn = go_operators(random, _EXPRESSIONS, _CALLS, build.version >= (1, 21))
    else:
        drawn = c_operators(random, _EXPRESSIONS, _CALLS)
    probe = ShownProbe(drawn.function, drawn.function, None, drawn.texts, drawn.left_open)
    return _Program(drawn.source, (probe,), partial(lettered, drawn.function))
