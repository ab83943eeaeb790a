"""The ELF file of a kernel: by its DWARF, by its BTF where that was stripped."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.btfwriter import BtfWriter
from tests.support.toolchains import require

SOURCE = """
struct file { int flags; struct file *next; const char *name; };
int exported __attribute__((section("__ksymtab"), used)) = 1;
static int opened = 3;
int of_each __attribute__((section("percpu"))) = 4;
__attribute__((noinline)) int vfs_test(struct file *f, int count) {
  int local = count + f->flags;
  opened += local;
  return 2 * local + f->next->flags;
}
struct iovec { void *iov_base; long iov_len; };
__attribute__((noinline)) long vfs_write(struct file *f, const char *buf, struct iovec *v) {
  return buf[0] + v->iov_len + ((char *)v->iov_base)[0];
}
int main(int c, char **v) { struct file f = {c, 0, "x"}; f.next = &f; struct iovec o = {&f, 1};
  return vfs_test(&f, c) + vfs_write(&f, "x", &o); }
"""
_SECONDS = 60


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that has what only kernels have."""
    require("gcc")
    folder = tmp_path_factory.mktemp("vmlinux")
    (folder / "k.c").write_text(SOURCE)
    command = ["gcc", "-O1", "-g", "-fno-pie", "-no-pie", "k.c", "-o", "vmlinux"]
    subprocess.run(command, cwd=folder, check=True, timeout=_SECONDS)
    rename = ["objcopy", "--rename-section", "percpu=.data..percpu", "vmlinux"]
    subprocess.run(rename, cwd=folder, check=True, timeout=_SECONDS)
    return folder / "vmlinux"


def line(probe: fetchc.Probe, text: str) -> str:
    return probe.definition([probe.compile(text)], group="g", event="e")


def test_functions_locals_and_lines(vmlinux: Path) -> None:
    program = fetchc.open(str(vmlinux))
    entry = program.probe("vfs_test", kernel="6.12")
    assert line(entry, "n=f->next->name") == "p:g/e vfs_test n=+0(+16(+8(%di))):string"
    back = program.probe("vfs_test", returns=True, kernel="6.12")
    assert line(back, "r=$retval") == "r:g/e vfs_test r=$retval:s32"
    assert line(back, "c=count") == "r:g/e vfs_test c=$arg2:s32"
    left = program.probe("fprobe:vfs_test", kernel="6.12")
    assert line(left, "n=f->next->name") == "f:g/e vfs_test n=+0(+16(+8($arg1))):string"
    inside = program.probe("vfs_test", at="+2", kernel="6.12")
    assert line(inside, "n=f->flags") == "p:g/e vfs_test+0x2 n=+0(%di):s32"
    argument = program.argument("local @ k.c:8", kernel="6.12")
    assert line(argument.probe, "n=local").startswith("p:g/e vfs_test+0x")
    start = entry.function
    assert start is not None
    by_address = program.probe(at=f"{start.address + 2:#x}", kernel="6.12")
    assert line(by_address, "%di") == "p:g/e vfs_test+0x2 di=%di"


def test_variables_are_found_by_their_symbols(vmlinux: Path, tmp_path: Path) -> None:
    probe = fetchc.open(str(vmlinux)).probe("vfs_test", kernel="6.12")
    argument = probe.compile("opened")
    assert argument.fetcharg == "@opened:s32"
    assert [one.code for one in argument.warnings] == ["FC0606"]
    assert refusal(vmlinux, "of_each") == ("FC0506", "this_cpu_ptr")
    newest = fetchc.open(str(vmlinux)).probe("vfs_test", kernel="7.3")
    assert newest.compile("of_each").fetcharg == "+0(this_cpu_ptr(@of_each)):s32"
    bare, twice = tmp_path / "bare", tmp_path / "twice"
    objcopy = ["objcopy", "--strip-symbol=opened", str(vmlinux), str(bare)]
    subprocess.run(objcopy, check=True, timeout=_SECONDS)
    assert refusal(bare, "opened") == ("FC0401", "each boot")
    objcopy = ["objcopy", "--redefine-sym=exported=opened", str(vmlinux), str(twice)]
    subprocess.run(objcopy, check=True, timeout=_SECONDS)
    assert refusal(twice, "opened") == ("FC0401", "2 symbols")


def refusal(path: Path, text: str) -> tuple[str, str]:
    """The code, and which of the reasons is given."""
    with pytest.raises(fetchc.CompileError) as refused:
        fetchc.open(str(path)).probe("vfs_test", kernel="6.12").compile(text).fetcharg  # noqa: B018
    (diagnostic,) = refused.value.diagnostics
    (reason,) = [
        one for one in ("this_cpu_ptr", "each boot", "2 symbols") if one in diagnostic.message
    ]
    return diagnostic.code, reason


def test_what_is_in_no_function_is_no_place(vmlinux: Path) -> None:
    program = fetchc.open(str(vmlinux))
    bare = program.probe(at="0x400000", kernel="6.12")
    with pytest.raises(fetchc.CompileError) as refused:
        line(bare, "%di")
    assert refused.value.diagnostics[0].code == "FC0206"


def test_without_dwarf_its_btf_is_read(vmlinux: Path, tmp_path: Path) -> None:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    w.function("vfs_other", number, ("n", number))
    (tmp_path / "btf").write_bytes(w.bytes())
    made = tmp_path / "made"
    command = [
        "objcopy",
        "--strip-debug",
        f"--add-section=.BTF={tmp_path}/btf",
        str(vmlinux),
        str(made),
    ]
    subprocess.run(command, check=True, timeout=_SECONDS)
    program = fetchc.open(str(made))
    assert list(program.functions()) == ["vfs_other"]
    assert line(program.probe("vfs_other", kernel="6.12"), "n") == "p:g/e vfs_other n=%di:s32"
    bare = tmp_path / "bare"
    subprocess.run(["strip", "--strip-debug", vmlinux, "-o", bare], check=True, timeout=_SECONDS)
    named = fetchc.open(str(bare)).probe("vfs_test", kernel="6.12")
    assert line(named, "a=$arg1") == "p:g/e vfs_test a=%di:u64"


def test_memory_of_the_running_program(vmlinux: Path) -> None:
    probe = fetchc.open(str(vmlinux)).probe("vfs_write", kernel="6.12")
    texts = ("buf", "buf[0]", "*(char *)v->iov_base", "v->iov_len", "f->flags")
    assert [probe.compile(text).fetcharg for text in texts] == [
        "+0(%si):ustring", "+u0(%si):s8", "+u0(+0(%dx)):s8", "+8(%dx):s64", "+0(%di):s32",
    ]  # fmt: skip
