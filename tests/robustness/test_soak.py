"""Nothing grows with the number of questions that one process is asked.

``FETCHC_SOAK=100000 .venv/bin/pytest tests/robustness/test_soak.py -s`` asks so many.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.cases import CORPUS

QUESTIONS = int(os.environ.get("FETCHC_SOAK", "3000"))
GROWN = 1.5  # MB between two thirds of the way; a leak of 1.5 KB a question shows in 1000

# Every question is another one: of ten programs and all functions of two, with names that are
# there and names that are not. {leak} is for a neighbour that must be seen to fail.
ASK = """
import gc, itertools, os, sys
import fetchc

C = ["c/layouts/bin/" + name for name in (
    "gcc-O0-dwarf4", "gcc-O2-dwarf4", "gcc-O0-dwarf5", "gcc-O2-dwarf5", "clang-O0-dwarf4",
)]
GO = ["go/dnsforward/bin/go" + version for version in ("1.15", "1.22", "1.27")]
EXPRESSIONS = (
    ["r->head->value", "r->nothing", "(struct node *)%di", "r->list[2].i", "*(int *)%sp"],
    ["r.Question[0].Name", "r.Nam", "s", "len(r.Question)", "w.(*main.udpWriter)"],
)
functions = [[*fetchc.open(C[0]).functions()], [*fetchc.open(GO[0]).functions("main.*")]]

def questions():
    for number in itertools.count():
        of_go = number // 40 % 2
        yield {{
            "binary": [C, GO][of_go][number // 80 % [5, 3][of_go]],
            "function": functions[of_go][number % len(functions[of_go])],
            "expressions": [EXPRESSIONS[of_go][number % 5], f"no_{{number}}"],
            "kernel": ("5.10", "6.1")[number % 2],
            "at": "+0" if number % 3 else None,
        }}

kept = []
answered = fetchc.bulk(questions())
total, marks = {total}, []
for number, one in enumerate(itertools.islice(answered, total), 1):
    {leak}
    if number % (total // 3) == 0:
        gc.collect()
        with open("/proc/self/statm") as file:
            marks.append(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6)
print(*[f"{{mark:.2f}}" for mark in marks])
"""


def grown(leak: str) -> float:
    """Megabytes of resident memory gained from one third of the questions to all of them."""
    code = ASK.format(total=QUESTIONS, leak=leak)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CORPUS, capture_output=True, text=True, check=True
    )
    print(f"{QUESTIONS} questions, MB after each third: {done.stdout.strip()}")
    marks = [float(word) for word in done.stdout.split()]
    return marks[-1] - marks[0]


@pytest.mark.timeout(max(300, QUESTIONS // 20))
def test_memory_is_a_flat_line() -> None:
    assert grown("pass") < GROWN


def test_a_leak_is_noticed() -> None:
    assert grown("kept.append(bytearray(4096))") > GROWN
