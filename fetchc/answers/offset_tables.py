"""Tables of offsets over many binaries side by side, with what differs."""

from __future__ import annotations

import gc

from fetchc import __version__
from fetchc.answers.json_documents import diagnostic_document
from fetchc.api.library import Program
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.program.cpp_names import spelling_key
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fetchc.debuginfo.environment import Environment
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.driver.type_layouts import Offset

__all__ = ["Compared", "Table", "agreeing", "compare", "table_document"]


class Compared(Record):
    """One field: where it is in each binary, None where it is not; what differs between those.

    ``differs`` has ``found`` where some of the binaries lack it, and those of ``offset``, ``bits``,
    ``size`` and ``type`` that are not the same in all the others.
    """

    field: str
    found: tuple[Offset | None, ...]
    differs: tuple[str, ...]


class Table(Record):
    """``binaries`` are path, build-id and architecture of each, ``diagnostics`` what could not be
    answered: of a binary, about one of the questions, or (empty) about the file.
    """

    binaries: tuple[tuple[str, str | None, str | None], ...]
    rows: tuple[Compared, ...]
    diagnostics: tuple[tuple[str, str, Diagnostic], ...]


def compare(
    texts: Sequence[str],
    paths: Sequence[str],
    references: Sequence[str] = (),
    debug_dirs: Sequence[str] = (),
    environment: Environment = DEFAULT,
) -> Table:
    """Look ``texts`` (``TYPE`` or ``TYPE.FIELD``) up in every file of ``paths``.

    What is not available in one file is reported, and does not hide the results of the others.
    """
    binaries: list[tuple[str, str | None, str | None]] = []
    diagnostics: list[tuple[str, str, Diagnostic]] = []
    answers: list[list[dict[str, Offset]]] = []  # of each binary, of each text
    for path in paths:
        try:
            program = Program(path, references, None, debug_dirs, environment=environment)
        except DebugInfoError as unreadable:
            diagnostics.append((path, "", unreadable.diagnostic))
            binaries.append((path, None, None))
            answers.append([{} for _ in texts])
            continue
        binaries.append((path, program.build_id, program.architecture))
        answers.append([_asked(program, text, diagnostics) for text in texts])
        del program
        gc.collect()  # it is cycles, which are in memory until they are found
    rows = []
    for number in range(len(texts)):
        of_each = [one[number] for one in answers]
        fields = dict.fromkeys(field for table in of_each for field in table)
        for field in fields:
            found = tuple([table.get(field) for table in of_each])
            rows.append(Compared(field, found, _differs(found)))
    return Table(tuple(binaries), tuple(rows), tuple(diagnostics))


def _asked(
    program: Program, text: str, diagnostics: list[tuple[str, str, Diagnostic]]
) -> dict[str, Offset]:
    try:
        return {row.field: row for row in program.offsets(text)}
    except CompileError as refusal:
        diagnostics += [(program.path, text, each) for each in refusal.diagnostics]
    except DebugInfoError as unreadable:
        diagnostics.append((program.path, text, unreadable.diagnostic))
    return {}


def _differs(found: Sequence[Offset | None]) -> tuple[str, ...]:
    present = [one for one in found if one is not None]
    differing = [] if len(present) == len(found) else ["found"]
    for what in ("offset", "bits", "size"):
        if len({getattr(one, what) for one in present}) > 1:
            differing.append(what)
    if len({spelling_key(one.type) for one in present}) > 1:
        differing.append("type")
    return tuple(differing)


def agreeing(table: Table, row: Compared) -> list[tuple[Offset | None, list[str]]]:
    """The binaries that have one answer, together, in the order of the first of each."""
    groups: dict[object, tuple[Offset | None, list[str]]] = {}
    for (path, _, _), one in zip(table.binaries, row.found, strict=True):
        key = None if one is None else (one.offset, one.bits, one.size, spelling_key(one.type))
        groups.setdefault(key, (one, []))[1].append(path)
    return list(groups.values())


def table_document(table: Table) -> dict[str, Any]:
    """The table as JSON; ``found`` has an object or null for each of ``binaries``."""
    return {
        "fetchc": __version__,
        "binaries": [
            {"binary": path, "build_id": build_id, "arch": machine}
            for path, build_id, machine in table.binaries
        ],
        "offsets": [
            {
                "field": row.field,
                "differs": list(row.differs),
                "found": [None if one is None else _object(one) for one in row.found],
            }
            for row in table.rows
        ],
        "diagnostics": [
            {"binary": path} | diagnostic_document(each, text or None)
            for path, text, each in table.diagnostics
        ],
    }


def _object(one: Offset) -> dict[str, Any]:
    return {
        "offset": one.offset,
        "size": one.size,
        "type": one.type,
        "bit_offset": None if one.bits is None else one.bits.offset,
        "bit_width": None if one.bits is None else one.bits.width,
    }
