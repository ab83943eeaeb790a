"""Where the types of the running kernel begin, kept between runs: to find out is half a question.

Known by the kernel's build-id, a hash of all that it was linked from, its BTF included.
Source: ld's --build-id; Documentation/ABI/stable/sysfs-kernel-notes of Linux.
"""

from __future__ import annotations

import sys

from fetchc.debuginfo.btf.reader import WORD, Btf
from fetchc.debuginfo.cache import KeptFile
from fetchc.debuginfo.elf.headers import Image, build_id_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import mmap

    from fetchc.debuginfo.elf.headers import Buffer

__all__ = ["running_btf"]

NOTES = "/sys/kernel/notes"


def running_btf(name: str, data: Buffer | mmap.mmap) -> Btf:
    """The types of the running kernel, whose BTF is ``data``."""
    build_id = _build_id() if Image.cache_folder else None
    if build_id is None:
        return Btf(name, data)
    file = KeptFile(Image.cache_folder, build_id, f"btf {sys.byteorder} {len(data)}", ".btf")
    kept = file.upto(file.have) if file.have and file.have % WORD == 0 else None
    if kept is not None:
        return Btf(name, data, starts=kept.cast("I"))
    made = Btf(name, data)
    file.write(made.starts.tobytes())
    return made


def _build_id() -> str | None:
    try:
        with open(NOTES, "rb") as file:
            notes = file.read()
    except OSError:
        return None
    return build_id_in(notes, sys.byteorder == "little", 0, len(notes)) or None
