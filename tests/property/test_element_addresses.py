"""An index that varies leads where the program's own compiler says, or nowhere."""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
from random import Random
from typing import TYPE_CHECKING

import fetchc
from fetchc.ir.evaluate import Fault, State, evaluate
from fetchc.ir.fetch import ElementAddress, Fetch, chain
from tests.support.toolchains import require

if TYPE_CHECKING:
    from pathlib import Path


SOURCE = """
struct item { int id; short tags[4]; char pad[21]; };
struct item fixed[5];
#define TAKES struct item *p, int i, unsigned char k, long m, short *a, unsigned n
__attribute__((noipa)) long pick(TAKES) {
  __asm__ volatile("" :: "r"(p), "r"(i), "r"(k), "r"(m), "r"(a), "r"(n) : "memory"); return 0; }
"""
OF_ITEM, START, SHORTS, END = 36, 0x5000_0000, 0x6000_0000, 1 << 46


def drawn(random: Random, depth: int = 2) -> str:
    """An expression of C, with a value whatever the numbers are."""
    if depth == 0 or random.random() < 0.2:
        return random.choice(("i", "k", "m", "n", "a[1]", "3", "i", "m"))
    operands = drawn(random, depth - 1), drawn(random, depth - 1)
    operator = random.choice(("+", "-", "*", "&", "|", "^", ">>", "<", "?", "~", "cast", "%"))
    match operator:
        case "?":
            return f"({operands[0]} ? {operands[1]} : {drawn(random, depth - 1)})"
        case "~":
            return f"(~{operands[0]})"
        case "cast":
            return f"({random.choice(('short', 'unsigned char', 'int'))})({operands[0]})"
        case ">>":
            return f"({operands[0]} >> {random.randrange(8)})"
        case "%":
            return f"({operands[0]} % {random.randrange(1, 9)})"
        case _:
            return f"({operands[0]} {operator} {operands[1]})"


def memory(address: int, size: int) -> bytes | None:
    """Bytes that differ from word to word, and nothing from some address on."""
    if not 4096 <= address < END:
        return None
    words = [hashlib.sha256(f"{one}".encode()).digest()[:8]
             for one in range(address // 8, (address + size) // 8 + 1)]  # fmt: skip
    return b"".join(words)[address % 8 : address % 8 + size]


def element_of(probe: fetchc.Probe, expression: str) -> Fetch:
    """What is fetched of an element."""
    plan = probe.plan([f"e={expression}"], "fetchc_elements")
    assert plan.ebpf_alone is not None
    return dict(plan.fields[0])["e"]


def test_an_index_leads_where_the_compiler_says(tmp_path: Path) -> None:
    require("gcc")
    random = Random(20_261_128)
    many = [drawn(random) for _ in range(60)]
    indices = [one for one in many if re.search(r"\b[ikmna]\b", one)]
    told = "".join([f"long index_{at}(TAKES) {{ return {one}; }}\n"
                    for at, one in enumerate(indices)])  # fmt: skip
    (tmp_path / "elements.c").write_text(SOURCE + told)
    library = tmp_path / "elements.so"
    command = [
        "gcc",
        "-g",
        "-O1",
        "-fwrapv",
        "-shared",
        "-fPIC",
        "-w",
        "-o",
        str(library),
        "elements.c",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    own = ctypes.CDLL(str(library))
    probe = fetchc.open(str(library)).probe("pick")
    ends = [evaluate(probe_fetch(probe, f"fixed[{one}].id"), State({}, memory)) for one in range(5)]
    reached = missed = 0
    for at, index in enumerate(indices):
        free, bounded = (element_of(probe, f"{array}[{index}].id") for array in ("p", "fixed"))
        assert isinstance(chain(free.value)[0], ElementAddress)
        for _ in range(12):
            i, m = (random.choice((random.randrange(-9, 9), random.getrandbits(40))) for _ in "im")
            k, n, second = random.randrange(256), random.randrange(9), random.randrange(-4, 9)
            shorts = (ctypes.c_short * 2)(0, second)
            signature = getattr(own, f"index_{at}")
            signature.restype = ctypes.c_long
            signature.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_ubyte, ctypes.c_long,
                                  ctypes.c_void_p, ctypes.c_uint]  # fmt: skip
            wanted = signature(START, i, k, m, ctypes.addressof(shorts), n)

            def read(address: int, size: int, two: bytes = bytes(shorts)) -> bytes | None:
                if SHORTS <= address < SHORTS + 4:
                    return two[address - SHORTS : address - SHORTS + size]
                return memory(address, size)

            # What is above a narrow number in its register means nothing.
            junk = random.getrandbits(24) << 40
            registers = {"di": START, "si": i & 0xFFFFFFFF | junk, "dx": k | junk,
                         "cx": m & (1 << 64) - 1, "r8": SHORTS, "r9": n | junk}  # fmt: skip
            state = State(registers, read)
            place = START + wanted * OF_ITEM & (1 << 64) - 1
            raw = read(place, 4)
            outcome = evaluate(free, state)
            if raw is None:
                assert isinstance(outcome, Fault) or outcome.faulted, index
            else:
                assert not isinstance(outcome, Fault), index
                assert outcome.value == int.from_bytes(raw, "little", signed=True), index
            outcome = evaluate(bounded, state)
            if 0 <= wanted < len(ends):
                assert outcome == ends[wanted], (index, wanted)
                reached += 1
            else:
                assert isinstance(outcome, Fault), (index, wanted)
                missed += 1
    assert min(reached, missed) > 50


def probe_fetch(probe: fetchc.Probe, expression: str) -> Fetch:
    """What is fetched of an element with a constant index."""
    return dict(probe.plan([f"e={expression}"], "fetchc_elements").fields[0])["e"]
