"""From probes and their compiled arguments to what an output format writes."""

from __future__ import annotations

import os

from fetchc.check.special_names import parameter_by_name
from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import reject
from fetchc.emit.output_formats import Event, Item, KernelPoint
from fetchc.emit.probe_definition import event_name, group_name
from fetchc.program.entities import Named as NamedPlace
from fetchc.program.types import ArrayType
from fetchc.quantities import Address, FileOffset
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.check.probe_site import Site
    from fetchc.driver.naming import Named
    from fetchc.driver.points.found import Found
    from fetchc.program.protocol import Program
    from fetchc.target.kernel_versions import Kernel

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
    items = tuple(
        Item(each.name, each.text, each.part.fetch, each.part.decode, each.length) for each in named
    )
    group = group or group_name(program.path)
    name = name or event_name(site.named_after)
    if program.in_kernel:
        return Event(
            site.probe_kind, group, name, "", site.address, FileOffset(0), True, False,
            program.architecture, program.word_bytes, kernel, items, point=_point(site),
        )  # fmt: skip
    function = site.function
    offset = program.file_offset(site.address)
    counted, static = False, ""
    if site.static is not None:
        counted = site.static.semaphore is not None
        whole = site.static.whole_name
        if [one.whole_name for one in program.static_probes()].count(whole) == 1:
            static = whole
    return Event(
        site.probe_kind,
        group,
        name,
        os.path.abspath(program.path),
        site.address,
        offset,
        function is not None and function.address == site.address and function.size is not None,
        bool(program.code(Address(offset), 1)),
        program.architecture,
        program.word_bytes,
        kernel,
        items,
        counted,
        _is_elf(program.path),
        static,
    )


def _point(site: Site) -> KernelPoint:
    """Of a probe in the kernel: its function or event, and what that is handed."""
    function, program = site.function, site.program
    if function is None:
        raise reject(
            "FC0206",
            f"a probe of the kernel names its function, and none is known at {site.address:#x}",
        )
    running, _, module = program.path.partition(":")
    arguments, arrays = [], []
    for variable in program.parameters(function) if site.means else ():
        place, _ = parameter_by_name(site, function, variable, Span(0, 0))
        if isinstance(place, NamedPlace):
            arguments.append((place.name, variable.name))
        made = program.type(variable.type)
        if isinstance(made, ArrayType) and made.count is not None:
            arrays.append(variable.name)
    return KernelPoint(
        function.symbol.replace(".", ":", 1) if site.means == "eprobe" else function.symbol,
        module if running == "kernel" else "",
        site.address - function.address,
        tuple(arguments),
        tuple(arrays),
        site.active is not None,
    )


def _is_elf(path: str) -> bool:
    handle, _ = open_regular(path)
    with open(handle, "rb") as file:
        return file.read(4) == b"\x7fELF"
