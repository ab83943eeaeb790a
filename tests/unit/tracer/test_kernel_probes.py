"""How a function of the kernel is probed by eBPF: without a breakpoint where that can be."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

import pytest

from fetchc.emit.bpf_steps import Code
from fetchc.ir.fetch import Deref, Fetch, KernelValue, Register, ReturnValue, StackEntry, Word
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf import kernel_probes
from fetchc.tracer.bpf.kernel_probes import KernelProbe, Unprobed, kernel_probe
from fetchc.tracer.bpf.system_calls import Bpf
from fetchc.tracer.events import Plan
from fetchc.tracer.kallsyms import symbol_addresses

FIRST, OTHER = {"aarch64": ("x0", "x19")}.get(os.uname().machine, ("di", "bx"))


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF")
    monkeypatch.setattr(kernel_probes, "KPROBES", "/proc/self/status")
    monkeypatch.setattr(kernel_probes, "_no_trampolines", lambda: None)
    kernel_probes._without_breakpoint.cache_clear()
    with_version(monkeypatch, (7, 3))


def with_version(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]) -> None:
    found = bpf_rules(version), bpf_machine("x86_64")
    monkeypatch.setattr(kernel_probes, "running", lambda: found)


def probe(line: str, *values: Fetch) -> KernelProbe:
    fields = tuple([(f"f{number}", one) for number, one in enumerate(values)])
    return kernel_probe(Plan("g", "e", "kernel", "f", "entry", 0, (line,), (), (), (fields,)), line)


def kinds(found: KernelProbe | None) -> list[tuple[str, bool]]:
    """Of the probe, and of those that are attached where it cannot be."""
    listed = []
    while found is not None:
        listed.append((found.kind, found.sleepable))
        found = found.otherwise
    return listed


def word(name: str) -> Fetch:
    return Fetch(Register(name), Word())


def test_arguments_alone_need_no_breakpoint() -> None:
    found = probe("p:g/e vfs_read", Fetch(Deref(Register(FIRST), 8), Word()))
    assert kinds(found) == [("entry", False), ("function", False)]
    assert {one.name: one.at for one in found.context}[f"%{FIRST}"] == 0
    assert kinds(probe("p:g/e vfs_read", word(OTHER))) == [("function", False)]
    assert kinds(probe("p:g/e vfs_read", Fetch(StackEntry(1), Word()))) == [("function", False)]
    inside = probe("p:g/e vfs_read+0x9", word(FIRST))
    assert (inside.kind, inside.offset, inside.context) == ("function", 9, ())


def test_memory_of_the_program_is_waited_for() -> None:
    user = Fetch(Deref(Register(FIRST), 8, user=True), Word())
    both = [("entry", False), ("function", False)]
    assert kinds(probe("p:g/e vfs_read", user)) == [("entry", True), *both]


def test_returns_without_a_count_of_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Fetch(ReturnValue(), Word())
    assert kinds(probe("r:g/e vfs_read", result)) == [("return", False), ("function", False)]
    with_version(monkeypatch, (6, 1))
    assert kinds(probe("r:g/e vfs_read", result)) == [("return", False)]
    with pytest.raises(Unprobed, match="which returns its probes miss"):
        probe("r:g/e vfs_read", result, word(OTHER))


def test_a_kernel_without_either_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_probes, "_no_trampolines", lambda: "it has none")
    assert kinds(probe("p:g/e vfs_read", word(FIRST))) == [("function", False)]
    with pytest.raises(Unprobed, match="it has none"):
        probe("f:g/e vfs_read")
    monkeypatch.setattr(kernel_probes, "KPROBES", "/none")
    with pytest.raises(Unprobed, match="CONFIG_KPROBE_EVENTS"):
        probe("p:g/e vfs_read", word(FIRST))


def test_symbols_need_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value = Fetch(Deref(KernelValue("symbol", "@jiffies"), 0), Word())
    listed = tmp_path / "kallsyms"

    def addresses(text: str) -> dict[str, int]:
        listed.write_text(text)
        kernel_probes._addresses.cache_clear()
        return dict(probe("t:g/e task_rename", value).symbols)

    find = symbol_addresses
    monkeypatch.setattr(kernel_probes, "symbol_addresses", lambda names: find(names, str(listed)))
    jiffies = "ffffffff82005000 D jiffies\n"
    assert addresses(f"{jiffies}ffffffffc0000000 d jiffies\t[m]\n") == {
        "jiffies": 0xFFFF_FFFF_8200_5000
    }
    with pytest.raises(Unprobed, match=r"no address of `jiffies`: without CAP_SYSLOG"):
        addresses("0000000000000000 D jiffies\n")
    with pytest.raises(Unprobed, match="lists no symbol `jiffies`"):
        addresses(jiffies.replace("jiffies", "other"))
    kernel_probes._addresses.cache_clear()


class Types(Bpf):
    """Has one BTF, and refuses its name."""

    opened: int

    def _bpf_in(self, command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
        number = struct.unpack_from("=I", attributes, 0)[0]
        if number:
            raise OSError(errno.EPERM, "")
        struct.pack_into("=I", attributes, 4, 1)
        return 0

    def _bpf(self, command: int, attributes: bytes) -> int:
        if len(attributes) > 4:
            raise OSError(errno.EPERM, "")
        self.opened = os.open(os.devnull, os.O_RDONLY)
        return self.opened


def test_types_are_closed_where_their_name_is_refused() -> None:
    machine = bpf_machine("x86_64")
    assert machine is not None
    bpf = Types(machine)
    with pytest.raises(PermissionError):
        bpf.load(Code((), ()), kind="entry", function=1, module="loop")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(bpf.opened)
