"""Files that people take for a program: what they are, and what to name instead."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.programs import fixture
from tests.support.toolchains import require

FILE = fixture("c/layouts/gcc-O2-dwarf5")
BTF = Path("/sys/kernel/btf/vmlinux")


def said(path: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["compile", "depth", "-x", path, "-f", "visit", "--no-cache"])
    captured = capsys.readouterr()
    assert captured.out == ""
    return status, captured.err


@pytest.mark.parametrize(
    ("content", "error", "help"),
    [
        (
            b"#!/usr/bin/python3 -u\nprint(1)\n",
            "error[FC0902]: {path}: not an ELF file",
            "it is a script: probe what runs it, `/usr/bin/python3`",
        ),
        (
            b"!<arch>\nmain.o/",
            "error[FC0902]: {path}: not an ELF file",
            "it is an archive: name the program or library that it is linked into",
        ),
        (
            FILE.read_bytes()[:16] + b"\4\0" + FILE.read_bytes()[18:],
            "error[FC0905]: {path}: a core dump, which has no code to probe",
            "name the program that it was dumped from: `file` shows it",
        ),
    ],
)
def test_what_it_is(
    content: bytes, error: str, help: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    assert said(str(path), capsys) == (3, f"{error.format(path=path)}\n   = help: {help}\n")


@pytest.mark.parametrize("name", ["snd-pcm.ko", "snd_pcm.ko.xz", "snd-pcm.ko.zst", "main.o"])
def test_kernel_modules(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    packed = path.suffix in (".xz", ".zst")
    content = FILE.read_bytes()
    path.write_bytes(b"\xfd7zXZ" if packed else content[:16] + b"\1\0" + content[18:])
    status, printed = said(str(path), capsys)
    assert status == 3
    assert ("error[FC0902]" if packed else "error[FC0905]") in printed
    named = "name the module in a kernel that has loaded it: `-x kernel:snd_pcm`"
    linked = "name the program or library that it is linked into"
    assert printed.endswith(f"   = help: {linked if name == 'main.o' else named}\n")


def test_debug_information_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("objcopy")
    path = tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", FILE, path], check=True)
    assert said(str(path), capsys) == (
        3,
        f"error[FC0905]: {path}: it has debug information alone, and no code\n"
        "   = help: name the program with `-x`, and this file with `--debug-file`\n",
    )
    words = ["compile", "depth", "-x", str(FILE), "-f", "visit", "--debug-file", str(path)]
    assert main(words) == 0


def test_a_program_of_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "layouts").symlink_to(FILE)
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "cannot be read: No such file or directory\n"
    help = f"   = help: give its path: `{tmp_path}/layouts`\n"
    assert said("layouts", capsys) == (3, f"error[FC0901]: layouts: {missing}{help}")
    help = "   = help: name a file that exists\n"
    assert said("nothing", capsys) == (3, f"error[FC0901]: nothing: {missing}{help}")


@pytest.mark.skipif(not BTF.exists(), reason="the running kernel has no BTF")
def test_the_running_kernels_own_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offsets", "path.dentry", "-x", str(BTF), "--no-cache"]) == 0
    assert "struct dentry *" in capsys.readouterr().out
