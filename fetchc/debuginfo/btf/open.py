"""Opening a kernel: the running one, one of its modules, a file of BTF, the image of a kernel."""

from __future__ import annotations

import mmap
import os

from fetchc.debuginfo.btf.kept import running_btf
from fetchc.debuginfo.btf.program import BtfProgram
from fetchc.debuginfo.btf.reader import MAGIC, Btf
from fetchc.debuginfo.safe_open import open_regular, read_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.target.machines import architecture

__all__ = ["open_file", "open_running"]

RUNNING = "/sys/kernel/btf"
LOADED = "/sys/module"  # of what is built in, too, where that has parameters or a version
MODULES = "/proc/modules"  # there where a kernel loads modules
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
LARGEST = 1 << 28  # bytes of a file; images of kernels have up to 70 MB, disks far more


def open_running(name: str, root: str = RUNNING) -> BtfProgram:
    """The running kernel (``kernel``) or a module of it (``kernel:MODULE``)."""
    _, colon, module = name.partition(":")
    if colon and not module:
        help = f"name one, `kernel:MODULE` (those there are: `ls {root}`), or leave the colon out"
        raise DebugInfoError("FC0901", name, "no module is named behind the colon", help=help)
    data = _mapped(f"{root}/vmlinux") or _read(name, f"{root}/vmlinux")
    base = running_btf(name, data) if root == RUNNING else Btf(name, data)
    btf = base
    if module:
        path = f"{root}/{module}"
        if "/" in module or not os.path.exists(path):
            raise _no_module(name, module, root)
        btf = Btf(name, _read(name, path), base)
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        what = f"kernels for `{os.uname().machine}` are not known"
        raise DebugInfoError("FC0905", name, what)
    return BtfProgram(name, btf, machine, 4 if machine in NARROW else 8, running=root == RUNNING)


def _no_module(name: str, module: str, root: str) -> DebugInfoError:
    """It is built in, or not loaded, or came without BTF, as all modules before Linux 5.11 did."""
    what = f"the running kernel has no BTF of a module `{module}`"
    loaded = os.path.exists(f"{LOADED}/{module}/initstate")
    if root == RUNNING and not loaded:
        notes: tuple[str, ...] = ()
        if not os.path.exists(MODULES):
            notes = ("it loads no modules: all that it has is built in",)
        elif os.path.exists(f"{LOADED}/{module}"):
            notes = ("it is built in",)
        if notes:
            return DebugInfoError("FC0901", name, what, help="write `-x kernel`", notes=notes)
    if root == RUNNING and loaded:
        notes = ("it is loaded, and came without one",)
        help = "boot a kernel with CONFIG_DEBUG_INFO_BTF_MODULES=y: Linux 5.11 or later"
        return DebugInfoError("FC0901", name, what, help=help, notes=notes)
    help = f"load it: `modprobe {module}`; those with BTF: `ls {root}`"
    return DebugInfoError("FC0901", name, what, help=help)


def _mapped(path: str) -> mmap.mmap | None:
    """The kernel's own file without a copy of it, from Linux 6.16 on; None where it does not so.

    Source: btf_sysfs_vmlinux_mmap, kernel/bpf/sysfs_btf.c: private and read-only.
    """
    try:
        handle, _ = open_regular(path)
        with open(handle, "rb") as file:
            return mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    except (OSError, ValueError):
        return None  # to be read, and told of where that fails too


def _read(name: str, path: str) -> bytes:
    try:
        return read_regular(path, LARGEST)
    except FileNotFoundError:
        raise DebugInfoError(
            "FC0903",
            name,
            f"the running kernel has no BTF ({path})",
            help="it was built without CONFIG_DEBUG_INFO_BTF: name a BTF file with -x",
        ) from None
    except OSError as refused:
        raise DebugInfoError("FC0901", path, refused.strerror or "cannot be read") from None


def open_file(
    path: str, machine: str | None = None, of_btf: str | None = None
) -> BtfProgram | None:
    """The kernel whose BTF the file is or holds; None where it holds none.

    BTF does not name its machine: where neither ``machine`` nor the image around it does, it is
    ``of_btf``, by default the running one's.
    """
    try:
        handle, status = open_regular(path)
        with os.fdopen(handle, "rb") as file:
            if status.st_size > LARGEST:
                return None
            data = file.read(LARGEST)
    except OSError as refused:
        raise DebugInfoError("FC0901", path, f"cannot be read: {refused.strerror}") from None
    if data[:2] not in (MAGIC.to_bytes(2, "little"), MAGIC.to_bytes(2, "big")):
        from fetchc.debuginfo.btf.kernel_image import btf_of_image

        found = btf_of_image(path, data)
        if found is None:
            return None
        data, of_image = found
        machine = machine or of_image
    machine = machine or of_btf or MACHINES.get(os.uname().machine, "x86_64")
    program = BtfProgram(path, Btf(path, data), machine, 4 if machine in NARROW else 8)
    (word, *_), given = program.types_named("unsigned long", None), program.word_bytes
    size = getattr(program.type(word), "size", given)
    if size != given:
        what = f"its `unsigned long` has {size} bytes, that of {machine} {given}"
        raise DebugInfoError("FC0905", path, what, help="name its machine: --arch arm64")
    if architecture(machine).little_endian != program.little_endian:
        what = f"its numbers are not in the byte order of {machine}"
        other = "arm64" if program.little_endian else "s390x"
        raise DebugInfoError("FC0905", path, what, help=f"name its machine: --arch {other}")
    return program
