#!/usr/bin/env python3
"""Rebuild the fixtures of the corpus: the one recipe for every committed binary.

    python3 corpus/build.py                      all that the toolchains here can build, in place
    python3 corpus/build.py --into DIR PATTERN   some of them, elsewhere, in the same directories
    python3 corpus/build.py --list               what there is to build, and what it needs

A PATTERN is a glob on the fixture's name, such as ``go/dnsforward/go1.15*``; the fixture
``go/dnsforward/go1.15`` is the file ``corpus/go/dnsforward/bin/go1.15``.

Builds hold no path of the machine they ran on, and are the same bytes wherever the same
compilers run. ``.ci/setup`` brings the compilers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

CORPUS = Path(__file__).resolve().parent
sys.path.insert(0, str(CORPUS.parent))

from tests.support.toolchains import ZIG, go_environment, go_root, missing  # noqa: E402


@dataclass(frozen=True)
class Fixture:
    """A binary: the program's directory below corpus/, the file's name, and how it is made."""

    program: str
    name: str
    needs: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.program}/{self.name}"

    def path(self, top: Path) -> Path:
        return top / self.program / "bin" / self.name


def go_fixtures() -> Iterator[Fixture]:
    """The seed's program and Go's other features; with the package that it imports in truth."""
    plain: tuple[str, ...] = ()
    unoptimised = ("-gcflags=all=-N -l",)
    for version, suffix, flags in (
        ("1.15", "", plain),
        ("1.15", "-N-l", unoptimised),
        ("1.22", "", plain),
        ("1.27", "", plain),
        ("1.27", "-N-l", unoptimised),
    ):
        yield Fixture("go/dnsforward", f"go{version}{suffix}", (f"go{version}",), flags)
        if (version, suffix) != ("1.15", "-N-l"):
            yield Fixture("go/features", f"go{version}{suffix}", (f"go{version}",), flags)
    for version in ("1.21", "1.24"):
        yield Fixture("go/features", f"go{version}", (f"go{version}",), plain)
    for version in ("1.15", "1.27"):
        yield Fixture("go/miekg", f"go{version}", (f"go{version}", "miekg"), plain)
    bare = "-ldflags=-s -w"
    for version in ("1.15", "1.22", "1.27"):
        yield Fixture("go/stripped", f"go{version}", (f"go{version}",), (bare,))
    yield Fixture("go/stripped", "go1.27-pie", ("go1.27",), (bare, "-buildmode=pie"))


def c_fixtures() -> Iterator[Fixture]:
    """Every pair of compiler, optimisation and DWARF version; then compressed and non-PIE ones."""
    for compiler in ("gcc", "clang"):
        for level in ("-O0", "-O2"):
            for dwarf in ("4", "5"):
                flags = (level, f"-gdwarf-{dwarf}", "-fPIE", "-pie")
                yield Fixture("c/layouts", f"{compiler}{level}-dwarf{dwarf}", (compiler,), flags)
        flags = ("-O2", "-gdwarf-5", "-fPIE", "-pie", "-gz=zlib")
        yield Fixture("c/layouts", f"{compiler}-O2-dwarf5-zlib", (compiler,), flags)
    flags = ("-O2", "-gdwarf-5", "-fno-pie", "-no-pie")
    yield Fixture("c/layouts", "gcc-O2-dwarf5-nopie", ("gcc",), flags)


def cpp_fixtures() -> Iterator[Fixture]:
    """Both compilers with and without optimisation; one file with symbols alone."""
    for compiler in ("g++", "clang++"):
        for level in ("-O0", "-O2"):
            flags = (level, "-gdwarf-5")
            yield Fixture("cpp/addressbook", f"{compiler}{level}", (compiler,), flags)
    yield Fixture("cpp/addressbook", "g++-O2-symbols", ("g++",), ("-O2", "-g0"))


def machine_fixtures() -> Iterator[Fixture]:
    """One program for machines of several word sizes and byte orders, by zig's clang."""
    for name, target in (
        ("aarch64", "aarch64-linux-none"),
        ("arm", "arm-linux-eabihf"),
        ("i386", "x86-linux-none"),
        ("ppc64le", "powerpc64le-linux-none"),
        ("riscv64", "riscv64-linux-none"),
        ("s390x", "s390x-linux-none"),
    ):
        flags = ("-O1", "-gdwarf-5", "-target", target)
        yield Fixture("c/machines", f"zig-{name}", ("zig",), flags)


def rust_fixtures() -> Iterator[Fixture]:
    """Debian's compiler with and without optimisation."""
    for level in ("0", "3"):
        flags = ("-C", f"opt-level={level}")
        yield Fixture("rust/requests", f"rustc-O{level}", ("rustc",), flags)


FIXTURES = (
    *go_fixtures(), *c_fixtures(), *cpp_fixtures(), *machine_fixtures(), *rust_fixtures(),
)  # fmt: skip


def run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def build_go(fixture: Fixture, target: Path, scratch: Path) -> None:
    version = fixture.needs[0].removeprefix("go")
    package = fixture.program.rpartition("/")[2]
    shutil.copytree(
        CORPUS / fixture.program, scratch / "src" / package, ignore=shutil.ignore_patterns("bin")
    )
    go = str(go_root(version) / "bin/go")
    command = [go, "build", *fixture.flags, "-o", str(target), package]
    run(command, scratch, go_environment(version, scratch))


def build_c(fixture: Fixture, target: Path, scratch: Path) -> None:
    # A copy, named by relative paths only: the directory is mapped away.
    sources = scratch / "layouts"
    shutil.copytree(CORPUS / fixture.program, sources, ignore=shutil.ignore_patterns("bin"))
    units = sorted(source.name for source in sources.glob("*.c"))
    maps = [f"-fdebug-prefix-map={sources}=/layouts"]
    command = [*fixture.needs, "-std=gnu11", "-Wall", "-Wextra", "-Werror", *fixture.flags]
    environment = {**os.environ, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}
    run([*command, *maps, *units, "-o", str(target)], sources, environment)


def build_machine(fixture: Fixture, target: Path, scratch: Path) -> None:
    sources = scratch / "machines"
    shutil.copytree(CORPUS / fixture.program, sources, ignore=shutil.ignore_patterns("bin"))
    command = [str(ZIG), "cc", "-std=gnu11", "-ffreestanding", "-nostdlib", "-static"]
    command += ["-fno-sanitize=undefined", "-fno-stack-protector", *fixture.flags]
    command += [f"-fdebug-prefix-map={sources}=/machines", "-fdebug-compilation-dir=/machines"]
    caches = {f"ZIG_{kind}_CACHE_DIR": str(scratch / kind) for kind in ("GLOBAL", "LOCAL")}
    run([*command, "machines.c", "-o", str(target)], sources, {**os.environ, **caches})


def build_cpp(fixture: Fixture, target: Path, scratch: Path) -> None:
    sources = scratch / "addressbook"
    shutil.copytree(CORPUS / fixture.program, sources, ignore=shutil.ignore_patterns("bin"))
    maps = [f"-fdebug-prefix-map={sources}=/addressbook"]
    command = [*fixture.needs, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-gz=zlib"]
    if fixture.needs[0] == "clang++":
        command.append("-fstandalone-debug")  # else a class is where its constructor is
    environment = {**os.environ, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}
    run([*command, *fixture.flags, *maps, "main.cc", "-o", str(target)], sources, environment)


def build_rust(fixture: Fixture, target: Path, scratch: Path) -> None:
    # The library's own code stays outside; paths of it and of the directory are mapped away.
    sources = scratch / "requests"
    shutil.copytree(CORPUS / fixture.program, sources, ignore=shutil.ignore_patterns("bin"))
    command = ["/usr/bin/rustc", "--crate-name", "requests", "-g", "-C", "prefer-dynamic"]
    command += [
        *fixture.flags,
        "-C",
        "codegen-units=1",
        "-C",
        "link-arg=-Wl,--compress-debug-sections=zlib",
        f"--remap-path-prefix={sources}=/requests",
    ]
    run([*command, "main.rs", "-o", str(target)], sources, {**os.environ, "LC_ALL": "C"})


def main() -> int:
    parser = argparse.ArgumentParser(description="Rebuild the fixtures of the corpus.")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="fixtures (default: all)")
    parser.add_argument("--into", type=Path, default=CORPUS, metavar="DIR", help="top directory")
    parser.add_argument("--list", action="store_true", help="list the fixtures, build nothing")
    options = parser.parse_args()
    patterns = options.patterns or ["*"]
    wanted = [one for one in FIXTURES if any(fnmatchcase(one.title, each) for each in patterns)]
    if not wanted:
        raise SystemExit(f"no fixture is called {' or '.join(patterns)}; --list shows the names")
    status = 0
    for fixture in wanted:
        reason = missing(*fixture.needs)
        if options.list:
            print(f"{fixture.title}  {' '.join([*fixture.needs, *fixture.flags])}")
        elif reason:
            print(f"{fixture.title}: not built, {reason}", file=sys.stderr)
            status = 1
        else:
            target = fixture.path(options.into.resolve())
            target.parent.mkdir(parents=True, exist_ok=True)
            builders = {"go": build_go, "c": build_c, "cpp": build_cpp, "c/machines": build_machine}
            builders["rust"] = build_rust
            language = fixture.program.split("/")[0]
            build = builders.get(fixture.program) or builders[language]
            with tempfile.TemporaryDirectory(prefix="fetchc-corpus-") as scratch:
                build(fixture, target, Path(scratch))
            print(fixture.title)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
