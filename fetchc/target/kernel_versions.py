"""What a Linux kernel accepts as a probe definition, by version.

``targets/kernel/linux.toml`` holds the facts, each with its source; here they become
one :class:`Kernel` for the version that was asked for. A version is two numbers:
kernels of distributions carry backports that their names do not show.
"""

from __future__ import annotations

import os

from fetchc.diag.diagnostic import reject
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fetchc.diag.diagnostic import Diagnostic

    Version = tuple[int, int]

__all__ = [
    "Costs",
    "Kernel",
    "Rule",
    "beyond_tables",
    "dotted",
    "kernel",
    "parse_version",
    "previous",
    "running_version",
    "turns",
    "version_ranges",
]

BPF = "bpf"
# What bounds definitions, and no program; a size that nothing has.
_OF_DEFINITIONS = (
    "arguments", "body_bytes", "instructions", "nesting", "event_bytes", "record_bytes",
    "line_bytes",
)  # fmt: skip
_UNBOUNDED = 1 << 31
_NARROW = ("i3", "i4", "i5", "i6", "armv5", "armv6", "armv7")  # uname -m of 32-bit kernels
_DIGITS = 4  # of each part of a version at most


class Costs(Record):
    """Instructions that each part of a fetch takes of ``Kernel.instructions``."""

    base: int
    dereference: int
    raw_store: int
    bit_field: int
    array: int
    text_array: int


class Rule(Record):
    """One thing a fetch-arg or a definition can use.

    ``written`` is its form in the kernel's notation, ``first`` the first kernel that has
    it, ``kinds`` the probes that take it (``uprobe``, ``kretprobe``, ...), ``firsts`` the first
    kernels for kinds that differ, ``on`` the bases a store can take its value from,
    ``not_at_return`` those of them that it cannot in a kernel's return probe, ``typed``
    those it can take it from since ``by_type`` where the kernel's own types say so.
    ``tolerated`` are probes that take it in versions before ``until`` (None: in all) though
    nothing comes of it there: not to be emitted. ``mangled`` are the first and the last version
    that take it and give another value. A feature ends with ``until``. ``programs`` are
    the kinds of probes in which eBPF programs have it on any kernel.
    """

    name: str
    written: str
    first: Version
    kinds: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    until: Version | None = None
    firsts: tuple[tuple[str, Version], ...] = ()
    not_at_return: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    by_type: Version | None = None
    mangled: tuple[Version, Version] | None = None
    programs: tuple[str, ...] = ()

    def begins(self, kind: str) -> Version:
        """The first kernel that has it in a probe of ``kind``, one of ``kinds``."""
        return dict(self.firsts).get(kind, self.first)


class Kernel(Record):
    """The rules of one kernel version; sizes are in bytes, None means no limit.

    ``body_bytes`` bounds the text after ``NAME=``, ``event_bytes`` the sum of the
    arguments' fixed parts, ``record_bytes`` a whole event with its header, ``line_bytes``
    a definition without its newline, ``text_bytes`` a string without its NUL. ``stack_words``
    bounds the number of a stack word or an argument in probes of the kernel itself,
    ``returns_at_once`` that of a return probe's calls that are watched at a time.
    ``word_bytes`` is the size of its long.
    ``records``: a BPF program reads its events. It has the record itself, and what bounds
    definitions bounds no program.

    The rules of bases, stores and features are those of every version, also of what this one
    lacks: which versions have it is what they say.
    """

    version: Version
    body_bytes: int
    argument_name_bytes: int
    event_name_bytes: int
    arguments: int
    record_bytes: int
    line_bytes: int
    text_bytes: int
    offset_bits: int
    stack_words: int
    returns_at_once: int
    instructions: int | None
    nesting: int | None
    array_elements: int | None
    event_bytes: int | None
    costs: Costs
    reserved_names: tuple[str, ...]
    confusing_names: tuple[str, ...]
    word_bytes: int = 8
    records: bool = False

    @property
    def name(self) -> str:
        """The version as people write it: ``6.18``."""
        return dotted(self.version)

    def base(self, name: str) -> Rule:
        """The rule of a base such as ``register``."""
        rule = _rule("bases", name)
        if self.records and rule.kinds == ("eprobe",):
            # What event probes alone have, without what they make of it.
            return Rule(rule.name, rule.written, (0, 0), rule.kinds)
        return rule

    def store(self, name: str) -> Rule:
        """The rule of a store such as ``bit_field``."""
        return _rule("stores", name)

    def has(self, feature: str) -> bool:
        """Whether this version has ``feature``, one of ``features``."""
        rule = _rule("features", feature)
        return rule.first <= self.version and (rule.until is None or self.version < rule.until)

    def replaced_nop(self, machine: str) -> int:
        """Bytes of the NOPs of ``machine`` that must not be probed: the kernel makes them calls.

        0 where this version replaces none, or does it without harm.
        """
        facts = table("kernel/linux")["replaced_nops"].get(machine)
        if facts is None or not parse_version(facts["first"]) <= self.version < parse_version(
            facts["until"]
        ):
            return 0
        return int(facts["bytes"])

    def emulated(self, machine: str) -> tuple[str, ...]:
        """What this version emulates of ``machine`` when it is probed: ``pushes``, ``branches``.

        Keys of ``emulated`` in the machine's table. Empty where the tables do not say.
        """
        facts = table("kernel/linux")["emulated"].get(machine, {})
        return tuple(
            [name for name, first in facts.items() if parse_version(first) <= self.version]
        )

    def last(self, feature: str) -> str | None:
        """The last version that has ``feature``, None where the newest one of the tables does."""
        until = _rule("features", feature).until
        return None if until is None else dotted(previous(until))

    def first(self, feature: str) -> str:
        """The first version that has ``feature``."""
        return dotted(_rule("features", feature).first)


def dotted(version: Version) -> str:
    """``(5, 10)`` as ``5.10``."""
    return f"{version[0]}.{version[1]}"


def running_version() -> str:
    """The release of the kernel this process runs on, with ``/32`` where that has 32 bits."""
    running = os.uname()
    narrow = running.machine.startswith(_NARROW)
    return running.release + ("/32" if narrow else "")


def kernel(version: str) -> Kernel:
    """The rules of ``version``: ``5.10``, or a release such as ``6.18.44-fc``.

    ``5.10/32`` is a 32-bit kernel of that version. ``6.18/bpf`` is one whose events a BPF program
    reads: it has the record itself, whatever event probes make of it, and no definition. Raises
    :class:`~fetchc.diag.diagnostic.CompileError` (FC0506) for a string that is not a version and
    for a kernel older than uprobe events.
    """
    facts = table("kernel/linux")
    release, *words = version.split("/")
    wanted, records = _leading(release), words[-1:] == [BPF]
    width = words[:-1] if records else words
    if wanted is None or width not in ([], ["32"], ["64"]):
        raise reject(
            "FC0506",
            f"`{version}` is not a kernel version",
            help="write the first two numbers of `uname -r`, such as `5.10`, and for a 32-bit "
            "kernel `5.10/32`",
        )
    oldest = parse_version(facts["oldest"])
    if wanted < oldest:
        raise reject(
            "FC0506",
            f"Linux {dotted(wanted)} has no uprobe events",
            notes=(f"they came with Linux {dotted(oldest)}",),
        )
    limits = {name: _step(limit["steps"], wanted) for name, limit in facts["limits"].items()}
    if records:
        limits |= dict.fromkeys(_OF_DEFINITIONS, _UNBOUNDED)
    return Kernel(
        version=wanted,
        word_bytes=4 if width == ["32"] else 8,
        costs=Costs(**facts["costs"]),
        records=records,
        reserved_names=tuple(facts["names"]["reserved"]),
        confusing_names=tuple(facts["names"]["confusing"]),
        **limits,
    )


def beyond_tables(kernel: Kernel) -> tuple[Diagnostic, ...]:
    """FC0635 of a version that is newer than all that the tables know; else nothing."""
    newest = table("kernel/linux")["newest"]
    if kernel.version <= parse_version(newest):
        return ()
    from fetchc.diag.diagnostic import Diagnostic

    what = f"fetchc knows nothing of kernels newer than {newest}"
    note = f"the rules of Linux {newest} are used for {kernel.name}"
    help = f"check the number, or install a newer fetchc; `--kernel {newest}` is the newest here"
    return (Diagnostic("FC0635", what, notes=(note,), help=help),)


def turns() -> tuple[Version, ...]:
    """The versions that change a rule, in rising order; the first is the oldest with uprobes.

    Between two of them every definition has the same verdict.
    """
    facts = table("kernel/linux")
    found = {parse_version(facts["oldest"])}
    for limit in facts["limits"].values():
        found.update([parse_version(first) for first, _ in limit["steps"]])
    for nops in facts["replaced_nops"].values():
        found.update([parse_version(nops["first"]), parse_version(nops["until"])])
    for group in ("bases", "stores", "features"):
        for rule in [_rule(group, name) for name in facts[group]]:
            found.update([rule.first, *[first for _, first in rule.firsts]])
            found.update([turn for turn in (rule.until, rule.by_type) if turn is not None])
    return tuple(sorted(found))


def version_ranges(accepted: Sequence[bool]) -> tuple[tuple[str, str | None], ...]:
    """The ranges of versions with a good verdict: the first and the last, None of what lasts.

    ``accepted`` has the verdict of each of :func:`turns`.
    """
    found: list[tuple[str, str | None]] = []
    first: Version | None = None
    for turn, good in zip(turns(), accepted, strict=True):
        if good and first is None:
            first = turn
        elif not good and first is not None:
            found.append((dotted(first), dotted(previous(turn))))
            first = None
    if first is not None:
        found.append((dotted(first), None))
    return tuple(found)


def previous(version: Version) -> Version:
    """The version before ``version``: 7.2 before 7.3, 4.20 before 5.0."""
    major, minor = version
    if minor:
        return major, minor - 1
    last: int = table("kernel/linux")["last_minors"][str(major - 1)]
    return major - 1, last


def _leading(version: str) -> Version | None:
    # uname -r: "6.18.44-fc-v595", "5.10.0-46-cloud-amd64", "4.19-rc2"; users write "5.10" or
    # "v5.10".
    major, _, rest = version.removeprefix("v").partition(".")
    minor = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    for part in (major, minor):
        if not (0 < len(part) <= _DIGITS and part.isascii() and part.isdecimal()):
            return None
    return int(major), int(minor)


def parse_version(version: str) -> Version:
    """The two numbers of ``A.B``."""
    major, minor = version.split(".")
    return int(major), int(minor)


def _parse_both(versions: list[str]) -> tuple[Version, Version]:
    first, last = versions
    return parse_version(first), parse_version(last)


def _step(steps: list[tuple[str, int]], version: Version) -> Any:
    # Steps stand in rising order; the last one that is not newer than the version holds.
    value = None
    for first, of_first in steps:
        if parse_version(first) <= version:
            value = of_first
    return value


# Rules by group and name, read when first asked for: a compile asks for four of sixty.
_RULES: dict[tuple[str, str], Rule] = {}


def _rule(group: str, name: str) -> Rule:
    if (group, name) not in _RULES:
        _RULES[group, name] = _read_rule(group, name)
    return _RULES[group, name]


def _read_rule(group: str, name: str) -> Rule:
    facts = table("kernel/linux")
    rule, families = facts[group].get(name), facts["kinds"]
    assert rule is not None, f"targets/kernel/linux.toml has no {name}"

    def kinds(key: str) -> tuple[str, ...]:
        return tuple([kind for name in rule.get(key, ()) for kind in families.get(name, [name])])

    return Rule(
        name,
        rule.get("written", name),
        parse_version(rule["first"]),
        kinds("kinds"),
        tuple(rule.get("on", ())),
        kinds("tolerated"),
        parse_version(rule["until"]) if "until" in rule else None,
        tuple([(kind, parse_version(first)) for kind, first in rule.get("firsts", {}).items()]),
        tuple(rule.get("not_at_return", ())),
        tuple(rule.get("typed", ())),
        parse_version(rule["by_type"]) if "by_type" in rule else None,
        _parse_both(rule["mangled"]) if "mangled" in rule else None,
        kinds("programs"),
    )
