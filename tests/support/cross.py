"""Programs for machines that are not here: which compilers make them, and how they are called.

``.ci/setup`` brings ziglang of PyPI, whose one binary is clang for every machine, and gcc for
those that Debian has packages of. Programs are built without a C library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.toolchains import ROOT, ZIG, go_environment, go_root, missing

__all__ = ["TARGETS", "Target", "build", "build_go", "compilers", "unavailable"]

_FLAGS = ("-g", "-w", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static")
_FLAGS_ZIG = ("-fno-sanitize=undefined", "-fno-stack-protector")
_FLAGS_GCC = (
    *("-Wno-psabi", "-fno-pie", "-no-pie"),
    *("-fno-stack-protector", "-fno-asynchronous-unwind-tables"),
)
_NO_GP = ("-mno-relax", "-Wl,--no-relax")  # nothing sets the global pointer


@dataclass(frozen=True)
class Target:
    """One machine: fetchc's name of it, and what others call it. ``go`` is empty without tests."""

    name: str
    zig: str
    gcc: str
    options: tuple[str, ...] = ()
    go: str = ""

    @property
    def wide(self) -> bool:
        """Whether it has words of eight bytes."""
        return self.name not in ("i386", "arm")


TARGETS = {
    target.name: target
    for target in (
        Target("aarch64", "aarch64-linux-none", "aarch64-linux-gnu-gcc", go="arm64"),
        Target("riscv64", "riscv64-linux-none", "riscv64-linux-gnu-gcc", _NO_GP, "riscv64"),
        Target("ppc64le", "powerpc64le-linux-none", "powerpc64le-linux-gnu-gcc", go="ppc64le"),
        Target("s390x", "s390x-linux-none", "s390x-linux-gnu-gcc", go="s390x"),
        Target("i386", "x86-linux-none", "gcc", ("-m32",), go="386"),
        Target("arm", "arm-linux-eabihf", "arm-linux-gnueabihf-gcc", ("-marm",), go="arm"),
    )
}


def compilers(target: Target) -> list[str]:
    """What to ask, whether it is here or not."""
    return ["zig", target.gcc]


def unavailable(compiler: str) -> str | None:
    """Why the compiler cannot be used, or None."""
    if compiler == "zig":
        return None if os.access(ZIG, os.X_OK) else "no ziglang here (.ci/setup brings it)"
    return None if shutil.which(compiler) else f"no {compiler} here (.ci/setup brings it)"


def build(target: Target, compiler: str, source: str, folder: Path, *options: str) -> Path:
    """Compile a program for ``target``; RuntimeError where the compiler does not take it."""
    file, binary = folder / "program.c", folder / f"program.{target.name}"
    file.write_text(source)
    command = [compiler, *target.options, *_FLAGS_GCC]
    if compiler.endswith("g++"):
        command += ["-x", "c++", "-std=gnu++17", "-fpermissive"]
    environment = dict(os.environ)
    if compiler == "zig":
        command = [str(ZIG), "cc", "-target", target.zig, *_FLAGS_ZIG]
        environment["ZIG_GLOBAL_CACHE_DIR"] = str(ROOT / ".toolchains/cache-zig")
        environment["ZIG_LOCAL_CACHE_DIR"] = str(folder / "zig")
    done = subprocess.run(
        [*command, *_FLAGS, *options, "-o", str(binary), str(file)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
    )
    if done.returncode:
        raise RuntimeError(f"{compiler} for {target.name}: {done.stderr[:2000]}")
    return binary


def build_go(target: Target, version: str, source: str, folder: Path) -> Path:
    """Build a Go program for ``target``, optimised, without the network."""
    file, binary = folder / "main.go", folder / f"program.{target.name}"
    file.write_text(source)
    environment = go_environment(version, folder) | {"GOARCH": target.go}
    subprocess.run(
        [str(go_root(version) / "bin/go"), "build", "-o", str(binary), str(file)],
        env=environment,
        cwd=folder,
        check=True,
        timeout=280,
    )
    return binary


def unavailable_go(version: str) -> str | None:
    """Why that Go cannot be used, or None."""
    return missing(f"go{version}")
