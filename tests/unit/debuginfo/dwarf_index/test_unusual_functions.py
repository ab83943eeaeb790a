"""Functions that no symbol names, by search and by index: both say the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import inlined_subroutines, name_index
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from tests.support.toolchains import require

NESTED = """
#include <stdlib.h>
static int outer(int n) {
    __attribute__((noinline)) int inner(int a) { return a * n; }
    return inner(n + 1) + atoi("1");
}
int renamed(int a) __asm__("other");
__attribute__((noinline)) int renamed(int a) { return a + 1; }
static inline __attribute__((always_inline)) int only(int a) { return renamed(a) * 3; }
int main(int count, char **words) { (void)words; return outer(count) + only(count); }
"""
METHODS = """
namespace ns {
struct S {
    int kept;
    __attribute__((always_inline)) int only(int a) {
        __asm__ volatile("nop" : "+r"(a));
        return a * kept;
    }
    __attribute__((noinline)) int code(int a) { return a + kept; }
    __attribute__((always_inline)) explicit S(int a) : kept(a) {}
};
static inline __attribute__((always_inline)) int free_one(int a) {
    __asm__ volatile("nop" : "+r"(a));
    return a + 5;
}
}
int main(int count, char **) { ns::S s(count); return s.only(2) + s.code(3) + ns::free_one(count); }
"""
PLAIN = ("outer", "inner", "renamed", "only", "main", "none", "count")
QUALIFIED = ("ns::S::only", "S::only", "only", "ns::S::code", "ns::S::S", "S", "ns::free_one")


def built(folder: Path, compiler: str, text: str, *options: str) -> str:
    require(compiler)
    source = folder / ("program.c" if compiler in ("gcc", "clang") else "program.cc")
    source.write_text(text)
    command = [compiler, "-O1", "-g", *options, "-o", str(folder / "program"), str(source)]
    subprocess.run(command, check=True)
    return str(folder / "program")


def answers(path: str, names: tuple[str, ...]) -> dict[str, tuple[list[str], bool, int]]:
    """Where code is, whether there is none but in callers, and how many of these are known."""
    program = DwarfProgram(path)
    code_map = program.code_map()
    assert code_map is not None
    return {
        name: (
            [f"{one.name} {one.address:#x}" for one in program.functions_named(name)],
            program.evidence.is_only_inlined(name),
            len(code_map.instances(name)),
        )
        for name in names
    }


def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "_BIG", 0)
    monkeypatch.setattr(name_index.NameIndex, "_is_frequent", lambda *_: True)


def test_within_functions_and_under_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built(tmp_path, "gcc", NESTED)
    searched = answers(path, PLAIN)
    assert [len(found) for found, _, _ in searched.values()] == [0, 1, 1, 0, 1, 0, 0]
    assert searched["only"][1:] == (True, 1)
    eager(monkeypatch)
    assert answers(path, PLAIN) == searched
    monkeypatch.setattr(inlined_subroutines, "_may_be_within", lambda *_: False)
    assert answers(path, ("inner",)) != {"inner": searched["inner"]}


def test_within_functions_where_local_symbols_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built(tmp_path, "gcc", NESTED)
    searched = answers(path, PLAIN)
    subprocess.run(["objcopy", "-w", "-N", "inner*", path], check=True)
    eager(monkeypatch)
    assert answers(path, ("only", "main")) == {name: searched[name] for name in ("only", "main")}


@pytest.mark.parametrize("option", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_methods_that_are_only_inlined(
    compiler: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built(tmp_path, compiler, METHODS, option)
    searched = answers(path, QUALIFIED)
    assert searched["ns::S::only"] == ([], True, 1)
    assert searched["ns::S::S"] == ([], True, 1)
    assert len(searched["ns::S::code"][0]) == 1
    eager(monkeypatch)
    assert answers(path, QUALIFIED) == searched
