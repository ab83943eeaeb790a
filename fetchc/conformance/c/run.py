"""Building and running a drawn C or C++ program, and what it tells.

It prints ``region ADDRESS HEX`` of memory, and for each function a line ``probe`` with its
address, ``size`` of what it takes and gives, ``stop`` with registers and stack, and ``value N
ITEM...`` as the compiler evaluates it.
"""

from __future__ import annotations

from pathlib import Path

from fetchc.conformance.c.prologue import BELOW, REGISTERS, SAVED
from fetchc.conformance.errors import refused
from fetchc.conformance.process import call, written
from fetchc.record import Record

__all__ = ["Build", "Stop", "Told", "build_c", "run"]

_BUILD_SECONDS, _RUN_SECONDS = 240, 60


class Build(Record):
    """A compiler and options of it; ``plus``: for C++."""

    compiler: str
    options: tuple[str, ...]
    plus: bool = False

    def __str__(self) -> str:
        return " ".join([self.compiler, *self.options])

    def command(self, file: Path | str, binary: Path | str) -> tuple[str, ...]:
        """What builds ``binary`` from the source ``file``."""
        common = ["-g", "-w", "-Wno-psabi", "-fno-strict-aliasing"]
        if self.plus:
            common += ["-std=gnu++17"]
        return (self.compiler, *common, *self.options, "-o", str(binary), str(file))


class Stop(Record):
    """Registers by the kernel's names, vector registers, the stack with its first address."""

    registers: dict[str, int]
    vectors: tuple[bytes, ...]
    stack: tuple[int, bytes]


class Told:
    """What one run printed."""

    def __init__(self) -> None:
        self.regions: dict[int, bytes] = {}
        self.addresses: dict[str, tuple[int, int]] = {}  # entry and mark
        self.sizes: dict[tuple[str, str], int] = {}
        self.stops: dict[tuple[str, str], Stop] = {}
        self.values: dict[tuple[str, int], list[int | bytes]] = {}


def build_c(source: str, build: Build, folder: Path) -> Path:
    """Build a program in ``folder``; raises ConformanceError (FC0802) where there comes none."""
    file, binary = folder / ("drawn.cc" if build.plus else "drawn.c"), folder / "drawn"
    file.write_text(source)
    binary.unlink(missing_ok=True)
    built = call(build.command(file, binary), folder, _BUILD_SECONDS)
    if built.status or not binary.exists():
        said = built.complaint or "it said nothing"
        raise refused(
            "FC0802",
            f"`{build}` {built.ending} and built no program: {said}",
            "compile a C program by hand with these options, or name another compiler",
            f"the command is `{written(built.command)}`",
        )
    return binary


def run(source: str, build: Build, folder: Path) -> tuple[Path, Told]:
    """Build and run a program in ``folder``.

    Raises ConformanceError as :func:`build_c`, or where it does not run to its end (FC0805).
    """
    binary = build_c(source, build, folder)
    done = call([str(binary)], folder, _RUN_SECONDS, built=str(build))
    if done.status:
        raise refused(
            "FC0805",
            f"a program built by `{build}` {done.ending}",
            "run a program of this compiler by hand: it may be built for another machine",
            *([f"it said: {done.complaint}"] if done.complaint else []),
        )
    return binary, _read(done.output)


def _read(printed: str) -> Told:
    told = Told()
    for line in printed.splitlines():
        word, *rest = line.split(" ")
        if word == "region":
            told.regions[int(rest[0], 16)] = bytes.fromhex(rest[1])
        elif word == "probe":
            told.addresses[rest[0]] = int(rest[1], 16), int(rest[2], 16)
        elif word == "size":
            told.sizes[rest[0], rest[1]] = int(rest[2])
        elif word == "stop":
            told.stops[rest[0], rest[1]] = _stop(bytes.fromhex(rest[2]))
        else:
            told.values[rest[0], int(rest[1])] = _items(rest[2:])
    return told


def _stop(raw: bytes) -> Stop:
    behind = 8 * len(REGISTERS)
    words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, behind, 8)]
    registers = dict(zip(REGISTERS, words, strict=True))
    vectors = tuple(raw[at : at + 16] for at in range(behind, SAVED, 16))
    return Stop(registers, vectors, (registers["sp"] - BELOW, raw[SAVED:]))


def _items(words: list[str]) -> list[int | bytes]:
    found: list[int | bytes] = []
    for word in words:
        if word[:1] == "i":
            found.append(int(word[1:], 16))
        elif word not in ("b", "t"):  # marks, an empty word is an empty text
            found.append(bytes.fromhex(word))
    return found
