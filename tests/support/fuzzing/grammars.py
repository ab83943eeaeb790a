"""Texts drawn from the grammars: every option that takes a string gets what its grammar can say.

A derivation of ``grammar/*.lark`` at random, of which now and then a word is left out, doubled,
or replaced by one of another grammar. ``python -m tests.support.fuzzing.grammars MINUTES SEED``
goes on for longer.
"""

from __future__ import annotations

import io
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.lexer import PatternStr

from fetchc.cli import parse
from fetchc.cli.option_table import COMMANDS, OPTIONS
from fetchc.cli.trace_request import Refused, Usage, request
from tests.support.fuzzing.asking import ask, fault
from tests.support.programs import CORPUS

__all__ = ["FILES", "TEXTS", "drawn", "found", "unlike"]

GRAMMARS = Path(__file__).parents[3] / "grammar"
STARTS = {"expression": "argument", "definition": "definition", "fetcharg": "argument",
          "point": "point", "usdt": "argument"}  # fmt: skip
DEEP = 7  # rules within each other, from where on the shortest way out is taken
# What a terminal that is a pattern can stand for; names are those of the programs below.
NAMES = ("r", "depth", "i", "name", "text", "list", "self", "head", "next", "label", "words", "n",
         "std::string", "main.Msg", "é", "a.b", "this", "struct", "x" * 300)  # fmt: skip
NUMBERS = ("0", "1", "7", "0x10", "017", "1_0", "9" * 30, "0b1", "3u", "0x")
TERMINALS: dict[str, tuple[str, ...]] = {
    "_CLOSE": (">",), "_NULLABLE": ("?",), "_OPEN": ("<",), "_REFERENCE": ("&",),
    "ADDRESS": ("0x47e0", "0x0", "0xffffffffffffffff", "0xg"), "AS": (" as ",),
    "AT": ("@0x10", "@sym", "@+8", "@-0x8", "@"), "CALL": ("len(", "cap(", "std::get<0>(", "f("),
    "CAST_WORD": ("(int)", "(char)", "(unsigned)"), "CHAN": ("chan ",),
    "CHAN_RECEIVE": ("<-chan ",), "CHAN_SEND": ("chan<- ",), "CONTAINER_OF": ("container_of(",),
    "EMPTY": ("interface{}", "struct{}"), "EVENT": (":g/e", ":", ":g/"), "FILE": ("a.c", "main.go"),
    "FUNCTION": ("visit", "main.(*server).handleRequest", "operator+", "a::b(int)", "~S", "f*"),
    "AND": (" && ",), "AND_NOT": (" &^ ",), "EQUAL": (" == ", " != "), "MODULO": (" % ",),
    "NUMBER": ("1.5", "0.25f", "2e3", "1e999", "3." + "9" * 40), "OR": (" || ",),
    "ORDER": (" <= ", " >= "), "SHIFT_LEFT": (" << ",),
    "IMMEDIATE": (r"\1", r"\"text", "\\"), "INTEGER": NUMBERS, "KEYWORD": ("struct ", "union "),
    "LETTER": ("p", "r4", "f", "t", "e", "-", "p0"), "LINE": (":12", "@3", ":0"),
    "LOW": ("#:f:", ":low:"), "MAP": ("map",), "NAME": NAMES, "NAMED": ("v=", "=", "a-b="),
    "NAMED_CAST": ("static_cast", "const_cast"), "OFFSET": ("+0x1", "+9", "+" + "9" * 20),
    "OFFSETOF": ("offsetof(",), "OPEN": ("+8(", "-8(", "+u0(", "+("),
    "OTHER": ("(a)", "x", "(a)(b)"), "PART": ("%body", "%inline"),
    "PATH": ("a/b.C", "github.com/x/y.T"), "POINT": ("@ visit", "@ main.go:3", "@", "@ f%return"),
    "STRING": ('"key"', r'"\n\xff"', r'"\q"', '"é"'),
    "CHARACTER": ("'x'", r"'\x1b'", r"'\q'", "'é'"),
    "QUALIFIER": ("const ",), "QUOTED": ("'a.c'::x",), "RANK": ("[]", "[,]"),
    "REGISTER": ("%di", "%ax", "%xmm0", "%", "%é"), "RETURN": ("%return",), "SEGMENT": ("%fs:",),
    "SIGN": ("+", "-"), "SIZE": ("8@", "-4@", "4f@", "0@"), "SIZEOF": ("sizeof(",),
    "SPECIAL": ("$arg1", "$retval", "$comm", "$stack3", "$arg0", "$x"), "TAIL": ("x", "[3]"),
    "TYPE": (":u8", ":string", ":b3@2/8", ":x8[4]", ":"), "UNOPENED": ("+8", "-"),
    "VARIABLE": ("$arg1", "$", "$stack"), "WORD": ("a=+0(%di)", "x", "@:("),
    "WORDS": ("int", "unsigned"), "WS": (" ", "\t"),
}  # fmt: skip
FILTERS = ("==", "!=", "<", "<=", ">", ">=", "&", "~", "=", " in ")
CONSTANTS = ("1", "-1", '"a*"', r'"\x"', r'"\x41"', '"', "'q'", "true", "nil", "1e999", "0x", "RED",
             "1.5", r'"\""', "9" * 40, '"' + "*?" * 40 + '"')  # fmt: skip
PROGRAMS = ("c/layouts/bin/gcc-O2-dwarf5", "go/dnsforward/bin/go1.27", "cpp/addressbook/bin/g++-O0",
            "rust/requests/bin/rustc-O0", "dotnet/echo/bin/sample.dll",
            "go/stripped/bin/go1.22")  # fmt: skip
# By the attribute of an option, the grammar of its strings; "filter" is of this module.
TEXTS = {
    "expr": "expression", "histograms": "expression", "sums": "expression", "by": "expression",
    "linear": "expression", "count_by": "expression", "watched": "expression",
    "processes": "name",
    "filters": "filter", "function": "point", "functions": "point", "since": "point",
    "at": "point", "group": "name", "event": "name", "kernel": "name", "arch": "name",
    "seed": "name", "version": "name", "bpftrace_version": "name",
    "timeout": "name", "interval": "name",
}  # fmt: skip
# Those that name files or programs, or one of a few words, which test_command_lines.py draws.
FILES = frozenset(
    (
        "binary",
        "binaries",
        "references",
        "debug_file",
        "debug_dirs",
        "batch",
        "compilers",
        "gos",
        "rusts",
        "monos",
        "btf",
        "fields",
        "into",
        "verify",
        "output",
    )
)
OPERANDS = {
    "compile": "expression", "explain": "expression", "check": "definition", "functions": "point",
    "variables": "point", "types": "name", "offsets": "name", "trace": "expression",
}  # fmt: skip


@cache
def _grammar(name: str) -> tuple[dict[str, list[list[Any]]], dict[str, tuple[str, ...]]]:
    # The ways to expand each rule, and what each terminal can be.
    made = Lark.open(str(GRAMMARS / f"{name}.lark"), start=STARTS[name], parser="lalr")
    rules: dict[str, list[list[Any]]] = {}
    for rule in made.rules:
        rules.setdefault(rule.origin.name, []).append(list(rule.expansion))
    words: dict[str, tuple[str, ...]] = {}
    for terminal in made.terminals:
        plain = str(terminal.name).rpartition("__")[2]
        if isinstance(terminal.pattern, PatternStr):
            words[str(terminal.name)] = (terminal.pattern.value,)
        elif not terminal.name.startswith("__IGNORE"):
            words[str(terminal.name)] = TERMINALS[plain]
    return rules, words


@cache
def _least(name: str) -> dict[str, int]:
    # How many rules within each other a rule needs at least.
    rules, _ = _grammar(name)
    least = dict.fromkeys(rules, 1 << 20)
    for _ in rules:
        for rule, ways in rules.items():
            least[rule] = min(_depth(way, least) for way in ways)
    return least


def _depth(way: list[Any], least: dict[str, int]) -> int:
    return 1 + max([least.get(one.name, 0) for one in way if not one.is_term], default=0)


def _derived(source: random.Random, name: str, rule: str, depth: int) -> Iterator[str]:
    rules, words = _grammar(name)
    ways = rules[rule]
    if depth > DEEP or (depth > 1 and source.random() < 0.6):
        ways = [min(ways, key=lambda way: _depth(way, _least(name)))]
    for one in source.choice(ways):
        if one.is_term:
            # The first few are sound.
            known = words[one.name]
            yield source.choice(known[:4] if source.random() < 0.9 else known)
        else:
            yield from _derived(source, name, one.name, depth + 1)


def drawn(source: random.Random, grammar: str) -> str:
    """A string of that grammar, most often a sound one."""
    if grammar == "name":
        return source.choice(
            (*NAMES, *NUMBERS, "6.1", "arm64", "*", "main.*", "struct record.list")
        )
    if grammar == "filter":
        parts = [
            drawn(source, "expression") + source.choice(FILTERS) + source.choice(CONSTANTS)
            for _ in range(source.randrange(1, 4))
        ]
        return source.choice((" && ", " || ", " and ")).join(parts)
    words = list(_derived(source, grammar, STARTS[grammar], 0))
    kind = source.randrange(8)
    at = source.randrange(len(words)) if words else 0
    if kind == 0 and words:
        del words[at]
    elif kind == 1 and words:
        words[at:at] = [words[at]] * source.choice((1, 2, 100))
    elif kind == 2:
        other = source.choice(list(STARTS))
        words[at:at] = _derived(source, other, STARTS[other], DEEP - 3)
    elif kind == 3 and words:
        words[at] = source.choice(("", "\0", "\udcff", "é", " ", "\n", "\x1b[2J", words[at] * 50))
    return source.choice(("", "", " ")).join(words)


def unlike() -> set[str]:
    """Options that take a string of which nothing here is drawn."""
    texts = {one.attribute for one in OPTIONS.values() if one.metavar and not one.number}
    chosen = {one.attribute for one in OPTIONS.values() if one.choices}
    return texts - chosen - FILES - set(TEXTS)


def line(source: random.Random) -> list[str]:
    """A command with one text of a grammar at least."""
    name = source.choice(list(OPERANDS))
    command = COMMANDS[name]
    words = [name, "-x", source.choice(PROGRAMS)]
    for key in command.options:
        option = OPTIONS[key]
        wanted = option.attribute in ("function", "functions") or source.random() < 0.2
        if option.attribute in TEXTS and wanted:
            likely = option.attribute in ("function", "functions") and source.random() < 0.7
            text = "visit" if likely else drawn(source, TEXTS[option.attribute])
            words += [option.flags[-1], text]
        elif option.metavar is None and source.random() < 0.1:
            words.append(option.flags[-1])
    if name == "check":
        words = [name]
    kind = OPERANDS[name] if source.random() < 0.8 else "fetcharg"
    return [*words, *[drawn(source, kind) for _ in range(source.randrange(1, 3))]]


def found(seed: int, first: int, count: int) -> Iterator[tuple[list[str], str]]:
    """Command lines that are not answered properly, and what is wrong."""
    home = os.getcwd()
    os.chdir(CORPUS)
    try:
        for number in range(first, first + count):
            words = line(random.Random(f"{seed} {number}"))
            wrong = _traced(words) if words[0] == "trace" else fault(ask(words), words)
            # Where a string is refused before a file is read, an error names none.
            if wrong is not None and not re.match(r"no (place|word)", wrong):
                yield words, wrong
    finally:
        os.chdir(home)


def _traced(words: list[str]) -> str | None:
    # What a trace would ask for; nothing is installed.
    try:
        with redirect_stderr(io.StringIO()):
            options = parse(words)
        if not isinstance(options, int):
            request(options)
    except (Usage, Refused):
        return None
    except Exception as bug:  # noqa: BLE001 - that is what is looked for
        return f"{type(bug).__name__}: {bug}"
    return None


def main() -> int:
    """Draw until the minutes are over; 1 where something was found."""
    minutes, seed = float(sys.argv[1]), int(sys.argv[2])
    end, number, kinds = time.monotonic() + 60 * minutes, 0, set()
    while time.monotonic() < end:
        for words, wrong in found(seed, number, 20):
            if wrong not in kinds:
                kinds.add(wrong)
                print(wrong, words, flush=True)
        number += 20
    print(f"{number} lines with seed {seed}; {len(kinds)} kinds of finds")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
