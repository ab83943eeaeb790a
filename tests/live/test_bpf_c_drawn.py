"""Drawn programs: C for libbpf has the values that `trace --engine bpf` shows, or a known refusal.

``FETCHC_SEEDS=1000-1010`` draws others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from ctypes import c_float
from math import isnan
from pathlib import Path
from random import Random
from typing import Any

import pytest

import fetchc
from fetchc.conformance.c_comparison import layouts, signatures
from fetchc.conformance.c_programs import Build, build_c, c_source
from fetchc.emit.output_formats import written
from tests.live.reading import Unreadable, read
from tests.live.test_bpf_c_programs import of_events
from tests.live.traced import trace
from tests.support.libbpf_programs import compiled
from tests.support.seeds import seeds
from tests.support.toolchains import require
from tests.support.tools import Printed
from tests.support.tracefs import require_bpf

pytestmark = [pytest.mark.live, pytest.mark.long]

# Not to be moved: some numbers are parts of addresses.
BUILDS = [Build("gcc", ("-O1", "-no-pie")), Build("clang++", ("-O0", "-no-pie"), plus=True)]
COMPARED = ("integer", "bool", "text", "float")  # addresses differ from run to run
KNOWN = frozenset(
    ("FC0308", "FC0312", "FC0401", "FC0402", "FC0404", "FC0405", "FC0407", "FC0514", "FC0904")
)
"""Codes of refusals: what has no place, what does not fit, what the format cannot carry."""


def drawn(build: Build, seed: int, folder: Path) -> tuple[Path, dict[str, list[str]]]:
    """A program, and the expressions that each of its functions is asked."""
    random = Random(f"bpf-c/{seed}/{build}")
    families = [layouts(random, number, 24, plus=build.plus) for number in range(2)]
    families.append(signatures(random, 2, 12, build.plus))
    program = build_c(c_source(families), build, folder)
    asked = {
        f"probe_{probe.tag}": [one.text for one in probe.asked["entry"]]
        for _, probes in families
        for probe in probes
    }
    return program, {name: with_indices(texts) for name, texts in asked.items() if texts}


def with_indices(texts: list[str]) -> list[str]:
    """Each expression, and where it has a constant index also with one that varies."""
    found = [each for text in texts for each in (text, varying(text))]
    return list(dict.fromkeys(found))


def varying(text: str) -> str:
    """The same element, by an index that is computed when the program runs."""
    return re.sub(r"\[(\d+)\]", r"[(%sp & 0) + \1]", text, count=1)


def accepted(
    program: fetchc.Program, asked: dict[str, list[str]], refused: Counter[str]
) -> dict[str, tuple[fetchc.Probe, list[fetchc.Argument]]]:
    """What bpf-c takes of each function, up to its fault bits, and the codes of the others."""
    found = {}
    for function, texts in asked.items():
        probe, taken = program.probe(function), list[fetchc.Argument]()
        for text in texts:
            argument: fetchc.Argument | None = None
            try:
                argument = probe.compile(f"v{len(taken)}={text}", computes=True)
                probe.written("bpf-c", [argument])
            except fetchc.CompileError as error:
                refused[error.diagnostics[0].code] += 1
                continue
            taken.append(argument)
        if taken:
            found[function] = probe, taken[:24]
    return found


def asked_text(argument: fetchc.Argument) -> str:
    """An argument without the name that it has here."""
    return argument.text.partition("=")[2]


def values(
    probe: fetchc.Probe, arguments: Sequence[fetchc.Argument], hit: dict[str, str]
) -> dict[str, Any]:
    """Those of one hit that can be compared; None is a fault."""
    named, found = probe.named(arguments), {}
    for argument in arguments:
        own = [one for one in named if one.text == argument.text]
        decode = own[0].computed[1] if own[0].computed is not None else own[0].part.decode
        whole = [one for one in own if one.companion_of is None]
        if decode.kind not in COMPARED or (len(whole) > 1 and own[0].computed is None):
            continue
        text = hit[own[0].name]
        lengths = [int(hit[one.name]) for one in own if one.companion_of is not None]
        try:
            value = None if text == "(fault)" else read(text, decode, *lengths)
        except Unreadable as error:
            value = repr(error)
        found[asked_text(argument)] = value
    return found


def same(mine: Any, theirs: Any) -> bool:
    """Whether C has what `trace` shows, which has rows of rows, characters, and short floats."""
    if isinstance(theirs, list):
        listed = rows(theirs)
        return isinstance(mine, list) and len(mine) == len(listed) and all(map(same, mine, listed))
    if isinstance(mine, list):
        text = bytes(each & 0xFF for each in mine).decode(errors="surrogateescape")
        return text.rstrip("\0") == str(theirs).rstrip("\0")
    if isinstance(mine, float) and isinstance(theirs, float):
        return c_float(mine).value == c_float(theirs).value
    if isinstance(mine, float) and isnan(mine):
        return str(theirs).lower() == "nan"
    if isinstance(mine, int) and isinstance(theirs, str):
        return bytes([mine & 0xFF]).decode(errors="surrogateescape") == theirs
    return bool(mine == theirs)


def same_element(hit: dict[str, Any], text: str) -> bool:
    """Whether the element is the same by an index that varies."""
    other = hit.get(varying(text))
    return other is None or repr(other) == repr(hit[text])


def rows(listed: list[Any]) -> list[Any]:
    """The elements of all rows."""
    return [one for each in listed for one in (rows(each) if isinstance(each, list) else [each])]


def compared(
    build: Build,
    seed: int,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    change: tuple[str, str] = ("", ""),
) -> tuple[int, list[str], Counter[str]]:
    """How many values were compared, those that differ, and the codes of refusals.

    ``change`` is replaced in the C.
    """
    require_bpf()
    require(build.compiler)
    binary, asked = drawn(build, seed, folder)
    refused: Counter[str] = Counter()
    taken = accepted(fetchc.open(str(binary)), asked, refused)
    numbered = list(enumerate(taken.values()))
    events = [one for n, (probe, some) in numbered for one in probe.events(some, "g", f"ev{n}")]
    text = written("bpf-c", events).text.replace(*change)
    compiled(folder, text)
    reported, _ = of_events(folder, text, binary)
    words = [f"{asked_text(one)} @ {name}" for name, (_, some) in taken.items() for one in some]
    words += ["-x", str(binary), "--engine", "bpf", "--format", "jsonl"]
    done = trace(capfd, *words, "--", "sh", "-c", f"exec {binary} >/dev/null")
    assert done.status == 0, done.errors
    shown_by_trace: Printed = {}
    for one in done.objects:
        shown_by_trace.setdefault(one["function"], []).append(one["args"])
    count, wrong = 0, []
    for n, (name, (probe, some)) in enumerate(taken.items()):
        mine = [values(probe, some, hit) for hit in reported.get(f"ev{n}", [])]
        theirs = shown_by_trace.get(name, [])
        if len(mine) != len(theirs):
            wrong.append(f"{name}: {len(mine)} hits, not {len(theirs)}")
        for hit, other in zip(mine, theirs, strict=False):
            for text, value in hit.items():
                if not same_element(hit, text):
                    wrong.append(f"{name}: {text}: {value!r}, not {hit[varying(text)]!r}")
            for expression, value in hit.items():
                if isinstance(other[expression], dict):
                    continue  # a structure, of which one member can be fetched
                count += 1
                if not same(value, other[expression]):
                    wrong.append(f"{name}: {expression}: {value!r}, not {other[expression]!r}")
    return count, wrong, refused


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_c_has_the_values_of_trace(
    build: Build, seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    count, wrong, refused = compared(build, seed, tmp_path, capfd)
    print(f"{build} seed {seed}: {count} values, refused {dict(refused)}")
    assert wrong == []
    assert count > 60
    assert set(refused) <= KNOWN


def test_a_fault_too_many_is_noticed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change = ("e->faults = 0;", "e->faults = 1;")
    assert compared(BUILDS[0], 1, tmp_path, capfd, change)[1] != []
