"""BTF names no machine: which one it is of, and what that changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.cli import main
from fetchc.debuginfo.btf import kernel_program as opening
from tests.support.btfwriter import BtfWriter

POINTER = 2


def btf(folder: Path, long: int = 8, order: str = "<") -> str:
    w = BtfWriter(order)
    number = w.integer("unsigned int", 4)
    word = w.integer("unsigned long", long)
    file = w.struct("file", 24, ("flags", number, 64))
    w.function("vfs_read", number, ("file", w.type(POINTER, "", file)), ("count", word))
    path = folder / "vmlinux.btf"
    path.write_bytes(w.bytes())
    return str(path)


@pytest.mark.parametrize(
    ("arch", "file", "count"),
    [
        ("x86_64", "%di", "%si"),
        ("amd64", "%di", "%si"),
        ("arm64", "%x0", "%x1"),
        ("riscv64", "%a0", "%a1"),
        ("s390x", "%r2", "%r3"),
        ("ppc64el", "%gpr3", "%gpr4"),
    ],
)
def test_registers_of_each_machine(tmp_path: Path, arch: str, file: str, count: str) -> None:
    order = ">" if arch == "s390x" else "<"
    probe = fetchc.open(btf(tmp_path, order=order), arch=arch).probe("vfs_read", kernel="6.12")
    assert probe.compile("file->flags").fetcharg == f"+8({file}):u32"
    assert probe.compile("count").fetcharg == f"{count}:u64"


def test_machines_of_32_bits(tmp_path: Path) -> None:
    probe = fetchc.open(btf(tmp_path, 4), arch="arm").probe("vfs_read", kernel="6.12/32")
    assert probe.compile("count").fetcharg == "%r1:u32"
    other = fetchc.open(btf(tmp_path, 4), arch="i386").probe("vfs_read", kernel="6.12/32")
    with pytest.raises(fetchc.CompileError) as refused:
        other.compile("count").fetcharg  # noqa: B018 - built with -mregparm=3
    assert refused.value.diagnostics[0].code == "FC0905"


@pytest.mark.parametrize(("long", "arch"), [(4, "arm64"), (8, "arm"), (8, "i386")])
def test_a_machine_of_other_words_is_refused(tmp_path: Path, long: int, arch: str) -> None:
    with pytest.raises(fetchc.DebugInfoError, match="unsigned long"):
        fetchc.open(btf(tmp_path, long), arch=arch)


def test_an_unknown_machine_and_another_one(tmp_path: Path) -> None:
    with pytest.raises(fetchc.CompileError, match="vax"):
        fetchc.open(btf(tmp_path), arch="vax")
    with pytest.raises(fetchc.DebugInfoError, match="not of aarch64"):
        fetchc.open("corpus/c/layouts/bin/gcc-O2-dwarf5", arch="arm64")


def test_options_of_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = btf(tmp_path)
    words = ["compile", "r=$retval", "-x", path, "-f", "vfs_read", "--format", "probe"]
    words += ["--kernel", "6.12", "--arch", "arm64"]
    assert main([*words, "--return", "--maxactive", "64"]) == 0
    assert capsys.readouterr().out == "r64:fetchc_vmlinux_btf/vfs_read vfs_read r=$retval:u32\n"
    for more in (["--return", "--maxactive", "4097"], ["--maxactive", "64"]):
        assert main([*words, *more]) == 1
        capsys.readouterr()
    words[words.index("6.12")] = "4.11"
    assert main([*words, "--return", "--maxactive", "64"]) == 1
    assert "FC0506" in capsys.readouterr().err
    assert main(["check", "%x0:u64", "--arch", "arm64", "--kernel", "6.12"]) == 0
    assert main(["check", "%x0:u64", "--arch", "x86-64", "--kernel", "6.12"]) == 1


@pytest.mark.parametrize(
    ("arch", "order", "other"), [("s390x", "<", "arm64"), ("arm64", ">", "s390x")]
)
def test_a_byte_order_that_is_not_the_machines(
    tmp_path: Path, arch: str, order: str, other: str
) -> None:
    with pytest.raises(fetchc.DebugInfoError, match="byte order") as refused:
        fetchc.open(btf(tmp_path, order=order), arch=arch)
    assert refused.value.help == f"name its machine: --arch {other}"


def no_module(folder: Path, monkeypatch: pytest.MonkeyPatch, *there: str) -> tuple[str, str]:
    """What is said of a module `loop` where these files are: the notes, and the help."""
    for name in there:
        (folder / name).mkdir(parents=True)
    monkeypatch.setattr(opening, "LOADED", str(folder))
    monkeypatch.setattr(opening, "MODULES", str(folder / "modules"))
    refused = opening._no_module("kernel:loop", "loop", opening.RUNNING)
    return " ".join(refused.notes), refused.help or ""


def test_a_module_that_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert no_module(tmp_path, monkeypatch, "loop/parameters") == (
        "it loads no modules: all that it has is built in",
        "write `-x kernel`",
    )
    assert no_module(tmp_path, monkeypatch, "modules") == ("it is built in", "write `-x kernel`")
    notes, help = no_module(tmp_path, monkeypatch, "loop/initstate")
    assert notes == "it is loaded, and came without one"
    assert help.startswith("boot a kernel")
    monkeypatch.setattr(opening, "LOADED", "/none")
    refused = opening._no_module("kernel:loop", "loop", opening.RUNNING)
    assert refused.help is not None
    assert refused.help.startswith("load it: `modprobe loop`")
