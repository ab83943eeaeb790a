"""The corpus programs as tests see them: where the fixtures are, and what they print of themselves.

Every program prints, before each call, ``EVENT <function> {"<expression>": <value>, ...}`` with
the values the expressions have at the function's entry; ``<function>%return`` stands for its
return. So the program, not a table, says what is right.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.toolchains import ROOT

__all__ = ["CORPUS", "Call", "Value", "calls", "described", "expressions", "fixture", "fixtures"]

CORPUS = ROOT / "corpus"

Value = int | float | bool | str | list["Value"] | dict[str, "Value"] | None
"""A value as JSON has it; an enum is ``{"name": ..., "value": ...}``."""


@dataclass(frozen=True)
class Call:
    """One call of a function: what the program says its expressions were worth."""

    function: str
    values: dict[str, Value]


def fixture(name: str) -> Path:
    """The binary called ``go/dnsforward/go1.15`` and the like."""
    program, _, binary = name.rpartition("/")
    path = CORPUS / program / "bin" / binary
    if not path.exists():
        raise FileNotFoundError(f"{path}: corpus/build.py makes it")
    return path


def fixtures(program: str) -> list[str]:
    """Names of all fixtures of a program, such as ``c/layouts``, in order."""
    return sorted(f"{program}/{path.name}" for path in (CORPUS / program / "bin").iterdir())


def described() -> list[Path]:
    """All fixtures of the corpus that are ELF files with DWARF, in order.

    But for the small one that shows machines: it has too little of anything to be counted.
    """
    found = []
    for path in sorted(set(CORPUS.glob("*/*/bin/*")) - set(CORPUS.glob("c/machines/bin/*"))):
        content = path.read_bytes() if path.is_file() else b""
        if content.startswith(b"\x7fELF") and b"debug_info\0" in content:
            found.append(path)
    return found


def calls(output: str) -> list[Call]:
    """The calls that a program's output tells of, in order."""
    found = []
    for line in output.splitlines():
        word, function, values = line.split(" ", 2)
        if word != "EVENT":
            raise ValueError(f"not an event line: {line!r}")
        found.append(Call(function, json.loads(values)))
    return found


@cache
def expressions(name: str) -> dict[str, tuple[str, ...]]:
    """What a fixture prints: the expressions of each function, from a run without probes.

    Every call of a function must tell the same expressions.
    """
    run = subprocess.run(
        [fixture(name)], stdout=subprocess.PIPE, check=True, timeout=60, encoding="utf-8"
    )
    found: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for call in calls(run.stdout):
        found[call.function].add(tuple(call.values))
    return {function: printed for function, (printed,) in found.items()}
