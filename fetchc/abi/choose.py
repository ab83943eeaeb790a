"""Which convention a function follows: by its language, its compiler and its symbol."""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.target.conventions import convention, convention_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fetchc.program.model import Function
    from fetchc.program.protocol import Program
    from fetchc.source import Span
    from fetchc.target.model import Convention

__all__ = ["convention_for", "go_version"]

# "Go cmd/compile go1.22.10; regabi", "Go cmd/compile go1.4"; development versions name the
# release they lead to: "devel go1.23-abcdef".
_GO = "go"
_LONGEST_NUMBER = 6
# Constants of the tables, made when first asked for: each takes longer than a whole expression.
_BUILT: dict[str, Convention] = {}


def convention_for(program: Program, function: Function, span: Span | None = None) -> Convention:
    """The convention of ``function``, the most particular file of ``targets/abi`` that applies.

    Raises CompileError FC0905 where none does (Rust promises none), with the place that asks.
    """
    best: str | None = None
    weight = -1
    for name, raw in convention_tables(program.architecture).items():
        conditions = raw["applies"]
        if _applies(conditions, program, function):
            found = len(conditions)  # each further condition is more particular
            if found > weight:
                best, weight = name, found
    if best is None:
        language = function.language or "this language"
        if language.isdecimal():
            language = f"language {int(language):#x} of DWARF"
        raise reject(
            "FC0905",
            f"no calling convention is known for {language} on {program.architecture}",
            span,
            "" if span is None else "where it puts this",
            help="fetch a register by its name, or probe where the value is in memory",
        )
    if best not in _BUILT:
        _BUILT[best] = convention(best)
    return _BUILT[best]


def go_version(producer: str) -> tuple[int, int] | None:
    """(1, 22) of ``Go cmd/compile go1.22.10; regabi``; None of any other producer."""
    if not producer.startswith("Go "):
        return None
    for word in producer.split():
        major, dot, rest = word.removeprefix(_GO).partition(".")
        minor = _leading_digits(rest)
        if dot and word.startswith(_GO) and major == _leading_digits(major) != "" != minor:
            return int(major), int(minor)
    return None


def _leading_digits(text: str) -> str:
    return text[: len(text) - len(text.lstrip("0123456789"))][:_LONGEST_NUMBER]


def _applies(conditions: Mapping[str, Any], program: Program, function: Function) -> bool:
    if function.language not in conditions["languages"]:
        return False
    if not conditions.get("kernels", True) and program.in_kernel:
        return False
    mask, flags = conditions.get("machine_flags", (0, 0))
    if mask and program.machine_flags & mask != flags:
        return False
    wanted = conditions.get("producer")
    if wanted is not None:
        _, found, behind = function.producer.partition(wanted)
        if not found:
            return False
        limit = conditions.get("before_version")
        if limit is not None:
            digits = _leading_digits(behind)
            # A clang without a number is not known to be old: it follows the psABI.
            if not digits or int(digits) >= limit:
                return False
    suffix = conditions.get("not_symbol_suffix")
    return suffix is None or not function.symbol.endswith(suffix)
