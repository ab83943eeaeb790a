"""A function of a module, by the BTF that came with it: ``-x kernel:loop`` in a booted kernel."""

from __future__ import annotations

import json
import lzma

import pytest

from fetchc.target.kernel_versions import kernel
from tests.support.kernel_lab import LabKernel
from tests.support.kernel_lab_guest import Guest, LabError
from tests.support.kernel_lab_python import files, interpreter, why_no_python

MODULES_HAVE_BTF = (5, 11)  # kbuild: Build kernel module BTFs if BTF is enabled (5f9ae91f7c0d)
FINIT_MODULE = 313  # x86-64's number of the system call
LOAD = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
module = os.open("/loop.ko", os.O_RDONLY)
if libc.syscall({FINIT_MODULE}, module, b"max_loop=4", 0):
    raise OSError(ctypes.get_errno(), "finit_module")
"""
# Of a device without a file: what is asked, and the error it ends with.
ASKED = {0x4C05: -6, 0x4C06: -9}  # LOOP_GET_STATUS64: ENXIO; LOOP_CHANGE_FD: EBADF
ASK = f"""
import fcntl, os
device = os.open("/dev/loop1", os.O_RDONLY)
for number in {list(ASKED)}:
    try:
        fcntl.ioctl(device, number, bytes(300))
    except OSError:
        pass
"""
EXPRESSIONS = (
    "cmd",
    "name=bdev->bd_disk->disk_name",
    "number=((struct loop_device *)bdev->bd_disk->private_data)->lo_number",
    "$retval",
)


def module(lab_kernel: LabKernel) -> bytes | None:
    """The module of the kernel's own package, None where it was not kept."""
    for path in lab_kernel.image.parent.glob("loop.ko*"):
        content = path.read_bytes()
        return lzma.decompress(content) if path.suffix == ".xz" else content
    return None


def test_a_function_of_a_module(lab_kernel: LabKernel) -> None:
    loop = module(lab_kernel)
    if lab_kernel.machine.name != "x86_64" or loop is None:
        pytest.skip("no module of this kernel here: `.ci/lab --refresh` keeps one")
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    python = interpreter(lab_kernel)
    with Guest(lab_kernel, {**files(lab_kernel), "loop.ko": loop}) as guest:
        guest.run(python, "-c", LOAD)
        if kernel(lab_kernel.release).version < MODULES_HAVE_BTF:
            with pytest.raises(LabError, match="it is loaded, and came without one"):
                guest.run(python, "-m", "fetchc", "functions", "lo_io*", "-x", "kernel:loop")
            return
        listed = guest.run(python, "-m", "fetchc", "functions", "lo_io*", "-x", "kernel:loop")
        assert listed.split() == ["lo_ioctl"]
        words = ["trace", *EXPRESSIONS, "-x", "kernel:loop", "-f", "lo_ioctl", "--latency"]
        shown = guest.run(
            python, "-m", "fetchc", *words, "--format", "jsonl", "--", python, "-c", ASK
        )
    found = [json.loads(line)["args"] for line in shown.splitlines()]
    expected = [
        {"cmd": number, "name": "loop1", "number": 1, "$retval": result}
        for number, result in ASKED.items()
    ]
    assert found == expected


@pytest.mark.long
def test_a_program_at_a_function_of_a_module(lab_kernel: LabKernel) -> None:
    loop = module(lab_kernel)
    if lab_kernel.machine.name != "x86_64" or loop is None:
        pytest.skip("no module of this kernel here: `.ci/lab --refresh` keeps one")
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    if kernel(lab_kernel.release).version < MODULES_HAVE_BTF:
        pytest.skip("its modules have no BTF")
    python = interpreter(lab_kernel)
    with Guest(lab_kernel, {**files(lab_kernel), "loop.ko": loop}) as guest:
        guest.run(python, "-c", LOAD)
        for words in (EXPRESSIONS[:2], ("$retval", "--return")):
            shown = {}
            for engine in ("tracefs", "bpf"):
                asked = (*words, "-f", "lo_ioctl", "-x", "kernel:loop")
                text = guest.run(
                    python, "-m", "fetchc", "trace", *asked, "--engine", engine, "--format",
                    "jsonl", "--", python, "-c", ASK,
                )  # fmt: skip
                shown[engine] = [json.loads(line)["args"] for line in text.splitlines()]
            assert shown["bpf"] == shown["tracefs"]
            assert len(shown["bpf"]) == len(ASKED)
        text = guest.run(
            python, "-m", "fetchc", "trace", "--sum", "$latency", "--by", "cmd,$retval",
            "--latency", "-f", "lo_ioctl", "-x", "kernel:loop", "-v", "--format", "jsonl", "--",
            python, "-c", ASK,
        )  # fmt: skip
        assert "the engine is bpf: the kernel counts" in text
        rows = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
        assert sorted(tuple(one["key"]) for one in rows) == sorted(ASKED.items())
        assert all(one["total"] > 0 for one in rows)
        # Without a breakpoint: fprobe: has nothing else.
        text = guest.run(
            python, "-m", "fetchc", "trace", "--count-by", "cmd,bdev->bd_disk->disk_name",
            "--filter", "cmd > 0", "-f", "fprobe:lo_ioctl", "-x", "kernel:loop", "--engine", "bpf",
            "-v", "--format", "jsonl", "--", python, "-c", ASK,
        )  # fmt: skip
        assert "the kernel counts" in text
        rows = [json.loads(line) for line in text.splitlines() if line[:1] == "{"]
        assert sorted((*one["key"], one["count"]) for one in rows) == [
            (number, "loop1", 1) for number in sorted(ASKED)
        ]
