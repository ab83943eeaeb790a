"""One small program in each language, built with debug information and what walks need."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.live.rustc import COMPILERS, compiled
from tests.support.dotnet import ahead_of_time
from tests.support.go_programs import go_program
from tests.support.toolchains import require

__all__ = ["built"]


def built(language: str, source: str, name: str, folder: Path) -> list[str | Path]:
    """The words that start the program; the last one is the file to probe."""
    match language:
        case "go":
            return [go_program("1.27", folder, source, name=name)]
        case "rust":
            if not COMPILERS:
                pytest.skip("no rustc here (.ci/setup brings it)")
            file = folder / name / "main.rs"
            file.parent.mkdir()
            file.write_text(source)
            (compiler,) = COMPILERS[0].values
            return [compiled(str(compiler), file, folder / "program", "-C", "opt-level=1")]
        case "c++":
            require("g++")
            file = folder / f"{name}.cc"
            file.write_text(source)
            command = ["g++", "-std=c++17", "-g", "-O1", "-o", name, file.name]
            subprocess.run(command, cwd=folder, check=True, timeout=120)
            return [folder / name]
        case _:
            file = folder / f"{name}.cs"
            file.write_text(source)
            return ["mono", ahead_of_time(file, folder / f"{name}.exe")]
