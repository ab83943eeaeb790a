"""From probes and their compiled arguments to what an output format writes."""

from __future__ import annotations

import os

from fetchc.check.variable_places import parameter_by_name
from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.emit.output_formats import Event, Item, KernelPoint
from fetchc.emit.probe_definition import (
    Probed,
    argument_name,
    definition,
    event_name,
    group_name,
    verify_event,
)
from fetchc.ir.fetch import Array, Text, body
from fetchc.program.entities import Named as NamedPlace
from fetchc.program.types import ArrayType
from fetchc.quantities import Address, FileOffset
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.check.probe_site import ProbePoint, Site
    from fetchc.driver.compile import Compiled, Part
    from fetchc.ir.arithmetic import Calculation
    from fetchc.ir.fetch import Decode, Fetch
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Named", "defined", "event", "named"]


def event(
    program: Program,
    found: ProbePoint,
    named: Iterable[Named],
    kernel: Kernel,
    group: str | None = None,
    name: str | None = None,
    conditions: Iterable[Iterable[Named]] = (),
) -> Event:
    """The event of one probed address; without ``group`` and ``name``, those of a definition."""
    site = found.site
    items = _items(named, kernel)
    tests = tuple([_items(one, kernel) for one in conditions])
    group = group or group_name(program.path)
    name = name or event_name(site.named_after)
    if program.in_kernel:
        return Event(
            site.probe_kind, group, name, "", site.address, FileOffset(0), True, False,
            program.architecture, program.word_bytes, kernel, items, point=_point(site),
            conditions=tests,
        )  # fmt: skip
    function = site.function
    offset = program.file_offset(site.address)
    semaphore, static = None, ""
    if site.static is not None:
        if site.static.semaphore is not None:
            semaphore = program.file_offset(site.static.semaphore)
        whole = site.static.whole_name
        if [one.whole_name for one in program.elf.static_probes()].count(whole) == 1:
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
        semaphore,
        _is_elf(program.path),
        static,
        build_id=program.build_id or "",
        listed_in=_listed_in(program, function, site.address),
        conditions=tests,
    )


def _items(listed: Iterable[Named], kernel: Kernel) -> tuple[Item, ...]:
    return tuple(
        Item(
            each.name, each.text, each.part.fetch, each.part.decode, each.length, each.computed,
            _items(named([(one.type, one) for one in each.part.entry], kernel), kernel),
        )
        for each in listed
    )  # fmt: skip


def _listed_in(program: Program, function: Function | None, address: Address) -> str:
    if function is None or function.die is None:
        return ""
    return ".debug_aranges" if program.evidence.is_in_address_table(address) else ".debug_info"


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
        resolved = program.type(variable.type)
        if isinstance(resolved, ArrayType) and resolved.count is not None:
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


# ------------------------------------------------------------------------------
# The definition of a probe, from what it fetches.


def defined(
    site: Site,
    fetches: Sequence[tuple[str, Fetch]],
    kernel: Kernel,
    group: str | None = None,
    event: str | None = None,
    programs: bool = False,
) -> str:
    """The line that fetches ``fetches``, each with its name, at ``site``.

    Raises CompileError where the kernel would refuse or mangle the line. ``programs``: where eBPF
    programs have such a probe, the line says where they are.
    """
    group = group or group_name(site.program.path)
    event = event or event_name(site.named_after)
    probed = _probed(site)
    problems = verify_event(probed, group, event, fetches, kernel)
    if any(not programs or one.reason != "not in definitions" for one in problems):
        raise CompileError(problems)
    bodies = [(name, body(fetch)) for name, fetch in fetches]
    return definition(probed, group, event, bodies)


def _probed(site: Site) -> Probed:
    kind, program = site.probe_kind, site.program
    if not program.in_kernel:
        counter = None if site.static is None else site.static.semaphore
        reference = None if counter is None else program.file_offset(counter)
        offset = program.file_offset(site.address)
        return Probed(kind, os.path.abspath(program.path), offset, reference, site.active)
    if site.function is None:
        raise reject(
            "FC0206",
            f"a probe of the kernel names its function, and none is known at {site.address:#x}",
        )
    offset = FileOffset(site.address - site.function.address)
    return Probed(kind, site.function.symbol, offset, None, site.active)


# ------------------------------------------------------------------------------
# The names that fetch-args get in a definition.


class Named(Record):
    """A fetch-arg in a definition.

    ``text`` is the whole argument's, as the user wrote it; ``companion_of`` the name of
    the value that a companion is there for; ``length`` the name of the companion that
    holds a string's length; ``computed`` is that of :class:`~fetchc.driver.compile.Compiled`.
    """

    name: str
    text: str
    part: Part
    companion_of: str | None
    length: str | None
    computed: tuple[Calculation, Decode] | None = None


def named(arguments: Iterable[tuple[str, Compiled]], kernel: Kernel) -> tuple[Named, ...]:
    """Names for the parts of ``arguments`` (each an expression and its compiled form).

    A name that the user gave stays as it is; the kernel's rules refuse a clash of two
    of them. Others come from the expression and get a number where they clash.
    """
    listed = list(arguments)
    taken = {compiled.name for _, compiled in listed if compiled.name}
    result: list[Named] = []
    for expression, compiled in listed:
        stem = compiled.name or argument_name(expression, kernel, taken)
        names = []
        for part in compiled.parts:
            name = stem
            if part.suffix:
                name = argument_name(f"{stem}_{part.suffix}", kernel, taken)
            taken.add(name)
            names.append(name)
        values: dict[str, str] = {}  # the suffix of a value -> its name
        lengths: dict[str, str] = {}  # the suffix of a value -> its length's name
        for part, name in zip(compiled.parts, names, strict=True):
            if not part.companion:
                values[part.suffix] = name
            else:
                owner, _, role = part.suffix.rpartition("_")
                if role == "len":
                    lengths[owner] = name
        for part, name in zip(compiled.parts, names, strict=True):
            owner = part.suffix.rpartition("_")[0]
            result.append(
                Named(
                    name,
                    compiled.text,
                    part,
                    values.get(owner) if part.companion else None,
                    lengths.get(part.suffix) if _is_counted_text(part) else None,
                    compiled.computed,
                )
            )
    return tuple(result)


def _is_counted_text(part: Part) -> bool:
    # Whether a length counts its bytes, or units; that of a list of strings counts strings.
    listed = isinstance(part.fetch.store, Array) and isinstance(part.fetch.store.element, Text)
    return part.decode.kind in ("text", "bytes", "utf-16") and not listed
