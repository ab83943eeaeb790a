"""The kernel lab: which kernels there are to boot, and what booting one takes.

Kernels come from Debian's packages; ``.ci/lab`` puts them into ``.toolchains/kernels``, one
directory each, named by machine and series. All run under qemu's software emulation: a
/dev/kvm that can be opened does not say that a stock kernel gets anywhere on it.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]
KERNELS = _CHECKOUT / ".toolchains" / "kernels"
SOURCES = _CHECKOUT / "tests" / "lab"
# What every run of the tests boots: the oldest and the newest.
ALWAYS = ("amd64-5.10", "amd64-newest")
ON_DEMAND = ("amd64-6.1", "amd64-6.12", "arm64-6.1", "arm64-6.12", "arm64-newest")
_SECONDS = 120  # for a compiler
# No watchdog: on a busy host a guest's processor stands still at times, and that would be printed.
_QUIET = "panic=-1 quiet loglevel=1 nokaslr mitigations=off random.trust_cpu=on nowatchdog"


@dataclass(frozen=True)
class Machine:
    """How a kernel of one architecture is booted, and programs for it are made.

    ``name`` is fetchc's name of it, ``emulator`` qemu's command with the machine's options,
    ``line`` the serial line, ``boot`` the kernel's command line, ``compiler`` the command.
    """

    name: str
    emulator: tuple[str, ...]
    line: str
    boot: str
    compiler: str


MACHINES = {
    "amd64": Machine(
        "x86_64",
        ("qemu-system-x86_64", "-cpu", "max"),
        "/dev/ttyS0",
        f"{_QUIET} tsc=reliable no_timer_check console=ttyS0",
        "gcc",
    ),
    "arm64": Machine(
        "aarch64",
        ("qemu-system-aarch64", "-M", "virt,gic-version=3", "-cpu", "cortex-a57"),
        "/dev/ttyAMA0",
        f"{_QUIET} console=ttyAMA0",
        "aarch64-linux-gnu-gcc",
    ),
}


@dataclass(frozen=True)
class LabKernel:
    """One kernel: its ``label`` such as ``amd64-6.1``, what boots, and what it runs on."""

    label: str
    image: Path
    machine: Machine

    @property
    def release(self) -> str:
        """Its version as ``uname -r`` prints it."""
        return (self.image.parent / "release").read_text().strip()

    def why_not(self) -> str | None:
        """The reason why it cannot be booted here, or None."""
        if not self.image.is_file():
            return f"no kernel {self.label} in .toolchains/kernels: `.ci/lab --all` fetches it"
        for command in (self.machine.emulator[0], self.machine.compiler):
            if shutil.which(command) is None:
                return f"no {command}: `.ci/lab --all` installs it"
        return None


def labelled(label: str) -> LabKernel:
    """The kernel of a label, which need not be there."""
    return LabKernel(label, KERNELS / label / "vmlinuz", MACHINES[label.partition("-")[0]])


def chosen() -> list[LabKernel]:
    """The kernels of this run: two, or those of the environment's ``FETCHC_LAB``.

    That is ``all``, or labels between commas. Raises ValueError for what is no label.
    """
    wanted = os.environ.get("FETCHC_LAB", "")
    labels = list(ALWAYS)
    if wanted == "all":
        labels += ON_DEMAND
    elif wanted:
        labels = wanted.split(",")
    unknown = [label for label in labels if label not in (*ALWAYS, *ON_DEMAND)]
    if unknown:
        raise ValueError(f"FETCHC_LAB: no kernel {unknown[0]}; there are {ALWAYS + ON_DEMAND}")
    return [labelled(label) for label in labels]


@functools.cache
def built(machine: Machine, source: Path, *flags: str) -> bytes:
    """The static program of a C source for ``machine``."""
    with tempfile.TemporaryDirectory(prefix="fetchc_lab.") as scratch:
        program = Path(scratch) / "program"
        command = [machine.compiler, "-static", *flags, "-o", str(program), str(source)]
        subprocess.run(command, check=True, timeout=_SECONDS)
        return program.read_bytes()


def archive(files: dict[str, tuple[int, bytes]]) -> bytes:
    """An initramfs (cpio, "newc") of ``files``: a path without its first slash to mode and bytes.

    A directory has the mode of one and comes before what is in it.
    Source: Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    parts: list[bytes] = []
    for number, (path, (mode, content)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join([b"%08X" % field for field in fields]) + name
        parts += [head, bytes(-len(head) % 4), content, bytes(-len(content) % 4)]
    return b"".join(parts)
