"""Leaf functions that keep data below the stack pointer, with NOPs among it, and a judge of them.

Each function returns ``WORTH`` where its data survived. The program calls each of them ``CALLS``
times, then ``IN_CHILD`` times in a child of fork(), and prints a line a function: its name, how
many calls returned something else, and the status of the child.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

CALLS, IN_CHILD = 8, 3
WORTH = 0x1234567

# Every form and length: 90 after prefixes, 0f 1f /0 with all kinds of operands.
FORMS = {
    "nop1": "90", "nop2": "66 90", "nop3": "0f 1f 00", "nop4": "0f 1f 40 00",
    "nop5": "0f 1f 44 00 00", "clang5": "0f 1f 44 00 08", "prefixed5": "66 66 66 66 90",
    "narrow5": "66 0f 1f 40 00", "twice5": "66 66 0f 1f 00", "rex5": "66 66 66 41 90",
    "nop6": "66 0f 1f 44 00 00", "nop7": "0f 1f 80 00 00 00 00",
    "nop8": "0f 1f 84 00 00 00 00 00", "nop9": "66 0f 1f 84 00 00 00 00 00",
    "nop10": "66 66 0f 1f 84 00 00 00 00 00", "far10": "66 66 66 0f 1f 80 00 00 00 00",
    "prefixed10": "66 66 66 66 66 66 66 66 66 90",
    "nop11": "66 66 66 0f 1f 84 00 00 00 00 00", "jump": "eb 08 90 90 90 90 90 90 90 90",
}  # fmt: skip

_MAIN = """\
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
%(declared)s
static struct { const char *name; long (*call)(long); } all[] = { %(listed)s };
int main(void)
{
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
    int bad = 0, status = 0;
    for (long n = 0; n < CALLS; n++)
      bad += all[i].call(n) != WORTH;
    pid_t child = fork();
    if (child == 0) {
      for (long n = 0; n < IN_CHILD; n++)
        bad += all[i].call(n) != WORTH;
      _exit(bad != 0);
    }
    waitpid(child, &status, 0);
    printf("%%s %%d %%d\\n", all[i].name, bad, status);
  }
  return 0;
}
"""


def source(functions: Mapping[str, Sequence[str]]) -> str:
    """The program: each function's name, and the assembly after its entry."""
    lines = ["__asm__("]
    for name, body in functions.items():
        written = [f".globl {name}", f".type {name}, @function", f"{name}:", *body]
        lines += [f'"{line}\\n"' for line in (*written, f".size {name}, .-{name}")]
    main = _MAIN % {
        "declared": " ".join([f"long {name}(long);" for name in functions]),
        "listed": ", ".join([f'{{"{name}", {name}}}' for name in functions]),
    }
    sizes = f"#define CALLS {CALLS}\n#define IN_CHILD {IN_CHILD}\n#define WORTH {WORTH}L\n"
    return "\n".join([*lines, ");", sizes + main])


def around(code: str) -> list[str]:
    """A leaf with the NOP of ``code`` (hexadecimal) at a label ``.Lat_...`` amid its data."""
    listed = ",".join(f"0x{byte}" for byte in code.split())
    return [
        *[f"movq ${WORTH}, -{at}(%rsp)" for at in (8, 16, 24, 32, 40, 128)],
        f".byte {listed}",
        "mov -8(%rsp), %rax",
        *[f"and -{at}(%rsp), %rax" for at in (16, 24, 32, 40, 128)],
        "ret",
    ]


def leaf(draw: random.Random) -> list[str]:
    """A random leaf: stores below the stack pointer, NOPs, loops that begin at or after a NOP."""
    body: list[str] = []
    kept: list[int] = []
    for number in range(draw.randint(2, 6)):
        if draw.random() < 0.7:
            _nop(draw, body)
        if draw.random() < 0.7:
            slot = 8 * draw.randint(1, 16)
            kept.append(slot)
            body.append(f"movq ${WORTH}, -{slot}(%rsp)")
        if draw.random() < 0.4:
            body.append("mov $2, %ecx")
            if draw.random() < 0.5:
                _nop(draw, body)
            body.append(f"{number + 1}:")
            _nop(draw, body)
            body += ["dec %ecx", f"jnz {number + 1}b"]
    _nop(draw, body)
    body.append(f"mov ${WORTH}, %eax")
    return [*body, *[f"and -{slot}(%rsp), %rax" for slot in kept], "ret"]


def _nop(draw: random.Random, body: list[str]) -> None:
    code = FORMS[draw.choice([name for name in FORMS if name != "jump"] + ["nop5"] * 6)]
    body.append(".byte " + ",".join(f"0x{byte}" for byte in code.split()))
