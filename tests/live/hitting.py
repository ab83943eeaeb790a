"""A program of our own that hits as it is asked to, and plans for it that are written by hand.

``PROGRAM all`` calls 10,000 functions once each, with their number; ``loop N`` calls the first N
times, with the number of the call; ``tasks`` calls from a thread, a child and a child's thread;
``steps`` calls once for each line of standard input, and says so.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from fetchc.ir.fetch import Comm, Decode, Fetch, Register, Scalar, Text
from fetchc.tracer.events import COMM, EventValue, Plan
from fetchc.tracer.value_shapes import Leaf
from tests.support.toolchains import require

__all__ = ["FUNCTIONS", "build", "leftovers", "plan"]

FUNCTIONS = 10_000
_STRIDE = 16
SOURCE = f"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__asm__(".globl many\\n.balign {_STRIDE}\\nmany:\\n"
        ".rept {FUNCTIONS}\\nlea 1(%rdi), %rax\\nret\\n.balign {_STRIDE}\\n.endr\\n");
extern char many[];
static long call(int which, long value) {{
    return ((long (*)(long))(many + {_STRIDE} * which))(value);
}}
static void *thread(void *value) {{ call(0, (long)value); return 0; }}
static void threaded(long value) {{
    pthread_t it;
    pthread_create(&it, 0, thread, (void *)value);
    pthread_join(it, 0);
}}
int main(int count, char **words) {{
    char line[100];
    if (!strcmp(words[1], "all"))
        for (int n = 0; n < {FUNCTIONS}; n++) call(n, n);
    if (!strcmp(words[1], "loop"))
        for (long n = 0; n < atol(words[2]); n++) call(0, n);
    if (!strcmp(words[1], "steps"))
        for (long n = 0; fgets(line, sizeof line, stdin); n++) {{
            call(0, n);
            printf("%ld\\n", n);
            fflush(stdout);
        }}
    if (!strcmp(words[1], "tasks")) {{
        printf("%d\\n", getpid());
        fflush(stdout);
        fgets(line, sizeof line, stdin);
        call(0, 1);
        threaded(2);
        int child = fork();
        if (!child) {{
            call(0, 3);
            threaded(4);
            _exit(0);
        }}
        waitpid(child, 0, 0);
        printf("%d\\n", child);
    }}
    return 0;
}}
"""


def build(folder: Path) -> Path:
    """Compile the program into ``folder``."""
    require("gcc")
    source, program = folder / "hitting.c", folder / "hitting"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", program, source, "-lpthread"], check=True)
    return program


@cache
def _start(program: Path) -> int:
    # The offset in the file of the first function.
    with open(program, "rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = table.get_symbol_by_name("many")
        assert symbols is not None
        (offset,) = elf.address_offsets(symbols[0]["st_value"])
        return int(offset)


def plan(
    group: str, program: Path, which: int = 0, event: str | None = None, more: str = ""
) -> Plan:
    """The function number ``which``, its argument as ``n``; ``more`` is put after that."""
    event = event or f"f{which}"
    offset = _start(program) + _STRIDE * which
    line = f"p:{group}/{event} {program}:{offset:#x} n=%di:s64 {more}fetchc_comm=$comm"
    wanted = EventValue("n", Leaf("n", Decode("integer", 64, signed=True)))
    fields = ("n", Fetch(Register("di"), Scalar("s", 64))), (COMM, Fetch(Comm(), Text()))
    name = f"many_{which}"
    # What ``more`` fetches is for the kernel's eyes only.
    known = () if more else (fields,)
    return Plan(group, event, str(program), name, "entry", 0, (line,), (wanted,), fields=known)


def leftovers(group: str) -> list[str]:
    """What the kernel has of a group: definitions and instances."""
    root = Path("/sys/kernel/tracing")
    lines = (root / "uprobe_events").read_text().splitlines()
    instances = [name for name in os.listdir(root / "instances") if group in name]
    return [line for line in lines if group in line] + instances
