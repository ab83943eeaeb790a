"""Functions that a linker made one of (--icf): each by its own types, or by none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct A { int x, y, wanted; };
struct B { int x, wanted, y; };
#define APART __attribute__((noinline))
APART int get_a(struct A *p) { return p->x * 7 + 3; }
APART int get_b(struct B *p) { return p->x * 7 + 3; }
APART int alone(struct B *p) { return p->x * 9 + 1; }
int other(struct B *p) __attribute__((alias("alone")));
#ifdef __cplusplus
}
template <class T> struct Pointer {
    T *p;
    APART int get() { return p->x * 5 + 1; }
};
extern "C" {
#endif
int main(int c, char **v) {
    struct A a = {c, 2, 3};
    struct B b = {c, 2, 3};
    int more = 0;
#ifdef __cplusplus
    Pointer<A> first = {&a};
    Pointer<B> second = {&b};
    more = first.get() + second.get();
#endif
    return get_a(&a) + get_b(&b) + alone(&b) + other(&b) + more;
}
"""


def built(folder: Path, compiler: str, linker: str) -> fetchc.Program:
    require(compiler, f"ld.{linker}")
    plus = "++" in compiler
    source = folder / ("one.cc" if plus else "one.c")
    source.write_text(f'extern "C" {{ {SOURCE} }}' if plus else SOURCE)
    options = ["-g", "-O1", "-ffunction-sections", f"-fuse-ld={linker}", "-Wl,--icf=all"]
    if not compiler.startswith("clang"):
        options.append("-fno-ipa-icf")
    command = [compiler, *options, source.name, "-o", "one"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return fetchc.open(str(folder / "one"))


def asked(program: fetchc.Program, function: str, expression: str) -> tuple[str, list[str]]:
    """The fetch-arg or the code of the refusal, and what is said of the point."""
    point = program.probe(function, kernel="6.1")
    said = [f"{one.code} {one.message}" for one in point.warnings]
    try:
        return point.compile(expression).fetcharg, said
    except fetchc.CompileError as refusal:
        return refusal.diagnostics[0].code, said


@pytest.mark.parametrize(("linker", "second"), [("gold", "+4(%di):s32"), ("lld", "FC0903")])
def test_what_a_probe_of_one_sees(tmp_path: Path, linker: str, second: str) -> None:
    program = built(tmp_path, "clang", linker)
    (warnings,) = asked(program, "get_a", "p->wanted")[1]
    assert warnings == "FC0624 calls of `get_b` are seen too"
    assert asked(program, "get_a", "p->wanted")[0] == "+8(%di):s32"
    # lld says of what it folded that it is nowhere; gold's entry has the place.
    assert asked(program, "get_b", "p->wanted")[0] == second
    assert asked(program, "get_b", "$arg1")[0] == "%di:u64"


@pytest.mark.parametrize("linker", ["gold", "lld"])
def test_another_name_is_no_other_function(tmp_path: Path, linker: str) -> None:
    program = built(tmp_path, "clang", linker)
    for name in ("alone", "other"):
        assert asked(program, name, "p->wanted") == ("+4(%di):s32", [])


def test_instances_of_a_template(tmp_path: Path) -> None:
    program = built(tmp_path, "clang++", "lld")
    found, said = asked(program, "Pointer<A>::get", "p->wanted")
    assert (found, said) == (
        "+8(+0(%di)):s32",
        ["FC0624 calls of `Pointer<B>::get()` are seen too"],
    )
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("Pointer<B>::get", kernel="6.1").compile("p->wanted")
    (one,) = caught.value.diagnostics
    assert (one.code, one.message) == (
        "FC0903",
        "`Pointer<B>::get()` has no debug information, so no name is known there",
    )


SAME = """
#include <stdio.h>
struct A { int x, y, wanted; };
struct B { int x, wanted, y; };
#define APART __attribute__((noinline))
APART int get_a(struct A *p, int k) { printf("k %d", k); return k * 7 + 3; }
static APART int get_b(struct B *p, int k) { printf("k %d", k); return k * 7 + 3; }
int main(int c, char **v) {
    struct A a = {c, 2, 3};
    struct B b = {c, 22, 33};
    return get_a(&a, 1) + get_b(&b, 2);
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_functions_that_gcc_made_one_of(tmp_path: Path, compiler: str) -> None:
    # -fipa-icf, on by -O2: get_b is an alias of get_a, and the types are its own.
    require(compiler)
    plus = compiler == "g++"
    source = tmp_path / ("same.cc" if plus else "same.c")
    source.write_text(SAME.replace("APART int", 'extern "C" APART int', 1) if plus else SAME)
    subprocess.run(
        [compiler, "-g", "-O2", source.name, "-o", "same"], cwd=tmp_path, check=True, timeout=60
    )
    program = fetchc.open(str(tmp_path / "same"))
    other = [f"FC0624 calls of `{'get_b(B*, int)' if plus else 'get_b'}` are seen too"]
    assert asked(program, "get_a", "p->wanted") == ("+8(%di):s32", other)
    warnings = ["FC0624 calls of `get_a` are seen too"]
    assert asked(program, "get_b", "p->wanted") == ("+4(%di):s32", warnings)
    assert asked(program, "get_b", "k") == ("%si:s32", warnings)
    assert program.probe("get_b", returns=True, kernel="6.1").compile("$retval").fetcharg
    with pytest.raises(fetchc.CompileError, match="FC0401"):
        program.probe("get_b", at="+1", kernel="6.1").compile("p->wanted")


ONE = """
#include <stdio.h>
struct A { int x, y, wanted; };
struct B;
__attribute__((noinline)) int get_a(struct A *p, int k) { printf("k %d", k); return k + p->x; }
int get_b(struct B *p, int k);
struct B *made(void);
int main(int c, char **v) {
    struct A a = {c, 2, 3};
    return get_a(&a, c + 1) + get_b(made(), c);
}
"""
OTHER = """
#include <stdio.h>
struct B { int x, wanted, y; };
__attribute__((noinline)) int get_b(struct B *p, int k) { printf("k %d", k); return k + p->x; }
struct B *made(void) { static struct B b = {1, 2, 3}; return &b; }
"""


def test_functions_that_gcc_made_one_of_at_link_time(tmp_path: Path) -> None:
    # The entry of get_b is in the unit of its own file. Several partitions keep its symbol.
    require("gcc")
    (tmp_path / "one.c").write_text(ONE)
    (tmp_path / "other.c").write_text(OTHER)
    command = ["gcc", "-g", "-O2", "-flto", "-flto-partition=max", "one.c", "other.c", "-o", "one"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True)
    program = fetchc.open(str(tmp_path / "one"))
    warnings = ["FC0624 calls of `get_b` are seen too"]
    assert asked(program, "get_a", "p->wanted") == ("+8(%di):s32", warnings)
    warnings = ["FC0624 calls of `get_a` are seen too"]
    assert asked(program, "get_b", "p->wanted") == ("+4(%di):s32", warnings)


METHODS = """
namespace n {
struct Base { int value; virtual Base *self(int k) { return nullptr; } };
struct A : Base { Base *self(int k) override { return k > 3 ? this : nullptr; } };
struct B : Base { Base *self(int k) override { return k > 3 ? this : nullptr; } };
struct C : Base { Base *self(int k) override { return k > 3 ? this : nullptr; } };
Base *made(int n) { return n > 5 ? new A : n > 3 ? (Base *)new B : new C; }
}
int main(int n, char **) { return n::made(n)->self(n) != nullptr; }
"""


def test_an_address_that_several_methods_share_at_link_time(tmp_path: Path) -> None:
    # One of them has the entry, within a copy of the namespace; the symbol of another comes first.
    require("g++")
    (tmp_path / "one.cc").write_text(METHODS)
    command = ["g++", "-g", "-O2", "-flto", "-flto-partition=max", "one.cc", "-o", "one"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True)
    program = fetchc.open(str(tmp_path / "one"))
    symbols = subprocess.run(
        ["nm", "one"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    found = [line.split()[0] for line in symbols.stdout.splitlines() if line.endswith("4selfEi")]
    address = max(found, key=found.count)
    assert found.count(address) > 1
    point = program.probe(None, f"0x{address}", kernel="6.1")
    assert {one.name: one.where for one in point.variables()}["k"] == "in %si"
