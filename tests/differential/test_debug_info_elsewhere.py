"""The same code with its debug information in other places and forms: the answers are the same.

A program is built once plainly and once with split units, packages, type units, dwz's partial
units and shared files, other compression and offset sizes. The code is the same, so is whatever
there is to say of functions, variables at each instruction, lines, inlined calls and types.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, OnEntry
from fetchc.quantities import Address, TypeId
from tests.support.toolchains import require

ONE = r"""
#include <stdio.h>
struct node { int value; struct node *next; const char *label; };
struct shared { int a; unsigned long b; };
enum color { red, green = 7 };
static int counter = 5;
struct shared together = { 3, 4 };
extern int other(struct shared *s, struct node *n);
static inline int twice(struct node *q, int by)
{ int t = q->value * by; return t + q->next->value; }
__attribute__((noinline)) int visit(struct node *n, int depth, enum color c, struct shared *s)
{
    int sum = depth;
    for (struct node *m = n; m; m = m->next) { sum += m->value; counter++; }
    if (c == green) sum += twice(n, depth);
    return sum + other(s, n);
}
int main(int argc, char **argv)
{
    struct node two = { 22, 0, "two" }, one = { 11, &two, argv[0] };
    struct shared s = { 1, 2 };
    printf("%d\n", visit(&one, argc, green, &s));
    return 0;
}
"""
TWO = r"""
struct node { int value; struct node *next; const char *label; };
struct shared { int a; unsigned long b; };
struct only_here { short x; int y; };
struct only_here bee = { 1, 2 };
__attribute__((noinline)) int other(struct shared *s, struct node *n)
{
    struct shared *copy = s;
    int many = n->value + (int)copy->b;
    __asm__ volatile("" :: "r"(many) : "memory");
    return many * 2 + bee.y;
}
"""
CLASSES = r"""
namespace t {
struct shape { virtual ~shape() {} int kind = 1; };
template <class T> struct box : shape {
    T inside;
    box(T v) : inside(v) {}
    T get() const { return inside; }
};
enum class tone { low = 2, high };
inline int area(const box<int> &b, tone k) { int r = b.get() * (int)k; return r; }
int use(const box<int> &b, box<short> *c, tone k);
}
"""
CPP_ONE = (
    CLASSES
    + r"""
int main(int n, char **) {
    t::box<int> b{n};
    t::box<short> c{7};
    auto f = [&](int k) { return t::area(b, t::tone::low) + k; };
    return t::use(b, &c, t::tone::high) - f(n);
}
"""
)
CPP_TWO = (
    CLASSES
    + r"""
namespace t { box<int> made{4}; }
__attribute__((noinline)) int t::use(const box<int> &b, box<short> *c, tone k)
{ return area(b, k) + c->get() + made.inside; }
"""
)
SOURCES = {
    "c": {"one.c": ONE, "two.c": TWO},
    "c++": {"one.cc": CPP_ONE, "two.cc": CPP_TWO},
}
COMPILERS = {("c", "gcc"): "gcc", ("c", "clang"): "clang", ("c++", "gcc"): "g++"}
COMPILERS["c++", "clang"] = "clang++"
FLAVOURS = {
    "split": ("-gsplit-dwarf",),
    "types": ("-fdebug-types-section",),
    "split-types": ("-gsplit-dwarf", "-fdebug-types-section"),
    "compressed": ("-gz=zlib",),
    "wide": ("-gdwarf64",),
    "names": ("-gpubnames",),
}


def build(folder: Path, language: str, compiler: str, *flags: str) -> Path:
    """The program, in a folder of its own beside the sources, whose paths are the same for all."""
    folder.mkdir()
    for name, text in SOURCES[language].items():
        (folder.parent / name).write_text(text)
    names = [f"../{name}" for name in SOURCES[language]]
    command = [COMPILERS[language, compiler], "-g", "-w", *flags, *names, "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "program"


def shape(program: DwarfProgram, type_id: TypeId, depth: int = 0) -> str:
    """A type in words, a few levels deep."""
    made = program.type(type_id)
    words = [type(made).__name__, str(getattr(made, "name", "")), str(getattr(made, "size", ""))]
    for member in getattr(made, "members", ()) if depth < 2 else ():
        inner = shape(program, member.type, depth + 1)
        words.append(f"{member.name}@{member.offset}:{inner}")
    target = getattr(made, "target", None)
    if target is not None and depth < 3:
        words.append(shape(program, target, depth + 1))
    return " ".join(words)


def facts(path: Path) -> Iterator[tuple[object, ...]]:
    """All that is said of the code, apart from the types that a compiler leaves out or not."""
    program = DwarfProgram(str(path))
    for symbol in sorted(program.function_names()):
        for function in program.functions_named(symbol):
            if function.die is None:
                continue
            name = function.name
            yield name, function.address, function.language, program.source_line(function)
            yield name, "body", program.body_address(function)
            for parameter in program.parameters(function):
                yield name, parameter.name, parameter.line, shape(program, parameter.type)
            for address in range(function.address, function.address + (function.size or 0), 3):
                for variable in program.variables(function, Address(address)):
                    place = program.place(variable, function, Address(address))
                    # gcc 12's .dwo files have lists that end earlier: 22 bytes in the place of 24
                    # for what main was called with.
                    lost = isinstance(place, Absent | OnEntry)
                    shown = "absent" if lost else str(place)
                    yield name, address - function.address, variable.name, shown
    code = program.code_map()
    assert code is not None
    for file in ("one.c", "two.c", "one.cc", "two.cc"):
        yield file, str({Path(at).name: lines for at, lines in code.lines(file).items()})
    for called in ("twice", "t::area"):
        for copy in code.instances(called):
            inside = [(each.name, shape(program, each.type)) for each in code.variables(copy)]
            yield called, copy.address, copy.call, str(inside)
    for name in ("struct node", "struct only_here", "enum color", "t::box<int>", "t::tone"):
        yield name, [shape(program, found) for found in program.types_named(name, None)]
    for name in ("counter", "together", "bee", "t::made"):
        for variable in program.global_variables(name, None):
            yield (
                name,
                str(program.place(variable, None, Address(0))),
                shape(program, variable.type),
            )
    yield "types", sorted(set(program.type_names()) & {"struct node", "t::box<int>", "t::tone"})


def same(plain: Path, other: Path) -> None:
    """Assert that both programs get the same answers, and not just none."""
    expected = list(facts(plain))
    assert len(expected) > 100
    assert list(facts(other)) == expected


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("dwarf", ["4", "5"])
@pytest.mark.parametrize(
    ("language", "compiler", "level"),
    [("c", "gcc", "-O2"), ("c", "clang", "-O2"), ("c++", "gcc", "-O0"), ("c++", "clang", "-O1")],
)
def test_answers_are_those_of_the_plain_build(
    tmp_path: Path, language: str, compiler: str, level: str, dwarf: str, flavour: str
) -> None:
    require(COMPILERS[language, compiler])
    if (dwarf, flavour, compiler) == ("4", "wide", "clang"):
        pytest.skip("clang 14 has 64-bit DWARF of version 4 for no assembler of its own")
    flags = (level, f"-gdwarf-{dwarf}")
    plain = build(tmp_path / "plain", language, compiler, *flags)
    same(plain, build(tmp_path / "other", language, compiler, *flags, *FLAVOURS[flavour]))


@pytest.mark.parametrize(
    ("language", "compiler", "dwarf"),
    # llvm-dwp 14 does not come to an end with units of gcc's DWARF 5.
    [("c", "gcc", "4"), ("c++", "gcc", "4"), ("c", "clang", "5"), ("c++", "clang", "5")],
)
def test_a_package_has_what_its_files_had(
    tmp_path: Path, language: str, compiler: str, dwarf: str
) -> None:
    require(COMPILERS[language, compiler], "llvm-dwp")
    flags = ("-O1", f"-gdwarf-{dwarf}")
    plain = build(tmp_path / "plain", language, compiler, *flags)
    packed = build(tmp_path / "packed", language, compiler, *flags, *FLAVOURS["split-types"])
    subprocess.run(
        ["llvm-dwp", "-e", "program", "-o", "program.dwp"],
        cwd=packed.parent,
        check=True,
        timeout=60,
    )
    for split in packed.parent.glob("*.dwo"):
        split.unlink()
    same(plain, packed)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_partial_units_and_files_for_several_programs(
    tmp_path: Path, language: str, shared: bool
) -> None:
    require(COMPILERS[language, "gcc"], "dwz")
    plain = build(tmp_path / "plain", language, "gcc", "-O1")
    first = build(tmp_path / "first", language, "gcc", "-O1")
    second = build(tmp_path / "second", language, "gcc", "-O1", "-fno-inline")
    files = ["first/program", "second/program"]
    how = ["-r", "-m", "common.debug"] if shared else []
    subprocess.run(["dwz", *how, *files], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "common.debug").exists() == shared
    same(plain, first)
    if shared:
        (tmp_path / "common.debug").unlink()
        with pytest.raises(DebugInfoError, match=r"the alternate debug file \S+ .* is not found"):
            list(facts(second))


def test_a_supplementary_file_of_dwarf_5(tmp_path: Path) -> None:
    require("gcc", "dwz")
    plain = build(tmp_path / "plain", "c", "gcc", "-O1", "-gdwarf-5")
    first = build(tmp_path / "first", "c", "gcc", "-O1", "-gdwarf-5")
    build(tmp_path / "second", "c", "gcc", "-O1", "-gdwarf-5", "-fno-inline")
    files = ["first/program", "second/program"]
    how = ["--dwarf-5", "-r", "-m", "common.debug"]
    subprocess.run(["dwz", *how, *files], cwd=tmp_path, check=True, capture_output=True)
    same(plain, first)


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    require("gcc")
    plain = build(tmp_path / "plain", "c", "gcc", "-O1")
    other = build(tmp_path / "other", "c", "gcc", "-O1", "-Dlabel=text", "-gsplit-dwarf")
    with pytest.raises(AssertionError):
        same(plain, other)


def test_one_missing_file_is_reported_when_it_is_needed(tmp_path: Path) -> None:
    require("gcc")
    path = build(tmp_path / "split", "c", "gcc", "-O1", "-gsplit-dwarf")
    (path.parent / "program-two.dwo").unlink()
    program = DwarfProgram(str(path))
    (visit,) = program.functions_named("visit")
    assert [each.name for each in program.parameters(visit)] == ["n", "depth", "c", "s"]
    assert program.types_named("struct node", visit)
    with pytest.raises(DebugInfoError, match=r"program-two\.dwo is not found") as raised:
        program.functions_named("other")
    assert raised.value.code == "FC0909"
    with pytest.raises(DebugInfoError, match=r"program-two\.dwo is not found"):
        program.types_named("struct only_here", visit)


def test_a_file_of_another_build_is_refused(tmp_path: Path) -> None:
    require("gcc")
    path = build(tmp_path / "split", "c", "gcc", "-O1", "-gsplit-dwarf")
    later = build(tmp_path / "later", "c", "gcc", "-O1", "-gsplit-dwarf", "-Dred=blue")
    (later.parent / "program-one.dwo").replace(path.parent / "program-one.dwo")
    with pytest.raises(DebugInfoError, match=r"program-one\.dwo is of another build") as raised:
        DwarfProgram(str(path)).functions_named("visit")
    assert raised.value.code == "FC0908"
    assert any("no unit of it has the dwo_id" in note for note in raised.value.notes)
