"""Names of C++, looked up as C++ does: every value is what the program printed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.programs import CORPUS
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

FOLDER = CORPUS / "cpp/names"
BUILDS = {
    "g++ -O2": ["g++", "-O2"],
    "clang++ -O0": ["clang++", "-O0"],
    "g++ -O0, DWARF 4": ["g++", "-O0", "-gdwarf-4"],
    "g++ -O2, type units": ["g++", "-O2", "-fdebug-types-section"],
}
REFUSED = {
    "outer::common": "FC0208",  # of two namespaces that a directive names
    "alias::common": "FC0201",
    "::deep": "FC0201",  # of a namespace
    "outer::nothing": "FC0201",
    "alias::outer::both": "FC0201",
    "On": "FC0201",  # a scoped enumeration
    "Up": "FC0201",
    "'third.cc'::hidden": "FC0201",
    "hidden::counter": "FC0201",
    "dynamic_cast<Base *>(d)": "FC0308",
}


@pytest.fixture(scope="module", params=BUILDS)
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    require_uprobes()
    command = BUILDS[request.param]
    require(command[0])
    made = tmp_path_factory.mktemp("names") / "names"
    sources = [str(FOLDER / name) for name in ("names.cc", "other.cc")]
    options = ["-std=c++20", "-g", "-w", *command[1:]]
    subprocess.run([command[0], *options, *sources, "-o", made], check=True, timeout=120)
    return made


def _printed(program: Path) -> dict[str, list[dict[str, object]]]:
    run = subprocess.run([program], capture_output=True, check=True, timeout=60, encoding="utf-8")
    calls: dict[str, list[dict[str, object]]] = {}
    for line in run.stdout.splitlines():
        name, values = line.removeprefix("EVENT ").split(" ", 1)
        calls.setdefault(name, []).append(json.loads(values))
    return calls


def test_values_are_what_the_program_printed(
    capfd: pytest.CaptureFixture[str], program: Path
) -> None:
    printed = _printed(program)
    assert len(printed) == 7
    for function, calls in printed.items():
        assert len(calls) == 3
        where: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl"]
        done = trace(capfd, *calls[0], *where, "--", program)
        assert done.args == calls, (function, done.errors)


def test_a_filter_compares_enumerators(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    asked: list[str | Path] = ["-x", program, "-f", "classes", "--format", "jsonl", "--", program]
    one = trace(capfd, "static_cast<int>(m)", "--filter", "m == On", *asked)
    assert [each["static_cast<int>(m)"] for each in one.args] == [7, 7, 7]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_is_ambiguous_or_not_there_is_refused(program: Path, expression: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        print(fetchc.open(str(program)).probe("classes").compile(expression).fetcharg)
    assert refused.value.diagnostics[0].code == REFUSED[expression]


INHERITED = r"""
volatile int total = 40;
struct Root { int id = 100; virtual ~Root() {} };
struct Base { enum Mode { Off, On = 5 }; enum class Sort { Up = 3, Down }; static const int LIMIT = 12; Mode mode = On; Sort sort = Sort::Down; };
struct Left : virtual Root { int left = 1; };
struct Derived : Base { enum Own { First = 8 }; int own = 9; __attribute__((noinline)) int go(int k); };
struct Both : Left, Base { __attribute__((noinline)) int run(int k); };
int Derived::go(int k) { total = total + k; int a[4] = {k, 1, 2, 3}; total = total + a[k & 3]; return mode + own; }
int Both::run(int k) { total = total + k; return id + left + mode; }
int main() { Derived d; Both b; return d.go(2) + b.run(3) == 0; }
"""  # noqa: E501
SHARED = {
    "static_cast<int>(On)": 5, "static_cast<int>(Mode::On)": 5, "static_cast<int>(Base::On)": 5,
    "static_cast<int>(Base::Mode::On)": 5, "static_cast<int>(Sort::Down)": 4, "LIMIT": 12,
    "Base::LIMIT": 12, "k": 2,
}  # fmt: skip
OF_OBJECT = {"mode": "On", "own": 9, "Base::mode": "On", "this->own": 9}


@pytest.mark.parametrize("command", [["g++", "-O0"], ["g++", "-O2"], ["clang++", "-O1"]], ids=str)
def test_what_is_inherited_needs_no_object(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: list[str]
) -> None:
    # gcc -O2 takes the members apart and drops `this`: what objects share is still to be had.
    require(command[0])
    (tmp_path / "inherited.cc").write_text(INHERITED)
    words = [*command, "-std=c++17", "-g", "-w", "inherited.cc", "-o", "inherited"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    require_uprobes()
    binary = tmp_path / "inherited"
    where: list[str | Path] = ["-x", binary, "--format", "jsonl", "--", binary]
    done = trace(capfd, *SHARED, "total", "::total", "-f", "Derived::go", *where)
    assert done.args == [SHARED | {"total": 40, "::total": 40}], done.errors
    done = trace(capfd, *OF_OBJECT, "k", "-f", "Derived::go", *where)
    (shown,) = done.args
    assert shown.pop("k") == 2
    for text, value in OF_OBJECT.items():
        if text in shown:
            found = shown[text]
            assert (found["name"] if isinstance(found, dict) else found) == value
        else:
            assert command == ["g++", "-O2"]
            assert f"left out `{text}`" in done.errors
    if command[1] == "-O0":  # a virtual base, by the name of a class between
        named = {"Left::id": 100, "this->Left::id": 100, "Root::id": 100, "Left::left": 1}
        assert trace(capfd, *named, "-f", "Both::run", *where).args == [named]


TWICE = """
extern volatile int total;
namespace { __attribute__((noinline)) int helper(int k) { total = total + k; return total * %d; } }
int %s(int k) { return helper(k) + helper(k + 1); }
"""


def test_functions_of_one_symbol_are_picked_by_their_address(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require("g++")
    (tmp_path / "one.cc").write_text(TWICE % (3, "one"))
    (tmp_path / "two.cc").write_text(
        f"volatile int total;\n{TWICE % (5, 'two')}"
        "int one(int);\nint main() { return one(1) + two(2) == 0; }"
    )
    words = ["g++", "-g", "-O0", "one.cc", "two.cc", "-o", "twice"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=60)
    with pytest.raises(fetchc.CompileError) as refused:
        fetchc.open(str(tmp_path / "twice")).probe("helper")
    (said,) = refused.value.diagnostics
    assert said.code == "FC0203"
    assert said.help
    prefix, address, _ = said.help.split("`")
    assert prefix == "pick one by its address: "
    point = fetchc.open(str(tmp_path / "twice")).probe(at=address.removeprefix("--at "))
    assert point.function is not None
    assert point.function.name.endswith("::helper")
    require_uprobes()
    done = trace(capfd, "k@helper", "k@one", "-x", tmp_path / "twice", "--", tmp_path / "twice")
    assert "left out `k@helper`: several functions have that name (FC0203)" in done.errors
