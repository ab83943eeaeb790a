"""The format of ``corpus/**/*.case``: expressions with the exact answers they must get.

A file is a list of directives, one a line: a key padded to ten characters, then its value.
A value goes on in the lines below that are indented by ten blanks. A block starts with
``NAME`` and ends before the next one; directives above the first block hold for all blocks
that do not say otherwise. ``#`` at the start of a line begins a comment. Anything else is
an error.

    NAME      a sentence that states the rule shown, unique in the file
    BINARY    path of the traced file, from corpus/
    FUNCTION  name of the probed function, as --function takes it
    AT        as --at takes it
    RETURN    "yes": as --return
    KERNEL    version the answer is for; 6.1 where nothing is said, never the running one
    FORMAT    as --format takes it
    EXPR      an expression; one a line
    EXPECT    the whole standard output
    ERROR     the whole standard error output, warnings too

``pytest tests/golden --bless`` rewrites EXPECT and ERROR and leaves every other byte alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CORPUS", "Case", "CaseError", "all_cases", "blessed", "parse"]

CORPUS = Path(__file__).parents[2] / "corpus"

KEYS = {"BINARY", "FUNCTION", "AT", "RETURN", "KERNEL", "FORMAT", "EXPR"}
EXPECTATIONS = ("EXPECT", "ERROR")
_COLUMN = 10  # where values start


class CaseError(Exception):
    """A case file does not follow the format: says the file and line."""


@dataclass(frozen=True)
class Directive:
    """A key and its lines of text; ``start`` and ``end`` are line indices in the file."""

    key: str
    value: tuple[str, ...]
    start: int
    end: int

    @property
    def text(self) -> str:
        return "\n".join(self.value)


@dataclass(frozen=True)
class Case:
    """One block, completed by the file's common directives; absent expectations are empty."""

    path: Path
    index: int
    name: str
    binary: str
    function: str | None
    at: str | None
    returns: bool
    kernel: str
    format: str | None
    expressions: tuple[str, ...]
    expect: str
    error: str

    def arguments(self) -> list[str]:
        """Arguments of ``fetchc`` that put the question, to be run in :data:`CORPUS`."""
        words = ["compile", "--binary", self.binary, "--kernel", self.kernel]
        words += [f"--function={self.function}"] if self.function is not None else []
        words += [f"--at={self.at}"] if self.at is not None else []
        words += ["--return"] if self.returns else []
        words += [f"--format={self.format}"] if self.format is not None else []
        if self.format == "bpftrace":  # whichever this machine has
            words += ["--bpftrace-version=0.27"]
        # A positional argument may not start with a dash.
        return words + [f"--expr={text}" if text[:1] == "-" else text for text in self.expressions]

    @property
    def status(self) -> int:
        """The exit status that the expected diagnostics call for.

        A file that could not be read has no place in the expression; a name that such
        a file does not know has one.
        """
        if re.search(r"^error\[FC09\d\d\].*$(?!\n  -->)", self.error, re.MULTILINE):
            return 3
        return 1 if re.search(r"^error\[", self.error, re.MULTILINE) else 0


def all_cases() -> list[Case]:
    """Every case of the corpus, in the order of paths and lines."""
    return [case for path in sorted(CORPUS.rglob("*.case")) for case in parse(path)]


def parse(path: Path) -> list[Case]:
    """The cases of one file.

    Raises:
        CaseError: unknown or doubled key, missing key, doubled name, stray text.
    """
    common, blocks = _blocks(path, path.read_text().split("\n"))
    names: set[str] = set()
    cases = []
    for index, block in enumerate(blocks):
        values = common | block
        name = values["NAME"].text
        where = f"{path}:{block['NAME'].start + 1}"
        if name in names:
            raise CaseError(f"{where}: a second case of that name")
        names.add(name)
        for key in ("BINARY", "EXPR"):
            if key not in values:
                raise CaseError(f"{where}: no {key}")
        texts = {key: directive.text for key, directive in values.items()}
        if texts.get("RETURN", "yes") != "yes":
            raise CaseError(f"{where}: RETURN takes only yes")
        cases.append(
            Case(
                path=path,
                index=index,
                name=name,
                binary=texts["BINARY"],
                function=texts.get("FUNCTION"),
                at=texts.get("AT"),
                returns="RETURN" in texts,
                kernel=texts.get("KERNEL", "6.1"),
                format=texts.get("FORMAT"),
                expressions=values["EXPR"].value,
                expect=texts.get("EXPECT", ""),
                error=texts.get("ERROR", ""),
            )
        )
    return cases


def blessed(text: str, index: int, expect: str, error: str) -> str:
    """``text`` of a case file with the expectations of block ``index`` replaced."""
    lines = text.split("\n")
    _, blocks = _blocks(Path("case file"), lines)
    block = blocks[index]
    new = [
        line
        for key, value in zip(EXPECTATIONS, (expect, error), strict=True)
        if value
        for line in _written(key, value)
    ]
    old = [block[key] for key in EXPECTATIONS if key in block]
    place = min((it.start for it in old), default=max(it.end for it in block.values()))
    gone = {line for it in old for line in range(it.start, it.end)}
    before = [line for number, line in enumerate(lines[:place]) if number not in gone]
    after = [line for number, line in enumerate(lines) if number >= place and number not in gone]
    return "\n".join(before + new + after)


def _written(key: str, value: str) -> Iterator[str]:
    for number, line in enumerate(value.split("\n")):
        yield f"{key if number == 0 else '':<{_COLUMN}}{line}".rstrip()


def _blocks(
    path: Path, lines: list[str]
) -> tuple[dict[str, Directive], list[dict[str, Directive]]]:
    # The common directives, and those of each block.
    common: dict[str, Directive] = {}
    blocks: list[dict[str, Directive]] = []
    for directive in _directives(path, lines):
        where = f"{path}:{directive.start + 1}"
        if directive.key == "NAME":
            blocks.append({})
        elif directive.key in EXPECTATIONS and not blocks:
            raise CaseError(f"{where}: {directive.key} before the first NAME")
        elif directive.key not in KEYS and directive.key not in EXPECTATIONS:
            raise CaseError(f"{where}: unknown key {directive.key}")
        target = blocks[-1] if blocks else common
        if directive.key in target:
            raise CaseError(f"{where}: a second {directive.key}")
        target[directive.key] = directive
    return common, blocks


def _directives(path: Path, lines: list[str]) -> Iterator[Directive]:
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line or line.startswith("#"):
            continue
        key, value = line[:_COLUMN].rstrip(), line[_COLUMN:]
        if not key or " " in key or not value:
            raise CaseError(f"{path}:{number}: neither a directive nor a comment")
        start, values = number - 1, [value]
        while (end := _continuation(lines, number)) is not None:
            values += [it[_COLUMN:] for it in lines[number:end]]
            number = end
        yield Directive(key, tuple(values), start, number)


def _continuation(lines: list[str], number: int) -> int | None:
    # The end of the next indented line, with the empty lines before it; they belong to it.
    while number < len(lines) and not lines[number]:
        number += 1
    indented = number < len(lines) and lines[number].startswith(" " * _COLUMN)
    return number + 1 if indented else None
