"""The output formats that other tools take, and what they are made of.

A format is one module here with ``write(events) -> Written``: the text, and what should be known
of it; and ``SETTLED``, the codes of warnings about fetch-args that do not hold for it. It works on
the fetches themselves, never on the text of fetch-args; what a tool cannot carry is refused
(FC0514), and values that it shows as something else give a warning. To add one: the module, a line
in ``FORMATS``, a row in docs/backends.md, a live test that runs the real tool
(tests/live/test_backends.py).
"""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.ir.fetch import Decode, Fetch, Walk
from fetchc.quantities import Address, FileOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.ir.arithmetic import Calculation
    from fetchc.target.kernel_versions import Kernel

__all__ = ["FORMATS", "Event", "Item", "KernelPoint", "Written", "settled", "total", "written"]

RAISING = ("bpf-c",)
"""Formats whose tools raise the counter of a static probe."""

RAISING_BY_NAME = ("bpftrace",)
"""As those, where the probe is in one place."""

NAMING_BTF = ("tetragon",)
"""Formats whose text names a file of BTF."""

COMPUTING = ("bpftrace", "bpf-c")
"""Formats whose tools compute what operators give."""

WALKING = ("bpf-c",)
"""Formats whose tools walk a container."""

TESTING = ("bpf-c",)
"""Formats whose tools test conditions."""

OF_VERSIONS = ("bpftrace",)
"""Formats whose text depends on the tool's version."""

FORMATS = {
    "perf": "fetchc.emit.perf_probe",
    "bpftrace": "fetchc.emit.bpftrace_program",
    "tetragon": "fetchc.emit.tetragon_policy",
    "systemtap": "fetchc.emit.systemtap_script",
    "bpf-c": "fetchc.emit.bpf_c",
}


class Item(Record):
    """One named fetch of an event.

    ``text`` is the argument as the user wrote it; ``length`` names the item that holds the bytes,
    or units of UTF-16, of a counted string. ``computed``: the value is what that gives for the
    fetches of the argument's items, and what its result means. ``entry`` is, of a walk, what is
    fetched of each of its entries.
    """

    name: str
    text: str
    fetch: Fetch
    decode: Decode
    length: str | None
    computed: tuple[Calculation, Decode] | None = None
    entry: tuple[Item, ...] = ()

    @property
    def counts_bytes(self) -> bool:
        """Whether it is a string with a length that is of bytes, not of units of UTF-16."""
        return self.length is not None and self.decode.kind != "utf-16"


class KernelPoint(Record):
    """What a probe of the kernel's own code is of, besides its kind.

    ``name`` is a function, a tracepoint or ``GROUP:EVENT``; ``module`` what it is in, empty for the
    kernel itself; ``inside`` the bytes from the function's start. ``arguments`` are pairs: what the
    kernel calls a parameter or field (``$arg3``, ``$filename``) and its own name. ``arrays`` are
    fields whose characters are in the record itself. ``active``: a number of calls was asked for.
    """

    name: str
    module: str
    inside: int
    arguments: tuple[tuple[str, str], ...]
    arrays: tuple[str, ...] = ()
    active: bool = False


class Event(Record):
    """What one probe fetches: ``kind`` is one of ``targets/kernel`` (uprobe, kretprobe, ...).

    ``address`` is the probed instruction's as the file states it, ``offset`` where it is in the
    file. ``start``: it is the first of a function that has a symbol. ``ambiguous``: ``offset``,
    taken for an address, is one of the file too. ``machine`` is a key of targets/arch.
    ``elf``: the file is of that format, whose addresses tools can tell from offsets.
    ``build_id``: the file's, empty without one. ``listed_in``: the section of the debug information
    that says which unit has the address: .debug_aranges, else .debug_info; empty without one.
    ``semaphore``: where the file has the counter that is raised for the program not to pass the
    probe by.
    ``static`` is ``provider:name`` of such a probe that is at this address alone.
    ``point``: the probe is in the kernel, and what is said of a file does not count.
    ``conditions``: the items of expressions; a hit where one is 0, or is not known, is no event.
    """

    kind: str
    group: str
    event: str
    path: str
    address: Address
    offset: FileOffset
    start: bool
    ambiguous: bool
    machine: str
    word_bytes: int
    kernel: Kernel
    items: tuple[Item, ...]
    semaphore: FileOffset | None = None
    elf: bool = True
    static: str = ""
    point: KernelPoint | None = None
    build_id: str = ""
    listed_in: str = ""
    conditions: tuple[tuple[Item, ...], ...] = ()


class Written(Record):
    """The output of a format, and warnings about it; ``btf`` is a file that the text refers to."""

    text: str
    warnings: tuple[Diagnostic, ...]
    btf: bytes = b""


def written(format: str, events: Sequence[Event], btf: str = "", version: str = "") -> Written:
    """``events`` in the format of that name; ``btf`` is the file of BTF that the text may name.

    ``version`` is the tool's, ``0.27``; empty: the newest that is known. Raises CompileError for
    what the format cannot carry.
    """
    if any(event.semaphore is not None and not _raises(format, event) for event in events):
        raise reject(
            "FC0514",
            f"the format `{format}` cannot carry a static probe with a semaphore",
            notes=(
                "the program skips the probe unless the tracer raises a counter",
                f"{' and '.join(RAISING)} can, and where the probe is in one place "
                f"{' and '.join(RAISING_BY_NAME)}",
            ),
            help="use `--format probe`, `fetchc trace` or `fetchc add`",
        )
    walks = any(isinstance(one.fetch.value, Walk) for event in events for one in event.items)
    if walks and format not in WALKING:
        raise reject(
            "FC0314",
            f"the format `{format}` cannot walk a container",
            help=f"`fetchc trace` and `--format {WALKING[0]}` do",
        )
    if any(event.conditions for event in events) and format not in TESTING:
        raise reject(
            "FC0514",
            f"the format `{format}` cannot test a condition",
            help=f"`fetchc trace --filter` and `--format {TESTING[0]}` do",
        )
    options = (btf,) if format in NAMING_BTF else (version,) if format in OF_VERSIONS else ()
    result: Written = _module(format).write(events, *options)
    return result


def _raises(format: str, event: Event) -> bool:
    return format in RAISING or (format in RAISING_BY_NAME and event.static != "")


def settled(format: str) -> tuple[str, ...]:
    """Codes of warnings about a fetch-arg that do not hold for what the format prints."""
    codes: tuple[str, ...] = _module(format).SETTLED
    return codes


def total(base: str, offset: int) -> str:
    """The sum of an expression and a constant, as tools with the operators of C read it."""
    return f"{base} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else base


def _module(format: str) -> Any:
    return __import__(FORMATS[format], fromlist=["write"])
