"""Operators on values: a program evaluates random expressions itself, and a trace has the same.

Operands are the edges of their types. Where the program is ended or panics (a division by zero, a
negative count of bits in Go), the trace has a fault.
"""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import fetchc
from fetchc.conformance.operator_drawing import c_operators, go_operators
from fetchc.emit.output_formats import written
from tests.live.traced import trace
from tests.live.watching import watched
from tests.support.csharp_operators import csharp_operators, without_refused
from tests.support.dotnet import ahead_of_time
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS, require
from tests.support.tools import Printed, bpftrace_version, run_bpftrace
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

SEED = int(os.environ.get("FETCHC_SEEDS", "20").split("-")[0])
_EXPRESSIONS = 400 if os.environ.get("FETCHC_LONG") else 96
_CALLS = 6
_FAULT = "(fault)"

# --- the programs ---------------------------------------------------------------------------------


def c_program(
    folder: Path,
    seed: int,
    compiler: str,
    suffix: str,
    expressions: int = _EXPRESSIONS,
    calls: int = _CALLS,
    real: float = 0.4,
) -> tuple[Path, list[str]]:
    """A program that prints what drawn expressions are at each call of ``take``, and those."""
    require(compiler)
    drawn = c_operators(random.Random(seed), expressions, calls, real, open=False)
    file, program = folder / f"operators{suffix}", folder / "operators"
    file.write_text(drawn.source)
    command = [compiler, "-g", "-O0", "-w", "-fwrapv", "-o", str(program), str(file)]
    subprocess.run(command, check=True, timeout=280)
    return program, list(drawn.texts)


def go_values(folder: Path, seed: int, version: str) -> tuple[Path, list[str]]:
    drawn = go_operators(random.Random(seed), _EXPRESSIONS, _CALLS)
    return go_program(version, folder, drawn.source, name="operators"), list(drawn.texts)


# --- the comparison -------------------------------------------------------------------------------


def traced(
    program: Path, function: str, texts: Sequence[str], command: Sequence[str | Path] = ()
) -> tuple[list[str], list[dict[str, object]]]:
    """What the program printed, and of each call the values by expression."""
    probe = fetchc.open(str(program)).probe(function)
    asked = [probe.asked(text) for text in texts]
    parts = [asked[at : at + 24] for at in range(0, len(asked), 24)]
    output, events = watched(
        lambda group: [probe.plan(part, group, f"part{n}") for n, part in enumerate(parts)],
        command or [program],
    )
    calls: list[dict[str, object]] = [{} for _ in range(_CALLS)]
    for event in events:
        call = next(one for one in calls if not one.keys() & event.args.keys())
        for label, value in event.args.items():
            call[label] = _FAULT if label in event.faults else value
    return output.splitlines(), calls


def differences(
    lines: Sequence[str], calls: Sequence[dict[str, object]], texts: Sequence[str]
) -> list[str]:
    """What differs, in words."""
    wrong = []
    for number, (line, values) in enumerate(zip(lines, calls, strict=True)):
        for text, printed in zip(texts, line.split(), strict=True):
            if not _is_same(printed, values[text]):
                wrong.append(f"call {number}: {text} is {printed}, traced {values[text]!r}")
    return wrong


def _is_same(printed: str, value: object) -> bool:
    kind, text = printed[0], printed[1:]
    if kind == "-" and not text:
        return value == _FAULT
    if value == _FAULT:
        return False
    match kind:
        case "b":
            return value is (text == "1")
        case "i":
            if isinstance(value, dict):  # of an enumeration
                value = value["value"]
            return type(value) is int and value == int(text)
        case _:
            first, second = float(text), float(str(value))
            if kind == "f":
                first, second = (
                    struct.unpack("f", struct.pack("f", one))[0] for one in (first, second)
                )
            return first == second or (first != first and second != second)


@pytest.fixture(params=["tracefs", pytest.param("bpf", marks=pytest.mark.long)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fetches the operands: with eBPF it is another program, of the same plan."""
    require_uprobes()
    if request.param == "bpf":
        require_bpf()
    monkeypatch.setenv("FETCHC_ENGINE", request.param)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("compiler", "suffix"), [("gcc", ".c"), ("g++", ".cpp")])
def test_c_evaluates_the_same(compiler: str, suffix: str, tmp_path: Path) -> None:
    program, texts = c_program(tmp_path, SEED, compiler, suffix)
    lines, calls = traced(program, "take", texts)
    assert not differences(lines, calls, texts)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("version", GO_VERSIONS[-1:])
def test_go_evaluates_the_same(version: str, tmp_path: Path) -> None:
    program, texts = go_values(tmp_path, SEED, version)
    lines, calls = traced(program, "main.show", texts)
    assert not differences(lines, calls, texts)


@pytest.mark.usefixtures("engine")
def test_csharp_evaluates_the_same(tmp_path: Path) -> None:
    drawn = without_refused(csharp_operators(random.Random(SEED), _EXPRESSIONS, _CALLS), tmp_path)
    drawn = without_refused(drawn, tmp_path)  # now the compiler looks at what it had not reached
    source = tmp_path / "operators.cs"
    source.write_text(drawn.source)
    program = ahead_of_time(source, tmp_path / "operators.exe")
    texts = [text for text in drawn.texts if "%" not in text]  # of floating-point numbers in C#
    lines, calls = traced(program, drawn.function, texts, ["mono", program])
    positions = [drawn.texts.index(text) for text in texts]
    lines = [" ".join(line.split()[at] for at in positions) for line in lines]
    assert not differences(lines, calls, texts)


@pytest.mark.usefixtures("engine")
def test_a_filter_keeps_the_calls_of_which_it_is_true(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program, texts = c_program(tmp_path, SEED, "gcc", ".c")
    output = subprocess.run(
        [program], capture_output=True, encoding="utf-8", timeout=60, check=True
    )
    lines = [line.split() for line in output.stdout.splitlines()]
    printed = {text: [line[at] for line in lines] for at, text in enumerate(texts)}
    # Of two operands: a constant of a filter is compared as the value is shown.
    one = r"(\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\))"  # in brackets
    compared = re.compile(f"{one} (?:[<>]=?|[=!]=) {one}")
    matches = [match for text in texts if (match := compared.fullmatch(text))]
    truths = [match[0] for match in matches if "e->" in match[1] and "e->" in match[2]]
    truths = [text for text in truths if len(set(printed[text])) > 1]
    assert len(truths) >= 2
    for text in truths[: 24 if os.environ.get("FETCHC_LONG") else 2]:
        found = trace(capfd, text, "--filter", text, "--format", "jsonl", "-x", program,
                      "-f", "take", "--", "sh", "-c", f"exec {program} > /dev/null")  # fmt: skip
        assert found.status == 0, found.errors
        assert len(found.args) == sum(one not in ("i0", "b0", "-") for one in printed[text]), text


# --- bpftrace's own operators -----------------------------------------------------------------

_ONE_EVENT = 8  # expressions, so that the stack of a BPF program has room for them


def bpftrace_program(
    program: Path, function: str, texts: Sequence[str], version: str
) -> tuple[str, list[str]]:
    """A program of bpftrace for the expressions that it can compute, and which they are."""
    probe = fetchc.open(str(program)).probe(function)
    taken: list[fetchc.Argument] = []
    for text in texts:
        argument = probe.compile(f"v{len(taken)}={text}", computes=True)
        try:
            probe.written("bpftrace", [argument], version=version)
        except fetchc.CompileError:
            continue  # bpftrace has no floating-point numbers
        taken.append(argument)
    parts = [taken[at : at + _ONE_EVENT] for at in range(0, len(taken), _ONE_EVENT)]
    events = [one for n, part in enumerate(parts) for one in probe.events(part, "g", f"ev{n}")]
    text = written("bpftrace", events, version=version).text
    return text, [argument.expression for argument in taken]


def computed_otherwise(
    reported: Printed, lines: Sequence[str], texts: Sequence[str], taken: Sequence[str]
) -> list[str]:
    """What bpftrace computed otherwise than the program; 0 is what has no value."""
    wrong, hits = [], [hit for listed in reported.values() for hit in listed]
    found = {
        name: [int(hit[name], 0) for hit in hits if name in hit] for hit in hits for name in hit
    }
    for at, text in enumerate(taken):
        printed = [line.split()[texts.index(text)] for line in lines]
        if printed[0][0] in "fd":
            continue  # bpftrace has its bits
        wanted = [0 if one == "-" else int(one[1:]) for one in printed]
        if found[f"v{at}"] != wanted:
            wrong.append(f"{text} is {printed}, bpftrace computed {found[f'v{at}']}")
    return wrong


@pytest.mark.parametrize("which", ["installed", "newer"])
def test_bpftrace_computes_the_same(which: str, tmp_path: Path) -> None:
    version = bpftrace_version(which)
    program, texts = c_program(tmp_path, SEED, "gcc", ".c")
    text, taken = bpftrace_program(program, "take", texts, version)
    assert len(taken) > len(texts) // 2
    reported, printed = run_bpftrace(text, program, tmp_path, which)
    assert not computed_otherwise(reported, printed.splitlines(), texts, taken)
    if which == "installed":
        mutant = text.replace("(int64)(int32)", "(uint64)(uint32)")
        reported, printed = run_bpftrace(mutant, program, tmp_path, which)
        assert computed_otherwise(reported, printed.splitlines(), texts, taken)


def test_bpftrace_computes_as_go_does(tmp_path: Path) -> None:
    version = bpftrace_version()
    program, texts = go_values(tmp_path, SEED, GO_VERSIONS[-1])
    text, taken = bpftrace_program(program, "main.show", texts, version)
    reported, printed = run_bpftrace(text, program, tmp_path)
    assert not computed_otherwise(reported, printed.splitlines(), texts, taken)


@pytest.mark.parametrize(
    ("printed", "value"),
    [("i3", 4), ("i1", True), ("b1", 1), ("b1", False), ("f0.1", 0.2), ("dnan", 1.0), ("-", 0),
     ("i0", _FAULT)],
)  # fmt: skip
def test_the_comparison_is_seen_to_fail(printed: str, value: object) -> None:
    assert differences([printed], [{"e": value}], ["e"])
    assert not differences(
        ["i3", "b1", "dnan", "-"], [{"e": 3}, {"e": True}, {"e": "NaN"}, {"e": _FAULT}], ["e"]
    )
