"""Opening a kernel: the running one, one of its modules, a file of BTF, the image of a kernel."""

from __future__ import annotations

import os

from fetchc.debuginfo.btf.program import BtfProgram
from fetchc.debuginfo.btf.reader import MAGIC, Btf
from fetchc.diag.errors import DebugInfoError

__all__ = ["open_file", "open_running"]

RUNNING = "/sys/kernel/btf"
# What uname says -> key of targets/arch.
MACHINES = {
    "x86_64": "x86_64",
    "aarch64": "aarch64",
    "riscv64": "riscv64",
    "s390x": "s390x",
    "ppc64le": "ppc64le",
    "armv7l": "arm",
    "i686": "i386",
}
NARROW = ("arm", "i386")


def open_running(name: str, root: str = RUNNING) -> BtfProgram:
    """The running kernel (``kernel``) or a module of it (``kernel:MODULE``)."""
    module = name.partition(":")[2]
    base = Btf(name, _read(name, f"{root}/vmlinux"))
    btf = base
    if module:
        path = f"{root}/{module}"
        if not os.path.exists(path):
            raise DebugInfoError(
                "FC0901",
                name,
                f"the running kernel has no BTF of a module `{module}`",
                help=f"load it: `modprobe {module}`; those with BTF: `ls {root}`",
            )
        btf = Btf(name, _read(name, path), base)
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        what = f"kernels for `{os.uname().machine}` are not known"
        raise DebugInfoError("FC0905", name, what)
    return BtfProgram(name, btf, machine, 4 if machine in NARROW else 8)


def _read(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise DebugInfoError(
            "FC0903",
            name,
            f"the running kernel has no BTF ({path})",
            help="it was built without CONFIG_DEBUG_INFO_BTF: name a BTF file with -x",
        ) from None
    except OSError as refused:
        raise DebugInfoError("FC0901", path, refused.strerror or "cannot be read") from None


def open_file(path: str, machine: str | None = None) -> BtfProgram | None:
    """The kernel whose BTF the file is or holds; None where it holds none.

    BTF does not name its machine: where neither ``machine`` nor the image around it does, the
    running one's is taken.
    """
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] not in (MAGIC.to_bytes(2, "little"), MAGIC.to_bytes(2, "big")):
        from fetchc.debuginfo.btf.kernel_image import btf_of_image

        found = btf_of_image(path, data)
        if found is None:
            return None
        data, of_image = found
        machine = machine or of_image
    machine = machine or MACHINES.get(os.uname().machine, "x86_64")
    return BtfProgram(path, Btf(path, data), machine, 4 if machine in NARROW else 8)
