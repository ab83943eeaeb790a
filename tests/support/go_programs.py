"""Programs of Go that tests build from one source file."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.toolchains import go_environment, go_root, require

__all__ = ["go_program"]


def go_program(
    version: str, folder: Path, source: str, *flags: str, name: str, assembly: str = ""
) -> Path:
    """The program ``name`` in ``folder``, of its ``main.go``; where there is no such Go, a skip.

    ``assembly`` is a second file of the package, for functions that ``source`` only declares.
    """
    require(f"go{version}")
    file, program = folder / "main.go", folder / name
    file.write_text(source)
    if assembly:
        (folder / "main_amd64.s").write_text(assembly)
    what = "." if assembly else str(file)
    command = [str(go_root(version) / "bin/go"), "build", *flags, "-o", str(program), what]
    environment = go_environment(version, folder)
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=280)
    return program
