"""Policies for Tetragon, followed in the memory of a traced process: they lead to what it shows."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.debuginfo.btf.btf_format import Btf
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
#include <stdio.h>
#include <unistd.h>
struct node {
    int v; char own[8]; struct node *next; signed char small; unsigned short middle;
    union { long wide; struct node *other; }; const char *text; int row[4]; struct node **all;
    enum { RED = 3 } shade; _Bool yes;
};
__attribute__((noinline)) long look(struct node *p, int k, long a2, long a3, long a4, long a5)
{ __asm__ volatile("" ::: "memory"); return p->v + k + a5; }
struct node n, *one = &n;
int main(void)
{
    n = (struct node){ -7, "hey", &n, -3, 65000, { .other = &n }, "text", { 1, -2, 3, 4 } };
    n.all = &one;
    n.shade = RED;
    n.yes = 1;
    puts("ready");
    fflush(stdout);
    for (;;) { look(&n, -9, 2, 3, -4, 1L << 40); usleep(2000); }
}
"""
PATHS = ["p->v", "p->next->next->small", "p->own", "p->text", "p->row[1]", "k"]
MORE = ["p->all[0]->middle", "p->other->shade", "p->yes", "p->next", "a4"]


def followed(keys: dict[str, Any], btf: Btf, registers: list[int], memory: int) -> int | str:
    """What Tetragon reports of one of ``args``.

    Rules: pkg/btf/btf.go (ResolveBTFPath) and bpf/process/generic_arg.h (extract_arg_depth): a
    step adds the member's offset, and loads a word where it is a pointer, or the last an integer.
    """
    value = registers[keys["index"]]
    steps = keys["resolve"].split(".") if "resolve" in keys else []
    (number,) = btf.named(keys["btfType"], ("STRUCT",)) if steps else (0,)
    for step in steps:
        entry = btf.entry(number)
        places = range(0, 3 * entry.count, 3)
        (at,) = [each for each in places if btf.text(entry.words[each]) == step]
        number = entry.words[at + 1]
        value += entry.words[at + 2] // 8
        if btf.kind(number) in ("PTR", "INT"):
            value = int.from_bytes(os.pread(memory, 8, value), "little")
        if btf.kind(number) == "PTR":
            number = btf.entry(number).value
    if keys["type"] == "string":
        return os.pread(memory, 64, value).partition(b"\0")[0].decode()
    size = int(keys["type"].lstrip("uint")) // 8
    low = (value % (1 << 64)).to_bytes(8, "little")[:size]
    return int.from_bytes(low, "little", signed=keys["type"].startswith("int"))


def test_a_policy_leads_to_what_trace_shows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    require("gcc")
    program = str(tmp_path / "program")
    compiler = ["gcc", "-g", "-O1", "-xc", "-", "-o", program]
    subprocess.run(compiler, input=SOURCE, text=True, check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            running.stdout.readline()
            compare(program, running.pid, tmp_path / "t.btf", capfd)
        finally:
            running.kill()


def compare(program: str, pid: int, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    yaml: Any = importlib.import_module("yaml")
    point = ["-x", program, "-f", "look"]
    words = ["p", "a2", "a3", *PATHS, *MORE, "--count", "1", "--format", "jsonl"]
    assert main(["trace", *words, *point, "-p", str(pid)]) == 0
    shown = json.loads(capfd.readouterr().out.splitlines()[0])["args"]
    registers = [shown[name] for name in ("p", "k", "a2", "a3", "a4")]
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for some in (PATHS[:5], PATHS[5:] + MORE[:4], MORE[4:]):
            policy = ["compile", *some, *point, "--format", "tetragon", "--btf", str(file)]
            assert main(policy) == 0
            (uprobe,) = yaml.safe_load(capfd.readouterr().out)["spec"]["uprobes"]
            btf = Btf("t.btf", file.read_bytes())
            for text, keys in zip(some, uprobe["args"], strict=True):
                wanted = shown[text]
                wanted = wanted["value"] if isinstance(wanted, dict) else wanted
                assert followed(keys, btf, registers, memory.fileno()) == wanted, text
                moved = [each + 8 for each in registers]
                if text in ("p->v", "k"):
                    assert followed(keys, btf, moved, memory.fileno()) != wanted
