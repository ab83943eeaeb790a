"""Programs of Debian, built from their source packages with a compiler of choice.

The package lists are kept in the scratch folder; nothing is installed, and nothing of the machine's
own lists changes.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

__all__ = ["built"]

_SECONDS = 600
_SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))


def built(package: str, compiler: str, flags: str, folder: Path) -> Path:
    """The biggest program of the package, unstripped; skipped where it cannot be had or built."""
    source = _unpacked(package, folder)
    environment = {**os.environ, "CC": compiler, "CFLAGS": flags, "FORCE_UNSAFE_CONFIGURE": "1"}
    if not (source / "configure").exists():
        pytest.skip(f"the package {package} has no `configure`")
    said = ""
    for command in (["./configure", "--disable-nls"], ["make", "MAKEINFO=true"]):
        done = subprocess.run(
            command,
            cwd=source,
            env=environment,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
        said = done.stderr[-300:]
        if done.returncode and command[0] == "./configure":
            pytest.skip(f"{package} cannot be configured: {said}")
    programs = [path for path in source.rglob("*") if _is_program(path)]
    if not programs:
        pytest.skip(f"{package} cannot be built: {said}")
    return max(programs, key=lambda path: path.stat().st_size)


def _unpacked(package: str, folder: Path) -> Path:
    lists = [_SOURCES[0], *sorted(_SOURCES[1].glob("*"))]
    text = "\n".join([path.read_text() for path in lists if path.is_file()])
    lines = re.findall(r"^deb(?:-src)? (.*)$", text, re.MULTILINE)
    blocks = re.findall(r"^Types:.*?(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    (folder / "apt/lists/partial").mkdir(parents=True)
    parts = folder / "apt/parts"
    parts.mkdir()
    (parts / "all.list").write_text("".join([f"deb-src {line}\n" for line in lines]))
    for number, block in enumerate(blocks):
        sources = re.sub(r"^Types:.*$", "Types: deb-src", block, flags=re.MULTILINE)
        (parts / f"{number}.sources").write_text(sources + "\n")
    apt = [
        "apt-get", "-q", "-o", "Dir::Etc::SourceList=/dev/null",
        "-o", f"Dir::Etc::SourceParts={parts}", "-o", f"Dir::State::Lists={folder / 'apt/lists'}",
        "-o", "APT::Sandbox::User=root",
    ]  # fmt: skip
    try:
        for command in ([*apt, "update"], [*apt, "source", package]):
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or b""
        pytest.skip(f"no source of {package}: {error} {said.decode(errors='replace')[-300:]}")
    found = [path for path in folder.glob("*/") if (path / "debian").is_dir()]
    if not found:
        pytest.skip(f"no source of {package}: nothing was unpacked (dpkg-dev is missing)")
    return found[0]


def _is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        file.seek(0)
        elf = ELFFile(file)
        return elf.header["e_type"] in ("ET_EXEC", "ET_DYN") and elf.has_dwarf_info()
