"""Local variables that optimized code computes nowhere: the debug information says how to.

The program prints what the drawn expressions are. A trace shows the same, or refuses: compilers
describe what they compute of numbers smaller than a word as if they were words, which is wrong for
quotients and shifts to the right. ``FETCHC_SEEDS`` draws others, ``FETCHC_LONG=1`` more of each.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.seeds import seeds
from tests.support.toolchains import ZIG, require
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

LONG = bool(os.environ.get("FETCHC_LONG"))
FUNCTIONS = 20 if LONG else 6
VARIABLES = 6  # of each function
TYPES = ("signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long")
PARAMETERS = (("int", "a"), ("unsigned", "b"), ("short", "c"), ("long", "d"))
CALLS = (
    (-1, 0xFFFFFFFF, -1, -1),
    (5, 7, 9, 11),
    (-7, 8, -300, 1 << 40),
    (1 << 30, 3, 2, -(1 << 50)),
)
BUILDS: list[tuple[str, ...]] = [("gcc", "-O2"), ("clang", "-O2")]
MORE: list[tuple[str, ...]] = [
    ("gcc", "-O1", "-gdwarf-4"),
    ("clang", "-O1"),
    (str(ZIG), "cc", "-O2", "-fno-sanitize=all"),
]


def expression(draw: random.Random, depth: int) -> str:
    """An expression of C without undefined behavior, under -fwrapv."""
    if depth == 0:
        return draw.choice(("a", "b", "c", "d", "3", "24", "-7"))
    left, right = (expression(draw, depth - 1) for _ in "lr")
    match draw.randrange(9):
        case 0:
            return f"({left} {draw.choice('/%')} {draw.choice('3578')})"
        case 1:
            return f"({left} >> {draw.randrange(1, 12)})"
        case 2:
            return f"((unsigned long){left} << {draw.randrange(1, 12)})"
        case 3:
            return f"({left} {draw.choice(('<', '>=', '=='))} {right})"
        case 4:
            return f"({draw.choice('-~')} {left})"
        case _:
            return f"({left} {draw.choice('+-*&|^')} {right})"


def program(folder: Path, build: tuple[str, ...], seed: int) -> tuple[Path, list[tuple[str, int]]]:
    """A program of functions with drawn local variables that no code uses, and lines of each."""
    require(build[0])
    draw = random.Random(seed)
    taken = ", ".join(f"{type} {name}" for type, name in PARAMETERS)
    passed = ", ".join(name for _, name in PARAMETERS)
    lines = ["#include <stdio.h>", "__attribute__((noinline)) void use(long n) {"]
    lines += ['    __asm__ volatile("" :: "r"(n) : "memory");', "}"]
    at = []
    for number in range(FUNCTIONS):
        drawn = [
            (draw.choice(TYPES), expression(draw, draw.randrange(1, 3))) for _ in range(VARIABLES)
        ]
        volatile = " ".join(f"volatile {type} v{n} = {e};" for n, (type, e) in enumerate(drawn))
        shown = ", ".join(f"(long)v{n}" for n in range(len(drawn)))
        form = " ".join(["%ld"] * len(drawn))
        lines.append(f"__attribute__((noinline)) void print{number}({taken}) {{ {volatile}")
        lines.append(f'    printf("EVENT work{number} {form}\\n", {shown}); }}')
        lines.append(f"__attribute__((noinline)) void work{number}({taken}) {{")
        lines += [f"    {type} v{n} = {e};" for n, (type, e) in enumerate(drawn)]
        lines += ["    use(a);", "    use(b + c);", "    use(d);", "}"]
        at += [(f"work{number}", len(lines) - 3), (f"work{number}", len(lines) - 2)]
    lines += ["int main(void) {", f"    volatile {'; volatile '.join(taken.split(', '))};"]
    for call in CALLS:
        lines += [
            f"    {name} = {value}L;" for (_, name), value in zip(PARAMETERS, call, strict=True)
        ]
        lines += [f"    print{n}({passed}); work{n}({passed});" for n in range(FUNCTIONS)]
    (folder / "computed.c").write_text("\n".join([*lines, "}", ""]))
    words = [*build, "-g", "-w", "-fwrapv", "-no-pie", "-o", "computed", "computed.c"]
    subprocess.run(words, check=True, cwd=folder, timeout=120)
    return folder / "computed", at


def differences(
    printed: list[str], traced: dict[str, dict[str, list[object]]], counts: Counter[str]
) -> list[str]:
    """What of the ``traced`` values of functions' variables at an address is not as ``printed``."""
    own: dict[str, list[list[int]]] = defaultdict(list)
    for line in printed:
        _, function, *numbers = line.split()
        own[function].append([int(number) for number in numbers])
    wrong = []
    right: list[object]
    for point, variables in traced.items():
        for name, values in variables.items():
            right = [each[int(name[1:])] for each in own[point.partition("+")[0]]]
            if any(isinstance(value, dict) for value in values):
                counts["refused"] += 1
            elif values != right:
                wrong.append(f"{name} at {point} is {right}, traced {values}")
            else:
                counts["equal"] += 1
    return wrong


@pytest.mark.parametrize("engine", ["tracefs", "bpf"])
@pytest.mark.parametrize("build", BUILDS + MORE * LONG, ids=lambda build: Path(build[0]).name)
def test_what_is_computed_is_what_the_program_has(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], build: tuple[str, ...], engine: str
) -> None:
    require_uprobes() if engine == "tracefs" else require_bpf()
    counts: Counter[str] = Counter()
    for seed in seeds():
        binary, lines = program(tmp_path, build, seed)
        asked = [f"$locals @ {function}:{line}" for function, line in lines]
        asked += [  # what can be shown can be an operand, too
            f"w{n}=v{n} ^ 0L @ {function}:{line}"
            for function, line in lines
            for n in range(VARIABLES)
        ]
        found = trace(
            capfd, *asked, "--engine", engine, "-x", binary, "--format", "jsonl", "--", binary
        )
        traced: dict[str, dict[str, list[object]]] = defaultdict(lambda: defaultdict(list))
        for event in found.objects:
            assert event["faults"] == []
            for name, value in event["args"].items():
                point = f"{event['function']}+{event['address']:#x}"
                traced[point][name.partition("@")[0].rstrip()].append(value)
        assert differences(found.program, traced, counts) == []
        for point, variables in traced.items():
            shown = {name[1:] for name, values in variables.items() if isinstance(values[0], int)}
            assert {name[1:] for name in variables if name[0] == "w"} == shown, point
        opened = fetchc.open(binary)
        for function, line in lines:
            probe = opened.probe(function, at=f":{line}")
            for name, values in traced[f"{function}+{probe.address:#x}"].items():
                if isinstance(values[0], int) and name[0] == "v":
                    counts["computed"] += is_computed(probe, name)
    assert counts["equal"] > 2 * FUNCTIONS
    assert counts["computed"] > (FUNCTIONS if build[0] == "gcc" else 0)


WIDE = """__attribute__((noinline)) void use(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) long widened(long n, unsigned long m) {
    __int128 wide = n; unsigned __int128 tall = m;
    use();
    return n + m; }
int main(int argc, char **argv) { return widened(argc, argc); }
"""


def test_a_word_is_not_taken_for_a_number_of_two(tmp_path: Path) -> None:
    # DWARF 5 converts (DW_OP_convert), older versions extend the sign with words alone.
    require("clang")
    (tmp_path / "wide.c").write_text(WIDE)
    words = ["clang", "-gdwarf-4", "-O2", "-o", "wide", "wide.c"]
    subprocess.run(words, check=True, cwd=tmp_path, timeout=120)
    probe = fetchc.open(tmp_path / "wide").probe("widened", at=":4")
    for name in ("wide", "tall"):
        with pytest.raises(fetchc.CompileError, match="in a word of 8 bytes, and has 16"):
            probe.asked(name)


def is_computed(probe: fetchc.Probe, name: str) -> bool:
    """Whether the variable is in no place, so that only a trace has its value."""
    try:
        probe.compile(name)
    except fetchc.CompileError as refused:
        return "computed at run time" in refused.diagnostics[0].message
    return False


def test_the_comparison_sees_a_wrong_value() -> None:
    counts: Counter[str] = Counter()
    traced: dict[str, dict[str, list[object]]] = {"work0": {"v1": [7, 8]}}
    assert differences(["EVENT work0 0 7", "EVENT work0 0 8"], traced, counts) == []
    assert differences(["EVENT work0 0 7", "EVENT work0 0 9"], traced, counts) != []
