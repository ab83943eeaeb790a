"""Names of C++ that one scope alone does not decide: packs, using-declarations, types by file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

PACKS = """
volatile long sink;
template <class... T> __attribute__((noinline)) void all(int first, T... rest) {
  ((sink += (long)rest), ...);
  sink += first;
}
int main(int n, char **v) { all(n, n + 10, 2.5, (char)n); all(n, v[0]); return 0; }
"""

USING = """
volatile long sink;
namespace a { volatile int x = 77; namespace b { volatile int z = 5; } }
volatile int z = 9;
__attribute__((noinline)) int f(int x, int z) {
  int r = x;
  sink += r;
  {
    using a::x;
    using a::b::z;
    sink += x; // inner
    r += x + z;
  }
  sink += r; // outer
  return r + z;
}
int main(int n, char **v) { return f(n, n); }
"""

USED_WITHIN = """
volatile long sink;
namespace a { volatile int y = 77; }
volatile int y = 9;
__attribute__((noinline)) void f(void) {
  {
    using a::y;
    sink += y; // inner
  }
  sink += y;
}
__attribute__((noinline)) void g(void) {
  using a::y;
  sink += y;
}
int main(void) { f(); g(); return 0; }
"""

CONSTANTS = """
enum { LIMIT = 3 };
enum class Mode { Off, On };
namespace cfg { constexpr int K = 2; }
struct S { static constexpr signed char M = -1; int v[5]; int n; };
__attribute__((noinline)) int use(S *s, int *a, int i) { return s->v[i] + a[1] + cfg::K + S::M; }
int main(int n, char **v) { S s{{1, 2, 3, 4, 5}, LIMIT}; return use(&s, s.v, (int)Mode::On + n); }
"""

FILES = {
    "first.c": """
        struct T { char room[40]; int x; };
        static int own = 1;
        extern volatile long sink;
        int inner(void *);
        __attribute__((noinline)) int outer(void *p) {
          struct T t; t.x = own++; sink += (long)&t; return inner(p) + t.x; }
        int main(int n, char **v) { long b[8] = {n}; return outer(b); }
    """,
    "second.c": """
        struct T { long y; int z; };
        static int own = 2;
        volatile long sink;
        int inner(void *p) {
          struct T *t = p; sink += t->y; own += t->z; sink += own; return t->z; }
    """,
}


def built(folder: Path, compiler: str, sources: dict[str, str], *options: str) -> fetchc.Program:
    require(compiler)
    for name, text in sources.items():
        (folder / name).write_text(text)
    command = [compiler, "-g", *options, "-o", "program", *sources]
    subprocess.run(command, check=True, cwd=folder, timeout=60)
    return fetchc.open(str(folder / "program"))


def answer(probe: fetchc.Probe, text: str) -> str:
    try:
        return probe.compile(text).fetcharg
    except fetchc.CompileError as error:
        return error.diagnostics[0].code


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(("compiler", "name"), [("g++", "args"), ("clang++", "rest")])
def test_elements_of_a_pack_have_numbers(
    compiler: str, name: str, level: str, tmp_path: Path
) -> None:
    # gcc 12 gives the elements no name, clang all of them that of the pack.
    program = built(tmp_path, compiler, {"t.cc": PACKS}, "-std=c++17", level)
    probe = program.probe("all<int, double, char>", kernel="6.1")
    assert answer(probe, f"{name}#0") == "%si:s32"
    assert answer(probe, f"{name}#1") == "FC0402"
    assert answer(probe, f"{name}#2") == "%dx:s8"
    assert answer(probe, f"{name}#3") == "FC0201"
    assert answer(probe, name) == "FC0208"
    listed = [one.name for one in probe.variables()]
    assert listed == ["first", f"{name}#0", f"{name}#1", f"{name}#2"]
    definition = probe.definition([probe.compile(f"{name}#0")], "g", "e")
    assert definition.endswith(f"{name}_0=%si:s32")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_using_declaration_hides_what_is_around_its_block(compiler: str, tmp_path: Path) -> None:
    program = built(tmp_path, compiler, {"t.cc": USING}, "-O0")
    inner = 1 + [text.endswith("// inner") for text in USING.splitlines()].index(True)
    outer = 1 + [text.endswith("// outer") for text in USING.splitlines()].index(True)
    within = program.probe(None, at=f"t.cc:{inner}", kernel="6.1")
    assert answer(within, "x") == answer(within, "a::x")
    assert answer(within, "z") == answer(within, "a::b::z")
    assert answer(within, "::z") != answer(within, "z")
    assert "@" in answer(within, "x")
    for probe in (program.probe(None, at=f"t.cc:{outer}", kernel="6.1"), program.probe("f")):
        assert "@" not in answer(probe, "x") + answer(probe, "z")


def test_where_a_line_and_the_function_begin_at_once_a_hidden_name_is_refused(
    tmp_path: Path,
) -> None:
    text = USING.replace("  sink += r;\n  {", "  {")
    program = built(tmp_path, "g++", {"t.cc": text}, "-O2")
    inner = 1 + [line.endswith("// inner") for line in text.splitlines()].index(True)
    probe = program.probe(None, at=f"t.cc:{inner}", kernel="6.1")
    if probe.offset != program.probe("f", kernel="6.1").offset:
        pytest.skip("the compiler put another instruction first")
    assert answer(probe, "x") == "FC0208"
    assert answer(program.probe("f", kernel="6.1"), "x") == "%di:s32"


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_at_its_ends_a_function_has_no_name_that_an_inner_block_uses(
    compiler: str, level: str, tmp_path: Path
) -> None:
    program = built(tmp_path, compiler, {"t.cc": USED_WITHIN}, level)
    one, other = (answer(program.probe("f"), name) for name in ("::y", "a::y"))
    assert one != other
    assert answer(program.probe("f"), "y") == one
    assert answer(program.probe("f", returns=True), "y") == one
    assert answer(program.probe("g"), "y") == other
    inner = 1 + [text.endswith("// inner") for text in USED_WITHIN.splitlines()].index(True)
    at_line = program.probe("f", at=f":{inner}")
    same = at_line.offset == program.probe("f").offset
    assert answer(at_line, "y") == ("FC0208" if same else other)
    assert answer(at_line, "a::y") == other


@pytest.mark.parametrize("point", ["copy", "line"])
def test_types_and_statics_are_of_the_file_whose_code_was_inlined(
    point: str, tmp_path: Path
) -> None:
    program = built(tmp_path, "gcc", FILES, "-O2", "-flto")
    outer = program.probe("outer", kernel="6.1")
    assert answer(outer, "sizeof(struct T)") == "\\44:u64"
    within = program.probe("inner%inline", kernel="6.1")
    if point == "line":
        lines = FILES["second.c"].splitlines()
        line = 1 + next(number for number, text in enumerate(lines) if "t->y" in text)
        within = program.probe(None, at=f"second.c:{line}", kernel="6.1")
    assert answer(within, "sizeof(struct T)") == "\\16:u64"
    assert answer(within, "own") != answer(outer, "own")


def test_a_container_without_indices_has_its_ends(tmp_path: Path) -> None:
    require("g++")
    (tmp_path / "t.cc").write_text(
        "#include <deque>\n#include <list>\nstd::deque<int> d(9); std::list<int> l(9);\n"
        "int main() { return d.size() + l.size(); }\n"
    )
    command = ["g++", "-g", "-O1", "t.cc", "-o", "t"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "t")).probe("main", kernel="6.1")
    with pytest.raises(fetchc.CompileError, match="FC0314"):
        probe.compile("d[0:3]")  # a trace walks it
    with pytest.raises(fetchc.CompileError, match="FC0304") as refused:
        probe.compile("l[3]")
    assert "`.front()`, `.back()`" in (refused.value.diagnostics[0].help or "")


BASES = """
struct Root { int id; };
struct Base : Root { int own; };
struct Left : Base { int left; };
struct Right : Base { int right; };
struct Both : Left, Right { int both; int go(); };
__attribute__((noinline)) int Both::go() { return Left::id; }
__attribute__((noinline)) int ask(Both *p) { return p->Right::own; }
int main() { static Both both; return both.go() + ask(&both); }
"""


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        ("ask", "p->Left::Base::id", "+0(%di):s32"),
        ("ask", "p->Right::Base::Root::id", "+12(%di):s32"),
        ("ask", "p->Both::Right::own", "+16(%di):s32"),
        ("ask", "p->Right::Right::Base::Base::own", "+16(%di):s32"),
        ("ask", "p->Base::Root::id", "FC0208"),  # of two
        ("ask", "p->Left::Right::own", "FC0302"),
        ("ask", "p->Left::Base::right", "FC0302"),
        ("go", "Right::Base::id", "+12(%di):s32"),
        ("go", "this->Left::Base::Root::id", "+0(%di):s32"),
        ("go", "Base::Root::id", "FC0208"),
        ("go", "Left::Right::own", "FC0201"),
    ],
)
def test_a_member_is_named_through_bases_of_bases(
    function: str, text: str, expected: str, tmp_path: Path
) -> None:
    program = built(tmp_path, "g++", {"t.cc": BASES}, "-O1")
    name = "Both::go" if function == "go" else function
    assert answer(program.probe(name, kernel="6.1"), text) == expected


@pytest.fixture(scope="module")
def constants(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    require("gcc")
    folder = tmp_path_factory.mktemp("constants")
    (folder / "a.cc").write_text(CONSTANTS)
    command = ["g++", "-g", "-O1", "-o", "a", "a.cc"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return fetchc.open(str(folder / "a")).probe("use", kernel="6.1")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("s->v[LIMIT]", "s->v[3]"),
        ("s->v[Mode::On]", "s->v[1]"),
        ("s->v[cfg::K]", "s->v[2]"),
        ("a[S::M]", "a[-1]"),
        ("s->v[cfg::K*2 - LIMIT]", "s->v[1]"),
        ("s->v[-S::M]", "s->v[1]"),
        ("s->v[sizeof(short)]", "s->v[2]"),
        ("s->v[sizeof(s->v[LIMIT])]", "s->v[4]"),
    ],
)
def test_an_index_may_be_the_name_of_a_constant(
    constants: fetchc.Probe, text: str, number: str
) -> None:
    assert constants.compile(text).fetcharg == constants.compile(number).fetcharg


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("s->v[i]", "FC0101", "an index must be a number"),
        ("s->v[s->n]", "FC0101", "an index must be a number"),
        ("s->v[i+1]", "FC0101", "an index must be a number"),
        ("s->v[1/0]", "FC0308", "division by zero"),
        ("s->v[s]", "FC0303", "an index is an integer, and this is a `S *`"),
        ("s->v[LIMIT+2]", "FC0303", "the index 5 is outside of `int[5]`"),
        ("s->v[nope]", "FC0201", "no variable `nope` is visible at `use`"),
        ("nope[i]", "FC0201", "no variable `nope` is visible at `use`"),
        ("s->v[0:1:2]", "FC0101", "a range has two numbers"),
    ],
)
def test_no_index_varies(constants: fetchc.Probe, text: str, code: str, message: str) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        constants.compile(text)
    (said,) = caught.value.diagnostics
    assert (said.code, said.message) == (code, message)
