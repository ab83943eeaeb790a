"""``fetchc check``: definitions that somebody wrote against the rules of every kernel.

A definition is a whole line of ``uprobe_events``, ``kprobe_events`` or ``dynamic_events``, or one
fetch-arg of a uprobe. The rules are those that
``compile`` holds its own output to (:mod:`fetchc.ir.fetch_rules`, :mod:`fetchc.emit.probe_definition`).
"""

from __future__ import annotations

from functools import cache

from fetchc.diag.diagnostic import CompileError, Diagnostic, Label
from fetchc.driver.written.fetching import ReadFetch
from fetchc.driver.written.lines import ReadLine
from fetchc.ir.fetch import ReturnValue
from fetchc.record import Record
from fetchc.syntax.definition_parser import is_definition
from fetchc.syntax.fetcharg_parser import read_fetch
from fetchc.target.kernel_versions import dotted, kernel, previous, turns
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.target.kernel_versions import Kernel, Version

__all__ = ["Checked", "check_definition"]

_MACHINE = "x86_64"  # whose registers a definition can name: the one machine with live tests


class Checked(Record):
    """The verdict on one definition.

    ``kind`` is uprobe, uretprobe, kprobe, kretprobe, fprobe, fexit, tprobe or eprobe, of a lone
    fetch-arg the one of the first two that takes it. ``problems``
    are the chosen kernel's, ``ranges`` the versions that accept the definition, first and
    last, None where the newest known one does.
    """

    text: str
    kind: str
    problems: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    ranges: tuple[tuple[str, str | None], ...]


def check_definition(text: str, rules: Kernel, machine: str = _MACHINE) -> Checked:
    """The verdict of ``rules`` on ``text``, and the versions that accept it.

    ``machine`` is the architecture whose registers it can name.

    The file of a whole line is looked at where it is there: a warning says what is not known
    of the probed address. What is certain to break the program is a problem.
    """
    checked, path = _checked(text, rules, machine)
    if not checked.problems:
        return checked
    from fetchc.driver.written.hints import hinted

    problems = hinted(checked.problems, text, machine, path)
    return Checked(text, checked.kind, problems, checked.warnings, checked.ranges)


def _checked(text: str, rules: Kernel, machine: str) -> tuple[Checked, str | None]:
    # The verdict, and the probed file of a line that names one.
    registers = architecture(machine).named
    try:
        if is_definition(text):
            line = ReadLine(text)
        else:
            return _fetch(text, rules, registers), None
    except CompileError as refused:
        return Checked(text, "uprobe", refused.diagnostics, (), ()), None
    problems = tuple(line.problems_for(rules, registers))
    accepted = [not line.problems_for(each, registers) for each in _kernels()]
    if line.path is None or line.offset is None:
        kind = line.kind.removesuffix("_inside")
        warnings = () if problems else _unknown(line, rules)
        return Checked(text, kind, problems, warnings, _ranges(accepted)), line.path
    from fetchc.driver.written.spots import harmful, look, nop_at

    broken, warnings = look(line.path, line.offset, line.path_place, line.place)
    ranges = _ranges(accepted)
    if nop := nop_at(line.path, line.offset, machine):
        harmed = [each.replaced_nop(machine) == nop for each in _kernels()]
        ranges = _ranges([good and not harm for good, harm in zip(accepted, harmed, strict=True)])
        if rules.replaced_nop(machine) == nop:
            problems += (harmful(rules, nop, line.offset, line.place),)
    made = Checked(text, line.kind, problems + broken, warnings, () if broken else ranges)
    return made, line.path


@cache
def _kernels() -> tuple[Kernel, ...]:
    # The rules of every version that changes some, made once for many definitions.
    return tuple([kernel(dotted(turn)) for turn in turns()])


def _unknown(line: ReadLine, rules: Kernel) -> tuple[Diagnostic, ...]:
    if not line.unknown:
        return ()
    notes = [f"not checked: {', '.join(dict.fromkeys(line.unknown))}"]
    mangled = rules.base("event_text_pointer").mangled
    if mangled is not None and mangled[0] <= rules.version <= mangled[1]:
        notes += [
            f"Linux {rules.name} reads one byte of `{field}` if it points to characters"
            for field in dict.fromkeys(line.followed_fields())
        ]
    return (
        Diagnostic(
            "FC0606",
            "only the kernel itself knows what this names",
            Label(line.place, "not checked"),
            notes=tuple(notes),
        ),
    )


def _fetch(text: str, rules: Kernel, registers: Container[str]) -> Checked:
    read = ReadFetch(read_fetch(text))
    kind = "uretprobe" if isinstance(read.base, ReturnValue) else "uprobe"

    def problems(version: Kernel) -> list[Diagnostic]:
        return read.name_problems(version) + read.problems_for(version, kind, registers)

    accepted = [not problems(each) for each in _kernels()]
    return Checked(text, kind, tuple(problems(rules)), (), _ranges(accepted))


def _ranges(accepted: list[bool]) -> tuple[tuple[str, str | None], ...]:
    # Neighbouring turns with the same verdict are one range.
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
