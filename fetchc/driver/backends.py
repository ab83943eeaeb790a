"""From probes and their compiled arguments to what an output format writes."""

from __future__ import annotations

import os

from fetchc.diag.errors import reject
from fetchc.emit.formats import Event, Item
from fetchc.emit.names import event_name, group_name
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.driver.naming import Named
    from fetchc.driver.sites import Found
    from fetchc.program.protocol import Program
    from fetchc.target.kernel import Kernel

__all__ = ["event"]


def event(
    program: Program,
    found: Found,
    named: Iterable[Named],
    kernel: Kernel,
    group: str | None = None,
    name: str | None = None,
) -> Event:
    """The event of one probed address; without ``group`` and ``name``, those of a definition."""
    site = found.site
    if program.in_kernel:
        raise reject(
            "FC0514",
            "formats for other tools are of programs, and this is a function of the kernel",
            help="use `--format probe`, whose line goes into `kprobe_events`",
        )
    function = site.function
    offset = program.file_offset(site.address)
    counted = site.static is not None and site.static.semaphore is not None
    return Event(
        "uretprobe" if site.returns else "uprobe",
        group or group_name(program.path),
        name or event_name(site.named_after),
        os.path.abspath(program.path),
        site.address,
        offset,
        function is not None and function.address == site.address and function.size is not None,
        bool(program.code(Address(offset), 1)),
        program.architecture,
        program.word_bytes,
        kernel,
        tuple(
            Item(each.name, each.text, each.part.fetch, each.part.decode, each.length)
            for each in named
        ),
        counted,
        _is_elf(program.path),
    )


def _is_elf(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
