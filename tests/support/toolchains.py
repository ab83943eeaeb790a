"""Where the compilers are that the tests and ``corpus/build.py`` use, or why there are none.

``.ci/setup`` brings them. Names: ``gcc``, ``clang`` and other commands by their own name,
``go1.15``, ``go1.22`` and so on for the toolchains below ``.toolchains``, ``libc++`` for clang's,
and ``miekg`` for the source of the Go package github.com/miekg/dns. ``FETCHC_GO=1.23,1.26`` has
the tests of Go take these versions and no others.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fetchc.conformance.go_programs import GoBuild

__all__ = [
    "ALL_GO_VERSIONS",
    "GO_CACHE",
    "GO_VERSIONS",
    "ROOT",
    "ZIG",
    "go_build",
    "go_environment",
    "go_number",
    "go_root",
    "missing",
    "require",
]

ROOT = Path(__file__).resolve().parents[2]
TOOLCHAINS = ROOT / ".toolchains"
ZIG = TOOLCHAINS / "ziglang/ziglang/zig"  # clang for every machine
LIBCXX = Path("/usr/lib/llvm-14/include/c++/v1/string")  # libc++-14-dev, for clang
GO_CACHE = TOOLCHAINS / "cache-go"
GOCODE = TOOLCHAINS / "gopath/usr/share/gocode"

# 1.15: stack calling convention, DWARF 4 in .zdebug_ sections; 1.22: register convention, DWARF 4;
# 1.27: register convention, DWARF 5. 1.19 has its own table of functions and names generic types
# otherwise, 1.21 leaves parameters without a name out, 1.24 has another
# map and another place for the goroutine's number.
_GO_ROOTS = {
    **{
        version: TOOLCHAINS / f"go-{version}/usr/lib/go-{version}"
        for version in ("1.15", "1.16", "1.17", "1.18", "1.19", "1.20")
    },
    "1.21": TOOLCHAINS / "go-1.21.13/go",
    "1.22": TOOLCHAINS / "go-1.22.10/go",
    "1.23": TOOLCHAINS / "go-1.23.9/go",
    "1.24": TOOLCHAINS / "go-1.24.11/go",
    "1.25": TOOLCHAINS / "go-1.25.5/go",
    "1.26": TOOLCHAINS / "go-1.26.6/go",
    "1.27": TOOLCHAINS / "go-1.27.3/go",
}
# What `.ci/setup --all-go` brings on top is tested where FETCHC_GO names it.
_ASKED = tuple(filter(None, os.environ.get("FETCHC_GO", "").split(",")))
GO_VERSIONS = _ASKED or ("1.15", "1.19", "1.22", "1.27")
ALL_GO_VERSIONS = _ASKED or ("1.15", "1.19", "1.21", "1.22", "1.24", "1.27")


def go_root(version: str) -> Path:
    """GOROOT of a toolchain, whether it is there or not."""
    return _GO_ROOTS[version]


def go_number(version: str) -> tuple[int, int]:
    """A version in numbers, to compare."""
    major, minor = version.split(".")
    return int(major), int(minor)


def go_build(version: str, folder: Path, *options: str) -> GoBuild:
    """How the toolchain of ``.toolchains`` builds a program in ``folder``."""
    from fetchc.conformance.go_programs import GoBuild

    command = str(go_root(version) / "bin/go")
    environment = go_environment(version, folder)
    return GoBuild(command, go_number(version), options, environment)


def missing(*names: str) -> str | None:
    """Why the tools cannot all be used, or None when they can."""
    absent = [name for name in names if not _present(name)]
    return f"no {', '.join(absent)} here (.ci/setup brings it)" if absent else None


def require(*names: str) -> None:
    """Skip the test, with the reason, unless every tool is there."""
    import pytest  # not for corpus/build.py, which needs no test tools

    reason = missing(*names)
    if reason:
        pytest.skip(reason)


def go_environment(version: str, workspace: Path) -> dict[str, str]:
    """Environment of an offline build with one toolchain, in GOPATH mode, cache kept between runs.

    All builds are without the names of folders: what one has compiled serves the others.

    ``workspace`` is the GOPATH with the program; GOPATH mode is the one that every version
    from 1.15 on has, and that takes Debian's Go packages as they are.
    """
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(workspace),
        "GOROOT": str(go_root(version)),
        "GOPATH": f"{workspace}:{GOCODE}",
        "GOCACHE": str(GO_CACHE),
        "GO111MODULE": "off",
        "GOPROXY": "off",
        "GOFLAGS": "-trimpath",
        "GOTOOLCHAIN": "local",
        "GOTELEMETRY": "off",
        "CGO_ENABLED": "0",
        "GOOS": "linux",
        "GOARCH": "amd64",
    }


def _present(name: str) -> bool:
    if name == "zig":
        return os.access(ZIG, os.X_OK)
    if name == "libc++":
        return LIBCXX.exists()
    if name == "miekg":
        return (GOCODE / "src/github.com/miekg/dns/msg.go").exists()
    if name.startswith("go") and name[2:] in _GO_ROOTS:
        return os.access(go_root(name[2:]) / "bin/go", os.X_OK)
    return shutil.which(name) is not None
