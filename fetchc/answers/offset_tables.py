"""Tables over many binaries side by side, with what differs: of offsets, of parameters' places."""

from __future__ import annotations

import gc

from fetchc import __version__
from fetchc.answers.json_documents import diagnostic_document, value_document
from fetchc.api.library import Program
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.driver.visible_variables import ParameterPlace
from fetchc.program.cpp_names import spelling_key
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fetchc.debuginfo.environment import Environment
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.driver.type_layouts import Offset

    Found = Offset | ParameterPlace

__all__ = ["Compared", "Table", "agreeing", "compare", "table_document"]

_OFFSET = ("offset", "bits", "size")  # what may differ between two binaries, besides the type
_PARAMETER = ("pieces", "size", "reason")


class Compared(Record):
    """One field or parameter: where it is in each binary, None where it is not, and what differs.

    ``differs`` has ``found`` where some of the binaries lack it, and those of ``offset``, ``bits``,
    ``size`` and ``type`` (of parameters ``pieces``, ``size``, ``reason`` and ``type``) that are not
    the same in all the others.
    """

    field: str
    found: tuple[Found | None, ...]
    differs: tuple[str, ...]


class Table(Record):
    """``binaries`` are path, build-id and architecture of each, ``diagnostics`` what could not be
    answered: of a binary, about one of the questions, or (empty) about the file. ``parameters``:
    the rows are of parameters.
    """

    parameters: bool
    binaries: tuple[tuple[str, str | None, str | None], ...]
    rows: tuple[Compared, ...]
    diagnostics: tuple[tuple[str, str, Diagnostic], ...]


def compare(
    texts: Sequence[str],
    paths: Sequence[str],
    references: Sequence[str] = (),
    debug_dirs: Sequence[str] = (),
    environment: Environment = DEFAULT,
    parameters: bool = False,
) -> Table:
    """Look ``texts`` (``TYPE`` or ``TYPE.FIELD``) up in every file of ``paths``.

    With ``parameters`` these are functions, or globs, and the table has their parameters.

    What is not available in one file is reported, and does not hide the results of the others.
    """
    binaries: list[tuple[str, str | None, str | None]] = []
    diagnostics: list[tuple[str, str, Diagnostic]] = []
    answers: list[list[dict[str, Found]]] = []  # of each binary, of each text
    for path in paths:
        try:
            program = Program(path, references, None, debug_dirs, environment=environment)
        except DebugInfoError as unreadable:
            diagnostics.append((path, "", unreadable.diagnostic))
            binaries.append((path, None, None))
            answers.append([{} for _ in texts])
            continue
        binaries.append((path, program.build_id, program.architecture))
        answers.append([_asked(program, text, parameters, diagnostics) for text in texts])
        del program
        gc.collect()  # it is cycles, which are in memory until they are found
    rows = []
    for number in range(len(texts)):
        of_each = [one[number] for one in answers]
        fields = dict.fromkeys(field for table in of_each for field in table)
        for field in fields:
            found = tuple([table.get(field) for table in of_each])
            rows.append(Compared(field, found, _differs(found, parameters)))
    return Table(parameters, tuple(binaries), tuple(rows), tuple(diagnostics))


def _asked(
    program: Program,
    text: str,
    parameters: bool,
    diagnostics: list[tuple[str, str, Diagnostic]],
) -> dict[str, Found]:
    found: dict[str, Found] = {}
    # Functions by the names that people write: each is that of one.
    names = program.spelled(program.functions(text)) if parameters else []
    for name in names or [text]:
        try:
            rows = _parameters(program, name, diagnostics) if parameters else program.offsets(name)
            found |= {row.field: row for row in rows}
        except CompileError as refusal:
            if len(names) < 2 or refusal.reason != "no debug information":
                diagnostics += [(program.path, name, each) for each in refusal.diagnostics]
        except DebugInfoError as unreadable:
            diagnostics.append((program.path, name, unreadable.diagnostic))
    return found


def _parameters(
    program: Program, name: str, diagnostics: list[tuple[str, str, Diagnostic]]
) -> list[ParameterPlace]:
    found = [each.replaced(function=name) for each in program.probe(name).parameters()]
    for each in found:
        if each.warning is not None:
            diagnostics.append((program.path, each.name, each.warning))
    return found


def _differs(found: Sequence[Found | None], parameters: bool) -> tuple[str, ...]:
    present = [one for one in found if one is not None]
    differing = [] if len(present) == len(found) else ["found"]
    for what in _PARAMETER if parameters else _OFFSET:
        if len({getattr(one, what) for one in present}) > 1:
            differing.append(what)
    if len({spelling_key(one.type) for one in present}) > 1:
        differing.append("type")
    return tuple(differing)


def agreeing(table: Table, row: Compared) -> list[tuple[Found | None, list[str]]]:
    """The binaries that have one answer, together, in the order of the first of each."""
    compared = _PARAMETER if table.parameters else _OFFSET
    groups: dict[object, tuple[Found | None, list[str]]] = {}
    for (path, _, _), one in zip(table.binaries, row.found, strict=True):
        key = one and (spelling_key(one.type), *[getattr(one, what) for what in compared])
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
        "parameters" if table.parameters else "offsets": [_row(row) for row in table.rows],
        "diagnostics": [
            {"binary": path} | diagnostic_document(each, text or None)
            for path, text, each in table.diagnostics
        ],
    }


def _row(row: Compared) -> dict[str, Any]:
    found = [None if one is None else _object(one) for one in row.found]
    named = {"field": row.field}
    for one in row.found:
        if isinstance(one, ParameterPlace):
            named = {"function": one.function, "parameter": one.name}
    return {**named, "differs": list(row.differs), "found": found}


def _object(one: Found) -> dict[str, Any]:
    if isinstance(one, ParameterPlace):
        pieces = [
            {"offset": each.offset, "size": each.size, **value_document(each.value, one.word_bytes)}
            for each in one.pieces
        ]
        return {"type": one.type, "size": one.size, "pieces": pieces, "reason": one.reason}
    return {
        "offset": one.offset,
        "size": one.size,
        "type": one.type,
        "bit_offset": None if one.bits is None else one.bits.offset,
        "bit_width": None if one.bits is None else one.bits.width,
    }
