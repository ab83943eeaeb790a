"""A whole program: one probe an event, which prints the values as the kernel's text form does.

A line of output is ``COMM-THREAD EVENT: NAME=VALUE ...``; an event whose values are more than one
``printf`` can hold prints several. The BPF stack (512 bytes) holds what a ``printf`` prints and the
texts on the way there, so a line has one text at most.

Where the probe sits: bpftrace takes an address of the file, looks for the symbol around it, and
wants a disassembler for any address but a symbol's own. Debian's build (0.17) has none and
refuses. A number that lies in no symbol it takes, with ``--unsafe``, for an offset in the file
(src/attached_probe.cpp, ``resolve_offset_uprobe``): so inside of a function the offset is given,
where it cannot be mistaken for an address. A static probe in one place goes by its name where it
can be, and where a counter has to be raised, by which the program knows that somebody looks:
bpftrace does so. Of a library that a command loads (``-c``) it does not find the name.

In the kernel it has a kind of probe for each of ours but raw tracepoints, which 0.17 does not
take although it lists them (tried). A function probe is one of BPF's own there (``kfunc``).
"""

from __future__ import annotations

import re

from fetchc.diag.errors import reject
from fetchc.diag.model import Diagnostic
from fetchc.emit.bpftrace.values import Shown, shown
from fetchc.emit.formats import Written
from fetchc.ir.nodes import Array
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.emit.formats import Event, KernelPoint

__all__ = ["SETTLED", "write"]

# Arrays of characters end at their count, signs are extended.
SETTLED = ("FC0604", "FC0608")
# In quotes a path may hold the rest; bpftrace has no escapes there, and patterns of files.
_UNWRITABLE = re.compile(r'[\x00-\x1f\x7f"*?\[\]\\:]')


def write(events: Sequence[Event]) -> Written:
    """The program for ``events``; raises CompileError for what bpftrace cannot do."""
    warnings = []
    unsafe = False
    blocks = []
    for event in events:
        if event.point is not None:
            unsafe |= event.kind == "kprobe_inside"
            blocks.append(_probe(event, _kernel_point(event, event.point)))
            continue
        by_address = not event.start and not _by_name(event)
        if by_address and event.ambiguous:
            warnings.append(_inside(event))
        unsafe |= by_address and not event.ambiguous
        blocks.append(_probe(event, _program_point(event)))
    texts = table("backend/bpftrace")["texts"]["bytes"]
    option = " --unsafe" if unsafe else ""
    head = [
        f"#!/usr/bin/env -S BPFTRACE_STRLEN={texts} bpftrace{option}",
        f"// Texts end after {texts - 1} bytes, with BPFTRACE_STRLEN as above.",
        "// What cannot be read, or is not in RAM now, is 0 or empty; the option -kk tells of it.",
    ]
    return Written("\n\n".join(["\n".join(head), *blocks]), tuple(dict.fromkeys(warnings)))


_KINDS = {
    "kprobe": "kprobe", "kprobe_inside": "kprobe", "kretprobe": "kretprobe",
    "fprobe": "kfunc", "fexit": "kretfunc", "eprobe": "tracepoint",
}  # fmt: skip


def _kernel_point(event: Event, point: KernelPoint) -> str:
    if event.kind not in _KINDS:
        raise reject(
            "FC0514",
            f"bpftrace cannot probe the raw tracepoint `{point.name}` everywhere",
            help=f"probe the event: `-f tracepoint:GROUP:{point.name}`; or use `--format probe`",
        )
    inside = f"+{point.inside}" if point.inside else ""
    return f"{_KINDS[event.kind]}:{point.name}{inside}"


def _program_point(event: Event) -> str:
    if not event.elf:
        raise reject(
            "FC0514",
            f"bpftrace probes ELF files only, and `{event.path}` is none",
            help="use `--format probe`, or `fetchc trace`",
        )
    if unwritable := _UNWRITABLE.search(event.path):
        raise reject(
            "FC0510",
            f"the path `{event.path}` holds {unwritable[0]!r}, which a bpftrace program cannot",
            help="make a link with a plain name and give that",
        )
    if _by_name(event):
        return f'usdt:"{event.path}":{event.static}'
    number = event.address if event.start or event.ambiguous else event.offset
    return f'{event.kind}:"{event.path}":{number:#x}'


def _by_name(event: Event) -> bool:
    return event.static != "" and (event.counted or event.ambiguous)


def _probe(event: Event, point: str) -> str:
    data = table("backend/bpftrace")
    machine = data["machines"].get(event.machine)
    if machine is None:
        raise reject(
            "FC0514",
            f"the format `bpftrace` does not know the registers of {event.machine}",
            help="use `--format probe`",
        )
    lines = [point, "{"]
    for batch in _batches(event, machine, data["lines"]):
        lines += _printf(event, batch)
    return "\n".join([*lines, "}"])


class _Labelled(Record):
    """Values behind one ``NAME=``; a list stands in braces. ``comment`` has the expression."""

    label: str
    comment: str
    values: tuple[Shown, ...]
    listed: bool


def _batches(
    event: Event, machine: Mapping[str, Any], limits: Mapping[str, int]
) -> Iterator[list[_Labelled]]:
    """What one ``printf`` each prints: as much as the stack has room for."""
    batch: list[_Labelled] = []
    numbers = texts = 0
    for labelled in _labelled(event, machine, limits["numbers"]):
        more = sum(value.text for value in labelled.values)
        texts += more
        numbers += len(labelled.values) - more
        most = limits["numbers_beside_a_text"] if texts else limits["numbers"]
        if batch and (texts > 1 or numbers > most):
            yield batch
            batch, texts, numbers = [], more, len(labelled.values) - more
        batch.append(labelled)
    if batch or not event.items:
        yield batch


def _labelled(event: Event, machine: Mapping[str, Any], most: int) -> Iterator[_Labelled]:
    # A list that is too long for a line is printed in ranges, which say so: a[0:40]=.
    before = None
    for item in event.items:
        values = shown(item, event, machine)
        comment = "" if item.text == before else f"  // {' '.join(item.text.split())}"
        before = item.text
        listed = isinstance(item.fetch.store, Array) and item.length is None
        room = 1 if values[0].text else most
        if len(values) <= room:
            yield _Labelled(item.name, comment, values, listed)
            continue
        for low in range(0, len(values), room):
            some = values[low : low + room]
            yield _Labelled(f"{item.name}[{low}:{low + len(some)}]", comment, some, listed)
            comment = ""


def _printf(event: Event, batch: Sequence[_Labelled]) -> list[str]:
    format = f"%s-%d {event.event}:"
    arguments = [("comm, tid", "")]
    for labelled in batch:
        conversions = ",".join([value.conversion for value in labelled.values])
        format += f" {labelled.label}=" + (f"{{{conversions}}}" if labelled.listed else conversions)
        first, *others = [value.expression for value in labelled.values]
        arguments += [(first, labelled.comment), *[(other, "") for other in others]]
    ends = [","] * (len(arguments) - 1) + [");"]
    return [
        f'    printf("{format}\\n",',
        *[
            f"        {expression}{end}{comment}"
            for (expression, comment), end in zip(arguments, ends, strict=True)
        ],
    ]


def _inside(event: Event) -> Diagnostic:
    return Diagnostic(
        "FC0610",
        f"bpftrace may refuse to probe inside of a function, at {event.address:#x}",
        notes=("Debian builds it without the disassembler that it asks where instructions start",),
        help="probe the function's first instruction: `--at +0`; or use `--format probe`",
    )
