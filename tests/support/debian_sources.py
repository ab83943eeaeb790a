"""Programs of Debian, built from their source packages with a compiler of choice.

The package lists are kept in the scratch folder; nothing is installed, and nothing of the machine's
own lists changes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

__all__ = ["built"]

_SECONDS = 600
_SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))


# Files that others are made from may look newer than these once Debian's patches are in.
_NO_GENERATORS = ("AUTOMAKE=:", "ACLOCAL=:", "AUTOCONF=:", "AUTOHEADER=:", "MAKEINFO=:")


def built(package: str, compiler: str, flags: str, folder: Path) -> Path:
    """The biggest program of the package, unstripped; skipped where it cannot be had or built.

    ``folder`` serves several calls: what is downloaded stays there.
    """
    words = re.sub(r"\W+", "-", f"{package} {compiler} {flags}")
    tree = folder / "built" / words
    shutil.copytree(_unpacked(package, folder), tree, symlinks=True)
    cxx = {"gcc": "g++", "clang": "clang++"}[compiler]
    tools = {"CC": compiler, "CXX": cxx, "CFLAGS": flags, "CXXFLAGS": flags}
    make = ["make", *_NO_GENERATORS]
    if (tree / "configure").exists():
        commands = [["./configure", "--disable-nls"], make]
    elif (tree / "CMakeLists.txt").exists():
        options = ["-DCMAKE_BUILD_TYPE=None", "-DBUILD_SHARED_LIBS=OFF"]
        commands = [["cmake", *options, "."], make]
    else:
        commands = [[*make, *[f"{name}={value}" for name, value in tools.items()]]]
    environment = {
        **{**os.environ, **tools, "LDFLAGS": " ".join(re.findall(r"-f(?:sanitize|lto)\S*", flags))},
        **{"FORCE_UNSAFE_CONFIGURE": "1", "ASAN_OPTIONS": "detect_leaks=0"},
    }
    said = ""
    for command in commands:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            text=True,
            errors="replace",
        )
        said = done.stderr[-300:]
        if done.returncode and command[0] != "make":
            pytest.skip(f"{package} cannot be configured: {said}")
    programs = [path for path in tree.rglob("*") if _is_program(path)]
    if not programs:
        pytest.skip(f"{package} cannot be built: {said}")
    return max(programs, key=lambda path: path.stat().st_size)


def _unpacked(package: str, folder: Path) -> Path:
    here = folder / "sources" / package
    if not here.exists():
        here.mkdir(parents=True)
        try:
            _apt(folder, here, "source", package)
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", b"") or b""
            pytest.skip(f"no source of {package}: {error} {said.decode(errors='replace')[-300:]}")
    found = [path for path in here.glob("*/") if (path / "debian").is_dir()]
    if not found:
        pytest.skip(f"no source of {package}: nothing was unpacked (dpkg-dev is missing)")
    return found[0]


def _apt(folder: Path, where: Path, *words: str) -> None:
    """apt-get with this machine's sources, each as one of source packages."""
    parts, lists = folder / "apt/parts", folder / "apt/lists"
    apt = [
        "apt-get", "-q", "-o", "Dir::Etc::SourceList=/dev/null",
        "-o", f"Dir::Etc::SourceParts={parts}", "-o", f"Dir::State::Lists={lists}",
        "-o", "APT::Sandbox::User=root",
    ]  # fmt: skip
    commands = [[*apt, *words]]
    if not parts.exists():
        files = [_SOURCES[0], *sorted(_SOURCES[1].glob("*"))]
        text = "\n".join([path.read_text() + "\n" for path in files if path.is_file()])
        lines = re.findall(r"^deb(?:-src)? (.*)$", text, re.MULTILINE)
        blocks = re.findall(r"^Types:.*?(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
        (lists / "partial").mkdir(parents=True)
        parts.mkdir()
        (parts / "all.list").write_text("".join([f"deb-src {line}\n" for line in lines]))
        for number, block in enumerate(blocks):
            sources = re.sub(r"^Types:.*$", "Types: deb-src", block, flags=re.MULTILINE)
            (parts / f"{number}.sources").write_text(sources + "\n")
        commands.insert(0, [*apt, "update"])
    for command in commands:
        subprocess.run(command, cwd=where, check=True, capture_output=True, timeout=_SECONDS)


def _is_program(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or not os.access(path, os.X_OK):
        return False
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        file.seek(0)
        elf = ELFFile(file)
        return elf.header["e_type"] in ("ET_EXEC", "ET_DYN") and elf.has_dwarf_info()
