"""Unlike structures of one name in one program: which of them a mere declaration means."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from fetchc.debuginfo.dwarf.constants import DW_AT_name, DW_TAG_structure_type
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.name_index_scan import scan
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.quantities import DieOffset
from tests.support.toolchains import require

# Both `entry` have one size, begin in line 4 of their file and with the same member.
SOURCES = {
    "opaque.h": "typedef struct entry entry;\n",
    "whole.h": """


typedef struct entry { void *key; int other; int at; struct entry *next; } entry;
""",
    "user.c": """#include "opaque.h"
struct twice;
struct plain { long here; };
int use(entry *e, struct twice *t, struct entry *untold) { return (void *)e != t && !untold; }
int first(entry *);
int second(int);
int main(void) { return use(0, 0, 0) + first(0) + second(0); }
""",
    "second.c": """#include "whole.h"
struct twice { int a; short b, c; };
int second(int n) { entry e = {0}; struct twice t = {n, 0, 0}; return e.other + t.b; }
""",
    "first.c": """#include "opaque.h"


struct entry { void *key; int at; int other; struct entry *next; };
struct twice { int a; int b; };
int first(entry *e) { struct twice t = {0, 0}; return e ? e->at + t.b : 0; }
""",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Program:
    require("gcc")
    folder = tmp_path_factory.mktemp("unlike")
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    files = ["user.c", "second.c", "first.c"]
    subprocess.run(["gcc", "-g", "-w", "-O0", "-o", "two", *files], cwd=folder, check=True)
    return fetchc.open(str(folder / "two"))


def refused(program: fetchc.Program, text: str) -> tuple[str, str]:
    with pytest.raises(fetchc.CompileError) as refusal:
        program.probe("use").compile(text)
    (diagnostic,) = refusal.value.diagnostics
    return diagnostic.code, diagnostic.message


def test_it_is_that_of_the_header_which_both_have_read(program: fetchc.Program) -> None:
    probe = program.probe("use")
    assert [probe.compile(text).fetcharg for text in ("e->at", "e->other")] == [
        "+8(%di):s32",
        "+12(%di):s32",
    ]


def test_what_nothing_tells_apart_is_refused(program: fetchc.Program) -> None:
    assert refused(program, "t->b") == (
        "FC0311",
        "`struct twice` is only declared here, and defined in 2 ways elsewhere",
    )


def test_in_the_file_of_a_definition_it_is_that_one(program: fetchc.Program) -> None:
    assert program.probe("first").compile("((struct entry *)e)->at").fetcharg == "+8(%di):s32"
    assert program.probe("second").compile("sizeof(struct twice)").fetcharg == "\\8:u64"


def test_a_name_means_what_the_declaration_in_the_file_does(program: fetchc.Program) -> None:
    assert program.probe("use").compile("((struct entry *)t)->at").fetcharg == "+8(%si):s32"
    assert refused(program, "((struct twice *)e)->b")[0] == "FC0208"


def test_an_index_leads_to_both(program: fetchc.Program) -> None:
    info = DebugInfo(Elf(program.path))
    named = [DieOffset(row[1]) for row in scan(info, None).rows if row[2] == DW_TAG_structure_type]
    members = [
        [child.string(DW_AT_name) for child in info.children(info.die(offset))] for offset in named
    ]
    assert ["key", "at", "other", "next"] in members
    assert ["key", "other", "at", "next"] in members
