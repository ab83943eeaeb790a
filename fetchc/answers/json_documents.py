"""The JSON forms of docs/interface.md."""

from __future__ import annotations

from fetchc import __version__
from fetchc.answers.question import by_probe
from fetchc.diag.diagnostic import shortened
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    ThreadPointer,
    Walk,
    Word,
    chain,
)
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fetchc.answers.question import Outcome
    from fetchc.api.library import Program
    from fetchc.api.probe import Argument, Probe
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.driver.check_definitions import Checked
    from fetchc.driver.explain_fetch import Explained
    from fetchc.ir.fetch import Decode, Fetch, Store, Value

__all__ = [
    "chain_document",
    "decode",
    "diagnostic_document",
    "document",
    "explanation",
    "refused",
    "value_document",
    "verdicts",
]


def document(
    program: Program,
    kernel: str,
    shared: Probe | None,
    outcomes: list[Outcome],
) -> dict[str, Any]:
    """What ``compile --format json`` prints."""
    groups = by_probe(outcomes)
    diagnostics = [] if shared is None else [diagnostic_document(d, None) for d in shared.warnings]
    for outcome in outcomes:
        diagnostics += [diagnostic_document(d, outcome.text) for d in outcome.diagnostics]
    language = ""
    for probe in [p for p, _ in groups] or ([shared] if shared else []):
        if probe.function is not None:
            language = probe.function.language
    return {
        "fetchc": __version__,
        "binary": program.path,
        "build_id": program.build_id,
        "arch": program.architecture,
        "language": language,
        "kernel": _plain(kernel),
        "probes": [_probe(*one) for probe, arguments in groups for one in probe.each(arguments)],
        "diagnostics": diagnostics,
    }


def refused(binary: str | None, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """The same keys for a question that has no answer: to no probe, or to no file."""
    return {
        "fetchc": __version__,
        "binary": binary,
        "build_id": None,
        "arch": None,
        "language": "",
        "kernel": None,
        "probes": [],
        "diagnostics": [diagnostic_document(each, None) for each in diagnostics],
    }


def _probe(probe: Probe, arguments: Sequence[Argument]) -> dict[str, Any]:
    function = probe.function
    return {
        "function": None if function is None else function.name,
        "kind": probe.kind,
        "address": None if probe.in_kernel else probe.address,
        "offset": None if probe.in_memory else probe.offset,
        "source": probe.source,
        "definition": None if probe.in_memory else probe.definition(arguments),
        "args": [
            {
                "name": each.name,
                "expression": each.text,
                "fetcharg": each.part.body,
                "chain": chain_document(each.part.fetch, probe.word_bytes),
                "type": each.part.type,
                "decode": decode(each.part.decode, each.length),
                "companion_of": each.companion_of,
            }
            for each in probe.named(arguments)
        ],
    }


def chain_document(fetched: Fetch, word_bytes: int) -> dict[str, Any]:
    """A fetch as data: what it begins at, the loads that follow, and what is stored of the last."""
    return {**value_document(fetched.value, word_bytes), "store": _store(fetched.store)}


def value_document(value: Value, word_bytes: int) -> dict[str, Any]:
    """What a value begins at, and the loads that follow."""
    base, loads = chain(value, word_bytes)
    begin: dict[str, Any]
    match base:
        case Register(name):
            begin = {"kind": "register", "name": name}
        case StackPointer() | StackEntry():
            begin = {"kind": "stack_pointer"}
        case ReturnValue():
            begin = {"kind": "return_value"}
        case Comm():
            begin = {"kind": "comm"}
        case Immediate(constant):
            begin = {"kind": "constant", "value": constant}
        case Absolute(address):
            begin = {"kind": "address", "value": address}
        case Image(offset):
            begin = {"kind": "image", "offset": offset}
        case KernelValue(_, text):
            begin = {"kind": "kernel", "text": text}
        case Deref() | ElementAddress() | ThreadPointer() | Cursor() | Walk() | Contents():
            raise AssertionError("a load below the innermost value")
        case _:
            assert_never(base)
    steps = [{"offset": one.offset} | ({"user": True} if one.user else {}) for one in loads]
    return {"base": begin, "loads": steps}


def _store(store: Store) -> dict[str, Any]:
    match store:
        case Word():
            return {"kind": "word"}
        case Scalar(kind, bits):
            return {
                "kind": {"u": "unsigned", "s": "signed", "x": "hexadecimal"}[kind],
                "bits": bits,
            }
        case Char():
            return {"kind": "char", "bits": 8}
        case Bits(width, offset, container):
            return {"kind": "bit_field", "bits": width, "shift": offset, "container": container}
        case Text(user):
            return {"kind": "string"} | ({"user": True} if user else {})
        case Symbol():
            return {"kind": "symbol"}
        case Array(element, count):
            return _store(element) | {"count": count}
        case _:
            assert_never(store)


def decode(decoding: Decode, length: str | None = None) -> dict[str, Any]:
    """What a reader has to do with the fetched value."""
    shown: dict[str, Any] = {"kind": decoding.kind}
    if decoding.bits is not None:
        shown["bits"] = decoding.bits
        shown["signed"] = decoding.signed
    if decoding.count is not None:
        shown["count"] = decoding.count
    if decoding.enumerators:
        shown["enumerators"] = dict(decoding.enumerators)
    if decoding.otherwise:
        shown["otherwise"] = decoding.otherwise
    if decoding.flags:
        shown["flags"] = True
    if decoding.limit is not None:
        shown["limit"] = decoding.limit
    if length is not None:
        shown["length"] = length
    return shown


def explanation(program: Program, kernel: str, explained: Explained) -> dict[str, Any]:
    """What ``explain --format json`` prints of an expression or a fetch-arg."""
    found = explained.found
    function = found.site.function
    return {
        "fetchc": __version__,
        "binary": program.path,
        "kernel": _plain(kernel),
        "expression": explained.text,
        "type": explained.type,
        "function": None if function is None else function.name,
        "kind": found.kind,
        "address": None if found.site.program.in_kernel else found.site.address,
        "fetches": [
            {
                "name": fetch_steps.name or None,
                "fetcharg": fetch_steps.fetcharg,
                "hops": [
                    {
                        "fetcharg": hop.fetcharg,
                        "kernel": hop.kernel,
                        "expression": hop.expression,
                        "type": hop.type,
                    }
                    for hop in fetch_steps.hops
                ],
                "unknown": fetch_steps.unknown,
                "result": fetch_steps.result,
                "decode": None if fetch_steps.decode is None else decode(fetch_steps.decode),
            }
            for fetch_steps in explained.fetches
        ],
        "diagnostics": [
            *[diagnostic_document(each, None) for each in found.warnings],
            *[diagnostic_document(each, explained.text) for each in explained.warnings],
        ],
    }


def verdicts(checked: list[Checked], kernel: str) -> dict[str, Any]:
    """What ``check --format json`` prints."""
    return {
        "fetchc": __version__,
        "kernel": kernel,
        "definitions": [
            {
                "definition": each.text,
                "probe": each.kind,
                "accepted": not each.problems,
                "versions": [list(span) for span in each.ranges],
                "diagnostics": [
                    diagnostic_document(d, each.text) for d in each.problems + each.warnings
                ],
            }
            for each in checked
        ],
    }


def diagnostic_document(diagnostic: Diagnostic, expression: str | None) -> dict[str, Any]:
    """A diagnostic as JSON; ``span`` counts characters of the expression."""
    diagnostic = shortened(diagnostic)
    primary = diagnostic.primary
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "expression": expression,
        "span": None if primary is None else [primary.span.start, primary.span.end],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
    }


def _plain(kernel: str) -> str:
    # 6.18 for v6.18.44-amd64.
    return ".".join(kernel.lstrip("v").split(".")[:2])
