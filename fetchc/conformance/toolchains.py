"""The user's toolchains: what they are, and with which options they build what can be looked at."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import fetchc
from fetchc.conformance.c_programs import Build, build_c
from fetchc.conformance.child_processes import ConformanceError, call, refused
from fetchc.conformance.dotnet_programs import MonoBuild, build_dotnet
from fetchc.conformance.go_programs import KERNEL, GoBuild, build_go
from fetchc.conformance.rust_programs import RustBuild, build_rust
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    AnyBuild = TypeVar("AnyBuild", Build, GoBuild, RustBuild, MonoBuild)

__all__ = [
    "ProgramBuild",
    "Toolchain",
    "c_toolchain",
    "go_toolchain",
    "here",
    "mono_toolchain",
    "rust_toolchain",
]

ProgramBuild = Build | GoBuild | RustBuild | MonoBuild

_C_OPTIONS = [
    ("-O0", "-gdwarf-4"),
    ("-O0", "-gdwarf-5", "-no-pie"),
    ("-O2", "-gdwarf-4", "-no-pie"),
    ("-O2", "-gdwarf-5"),
]
_GO_OPTIONS: list[tuple[str, ...]] = [(), ("-gcflags=-N -l",)]
_RUST_OPTIONS = [("-C", "opt-level=0"), ("-C", "opt-level=2")]

_CLANG_OPTIONS = [("-O0", "-gdwarf-5", "-stdlib=libc++")]  # for containers of another library
_C_TRIAL = "int asked(int given) { return given; }\nint main(void) { return asked(0); }\n"
_GO_TRIAL = """package main

//go:noinline
func asked(given int) int { return given }
func main() { asked(0) }
"""
_RUST_TRIAL = """#[inline(never)]
fn asked(given: i32) -> i32 { println!("{}", given); given }
fn main() { asked(0); }
"""
_MONO_TRIAL = """using System.Runtime.CompilerServices;
public class Drawn {
    [MethodImpl(MethodImplOptions.NoInlining)] static int Asked(int given) { return given; }
    public static void Main() { Asked(0); }
}
"""
_ANSWER_SECONDS = 30


class Toolchain(Record):
    """A compiler as it was ``name``d; ``left_out`` says which options it does not take, and why."""

    name: str
    version: str
    language: str
    builds: tuple[ProgramBuild, ...]
    left_out: tuple[str, ...]


def here() -> None:
    """Raise ConformanceError (FC0807) where the drawn programs cannot run."""
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        raise refused(
            "FC0807",
            f"the drawn programs run on Linux on x86-64, not on {system} on {machine}",
            "run the suite on such a machine",
        )


def c_toolchain(command: str, folder: Path) -> Toolchain:
    """A C compiler, or a C++ one where its name has ``++``; tried in ``folder``."""
    command = _whole(command)
    version = call([command, "--version"], folder, _ANSWER_SECONDS)
    plus = "++" in Path(command).name
    trial = '#include <string>\nextern "C" ' * plus + _C_TRIAL
    lines = (version.output or version.errors).splitlines() or [command]
    options = _C_OPTIONS + _CLANG_OPTIONS * (plus and "clang" in lines[0])

    def asked(build: Build) -> None:
        _looked_at(build_c(trial, build, folder), str(build), "asked", folder)

    builds, left_out = _tried([Build(command, one, plus) for one in options], asked)
    return Toolchain(command, lines[0], "c++" if plus else "c", builds, left_out)


def go_toolchain(command: str, folder: Path) -> Toolchain:
    """A Go toolchain by its ``go`` command or its GOROOT; tried in ``folder``."""
    if os.path.isdir(command):
        command = os.path.join(command, "bin", "go")
    command = _whole(command)
    environment = _go_environment(folder)
    answer = call([command, "version"], folder, _ANSWER_SECONDS, environment)
    match = re.search(r"go version go(\d+)\.(\d+)\S*", answer.output)
    if answer.status or match is None:
        raise refused(
            "FC0801",
            f"`{command}` does not say which Go it is: {answer.complaint or answer.ending}",
            "name the command `go` of a toolchain, or its GOROOT",
        )
    version = int(match[1]), int(match[2])

    def asked(build: GoBuild) -> None:
        _looked_at(build_go(_GO_TRIAL, build, folder), str(build), "main.asked", folder)

    tried = [GoBuild(command, version, one, environment) for one in _GO_OPTIONS]
    builds, left_out = _tried(tried, asked)
    return Toolchain(command, answer.output.strip(), "go", builds, left_out)


def rust_toolchain(command: str, folder: Path) -> Toolchain:
    """A Rust compiler, ``rustc``; tried in ``folder``."""
    command = _whole(command)
    version = call([command, "--version"], folder, _ANSWER_SECONDS)

    def asked(build: RustBuild) -> None:
        binary = build_rust(_RUST_TRIAL, build, folder)
        _looked_at(binary, str(build), "drawn::asked", folder, "body")

    builds, left_out = _tried([RustBuild(command, one) for one in _RUST_OPTIONS], asked)
    lines = (version.output or version.errors).splitlines() or [command]
    return Toolchain(command, lines[0], "rust", builds, left_out)


def mono_toolchain(command: str, folder: Path) -> Toolchain:
    """Mono, by its command ``mono``; ``mcs`` is beside it. Tried in ``folder``."""
    command = _whole(command)
    version = call([command, "--version"], folder, _ANSWER_SECONDS)

    def asked(build: MonoBuild) -> None:
        assembly = build_dotnet(_MONO_TRIAL, build, folder)
        _looked_at(assembly, str(build), "Drawn.Asked", folder, runtime=(command,))

    builds, left_out = _tried([MonoBuild(command)], asked)
    lines = (version.output or version.errors).splitlines() or [command]
    return Toolchain(command, lines[0], "c#", builds, left_out)


def _tried(
    builds: Sequence[AnyBuild], asked: Callable[[AnyBuild], None]
) -> tuple[tuple[AnyBuild, ...], tuple[str, ...]]:
    """The builds that work, and why the others do not; where none does, the first refusal."""
    usable, left_out, errors = [], [], []
    for build in builds:
        try:
            asked(build)
            usable.append(build)
        except ConformanceError as error:
            errors.append(error)
            options = " ".join(build.options) or "no options"
            left_out.append(f"{options}: {error.diagnostic.message}")
    if not usable:
        raise errors[0]
    return tuple(usable), tuple(left_out)


def _whole(command: str) -> str:
    # The suite runs it in another directory.
    return os.path.abspath(command) if os.sep in command else command


def _go_environment(folder: Path) -> dict[str, str]:
    # Of the user's settings only where things are; nothing is fetched, no other Go is taken.
    names = ("PATH", "HOME", "GOROOT", "GOCACHE", "TMPDIR", "XDG_CACHE_HOME")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    if "HOME" not in environment:
        environment.setdefault("GOCACHE", str(folder / "cache"))
    return environment | {
        **{"GOPATH": str(folder / "gopath"), "GO111MODULE": "off", "GOPROXY": "off"},
        **{"GOFLAGS": "", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off", "CGO_ENABLED": "0"},
        **{"GOOS": "linux", "GOARCH": "amd64"},
    }


def _looked_at(
    binary: Path,
    build: str,
    function: str,
    folder: Path,
    at: str | None = None,
    runtime: tuple[str, ...] = (),
) -> None:
    # The trial program has to run, and fetchc to read one expression of it.
    done = call([*runtime, str(binary)], folder, _ANSWER_SECONDS, built=build)
    if done.status:
        raise refused(
            "FC0805",
            f"a program built by `{build}` {done.ending}",
            "run a program of this compiler by hand",
        )
    try:
        fetchc.open(str(binary)).probe(function, at=at, kernel=KERNEL).compile("given")
    except (fetchc.CompileError, fetchc.DebugInfoError) as error:
        raise refused(
            "FC0804",
            f"fetchc finds no debug information in what `{build}` builds: {error}",
            "look with `readelf --debug-dump=info` at what the compiler writes with `-g`",
        ) from error
