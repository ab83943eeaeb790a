"""A Rust program of drawn types: built, run, and what a trace shows of it compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from fetchc.conformance.child_processes import call, unbuilt, written
from fetchc.conformance.results import LIMITS, Reproducer, Tally
from fetchc.conformance.rust_drawing import RustProgram, draw_collections, draw_rust, rust_source
from fetchc.conformance.shown_values import ShownFailure, ShownProbe, check
from fetchc.diag.diagnostic import Error
from fetchc.record import Record

__all__ = ["RustBuild", "build_rust", "check_rust", "draw", "reduced"]

_BUILD_SECONDS = 300
_TYPES, _FUNCTIONS, _EXPRESSIONS = 14, 12, 14
# Optimized code has a parameter anywhere, and not always; equal functions are one.
_OPTIMIZED = frozenset(["FC0202", "FC0206", "FC0401", "FC0402", "FC0404", "FC0405", "FC0406"])


class RustBuild(Record):
    """A rustc and options of it."""

    command: str
    options: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([self.command, *self.options])

    def line(self, file: Path | str, binary: Path | str) -> tuple[str, ...]:
        """The command that builds ``binary`` from the source ``file``."""
        common = (
            "--edition",
            "2021",
            "--crate-name",
            "drawn",
            "-g",
            "-C",
            "relocation-model=static",
        )
        return (self.command, *common, *self.options, "-o", str(binary), str(file))

    @property
    def allowed(self) -> frozenset[str]:
        """The codes with which an expression may be refused."""
        return LIMITS if "opt-level=0" in self.options else LIMITS | _OPTIMIZED


def build_rust(source: str, build: RustBuild, folder: Path) -> Path:
    """Build a program in ``folder``; raises ConformanceError where rustc does not (FC0802)."""
    file, binary = folder / "drawn.rs", folder / "drawn"
    file.write_text(source)
    binary.unlink(missing_ok=True)
    line = build.line(file, binary)
    done = call(line, folder, _BUILD_SECONDS)
    if done.status or not binary.exists():
        help = "build a Rust program by hand with these options, or name another toolchain"
        raise unbuilt(build, done, help)
    return binary


def draw(random: Random, part: str) -> RustProgram:
    """A program of ``layouts``, of ``containers``, or of ``signatures``, which has few types."""
    if part == "containers":
        return draw_collections(random, 4, _FUNCTIONS, _EXPRESSIONS)
    if part == "layouts":
        return draw_rust(random, _TYPES, _FUNCTIONS, _EXPRESSIONS)
    return draw_rust(random, 3, 3 * _FUNCTIONS, _EXPRESSIONS // 2)


def check_rust(
    program: RustProgram, build: RustBuild, folder: Path, engines: Sequence[str] = ()
) -> tuple[Tally, list[ShownFailure]]:
    """Build, run and compare; ``engines`` are those that record another run."""
    binary = build_rust(rust_source(program), build, folder)
    tally = Tally()
    tally.programs, tally.types = 1, len(program.types)
    probes = [
        ShownProbe(
            f"drawn::{it.name}", it.name, "body", tuple([one.text for one in it.expressions])
        )
        for it in program.probes
    ]
    return tally, check(binary, probes, tally, build.allowed, engines)


def reduced(
    program: RustProgram, failure: ShownFailure, build: RustBuild, folder: Path
) -> Reproducer:
    """The program with the failing function and expression alone, where it still fails there."""
    (probe,) = [it for it in program.probes if it.name == failure.probe.name]
    asked = [it for it in probe.expressions if it.text == failure.text]
    alone = program.replaced(probes=(probe.replaced(expressions=tuple(asked)),))
    engines = () if failure.reader in ("refused", "ir.evaluate_steps") else (failure.reader,)
    try:
        _, again = check_rust(alone, build, folder, engines)
    except Error:
        again = []
    if again:
        program, failure = alone, again[0]
    command = written(build.line("reproducer.rs", "reproducer"))
    return failure.reproducer(command, "\n".join(program.declared), rust_source(program))
