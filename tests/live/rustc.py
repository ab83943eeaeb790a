"""Compilers of Rust that are here: Debian's, and newer ones where somebody installed them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

__all__ = ["COMPILERS", "builds", "compiled"]

_TOOLCHAINS = Path.home() / ".rustup/toolchains"
_FOUND = ("/usr/bin/rustc", *map(str, sorted(_TOOLCHAINS.glob("*/bin/rustc"))))
_OTHERS = () if _TOOLCHAINS.is_dir() else tuple(filter(None, (shutil.which("rustc"),)))
COMPILERS = [
    pytest.param(one, id="-".join(Path(one).parts[-3:]))
    for one in dict.fromkeys((*_FOUND, *_OTHERS))
    if Path(one).exists()
]
"""Each as a parameter of a test; the library changes between them."""


def builds(*levels: str) -> list[ParameterSet]:
    """Each compiler at each level; by default every one at one level, the first two in turn."""
    return [
        pytest.param(
            *each.values, level, id=f"{each.id}-{level}",
            marks=() if levels.index(level) == number % len(levels) else pytest.mark.long,
        )
        for number, each in enumerate(COMPILERS)
        for level in levels
    ]  # fmt: skip


def compiled(compiler: str, source: Path, binary: Path, *flags: str) -> Path:
    """The program that ``compiler`` makes of ``source``, with debug information."""
    command = [compiler, "--edition", "2021", "--crate-name", source.parent.name, "-g", *flags]
    subprocess.run([*command, str(source), "-o", str(binary)], check=True, capture_output=True)
    return binary
