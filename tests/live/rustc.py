"""Compilers of Rust that are here: Debian's, and newer ones where somebody installed them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["COMPILERS", "compiled"]

_TOOLCHAINS = Path.home() / ".rustup/toolchains"
_FOUND = ("/usr/bin/rustc", *map(str, sorted(_TOOLCHAINS.glob("*/bin/rustc"))))
_OTHERS = () if _TOOLCHAINS.is_dir() else tuple(filter(None, (shutil.which("rustc"),)))
COMPILERS = [
    pytest.param(one, id="-".join(Path(one).parts[-3:]))
    for one in dict.fromkeys((*_FOUND, *_OTHERS))
    if Path(one).exists()
]
"""Each as a parameter of a test; the library changes between them."""


def compiled(compiler: str, source: Path, binary: Path, *flags: str) -> Path:
    """The program that ``compiler`` makes of ``source``, with debug information."""
    command = [compiler, "--edition", "2021", "--crate-name", source.parent.name, "-g", *flags]
    subprocess.run([*command, str(source), "-o", str(binary)], check=True, capture_output=True)
    return binary
