"""Random programs in which compilers pass less than the source says: values as the program prints.

``FETCHC_SEEDS=1000-1040`` draws others, ``FETCHC_LONG=1`` more builds of each.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.c_shapes import Function, drawn
from tests.support.seeds import seeds
from tests.support.toolchains import ROOT, ZIG, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

FUNCTIONS = 40 if os.environ.get("FETCHC_LONG") else 14  # a program
CEILING = 0.03  # of the integers and pointers that exported functions use, those refused
MERGED = {"FC0624", "FC0628"}
STALE = "FC0634"  # an assignment before the line may not show
COPIED = {"FC0603", "FC0617"}  # calls that the probe does not see
WHOLE = {"-flto", "-fwhole-program"}  # nothing is exported
NOWHERE = "the compiler gives it no location in the function: optimized out"
ENVIRONMENT = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / ".toolchains/cache-zig")}
ZIG_C = (str(ZIG), "cc", "-fno-sanitize=undefined", "-fno-stack-protector")
BUILDS = [
    ("gcc", "-O2"),
    ("gcc", "-O2", "-fsanitize=address"),
    ("gcc", "-O2", "-flto"),
    ("g++", "-O2"),
    ("clang", "-O2"),
    ("clang++", "-O1"),
    (*ZIG_C, "-O2"),
]
MORE = [
    ("gcc", "-O1"),
    ("gcc", "-O3"),
    ("gcc", "-Os"),
    ("gcc", "-O2", "-fwhole-program"),
    ("gcc", "-O2", "-fsanitize=undefined"),
    ("g++", "-O2", "-flto"),
    ("g++", "-O0"),
    ("clang", "-O0"),
    ("clang", "-O1", "-gdwarf-4"),
    ("clang", "-O3"),
    ("clang", "-Os"),
    ("clang++", "-O2"),
    (*ZIG_C, "-Os"),
]


def named(build: tuple[str, ...]) -> str:
    return "".join([Path(build[0]).name, *[word for word in build[1:] if word[:2] != "-fno"]])


def built(folder: Path, build: tuple[str, ...], seed: int) -> tuple[Path, list[Function]]:
    require(build[0])
    plus = "++" in " ".join(build[:2])
    source, functions = drawn(f"{seed} {named(build)}", FUNCTIONS, plus)
    name = f"shapes.{'cc' if plus else 'c'}"
    (folder / name).write_text(source)
    words = [*build, "-g", "-w", *(["-std=c++17"] if plus else []), "-o", "shapes", name]
    subprocess.run(words, check=True, cwd=folder, timeout=120, env=ENVIRONMENT)
    return folder / "shapes", functions


def accepted(
    program: fetchc.Program, one: Function, refused: Counter[str], line: int = 0
) -> tuple[list[str], set[str], set[str]]:
    """What of the function, or of its line, can be fetched, the warnings, and what is nowhere.

    Among the warnings are the expressions that may show what was passed and not what was assigned.
    What is nowhere the debug information has no location of, anywhere in the function.
    """
    found, warned, nowhere = [], set(), set()
    at = f":{line}" if line else None
    for text in one.marked if line else one.asked:
        try:
            probe = program.probe(one.name, at=at, returns=text == "$retval")
            argument = probe.compile(text)
            argument.fetcharg  # noqa: B018
        except fetchc.CompileError as error:
            refused[f"{'line ' * bool(line)}{error.diagnostics[0].code}"] += 1
            if NOWHERE in error.diagnostics[0].notes:
                nowhere.add(text)
            continue
        warned |= {warning.code for warning in probe.warnings}
        if STALE in {warning.code for warning in argument.warnings}:
            warned.add(text)
        found.append(text)
    return found, warned, nowhere


def is_exported(program: fetchc.Program, one: Function, whole: bool) -> bool:
    """Whether others may call it, so that what it uses is passed as the convention says.

    Of a copy that the compiler made for the calls of the file, the debug information tells at most.
    Of a ``whole`` program nothing is exported, and what the source exports counts.
    """
    if one.declaration.startswith("static"):
        return False
    try:
        function = program.probe(one.name).function
    except fetchc.CompileError:
        return False
    return function is not None and (function.external or whole)


def printed(lines: list[str]) -> dict[str, list[dict[str, int]]]:
    """What the program passed, by function."""
    found = defaultdict(list)
    for line in lines:
        _, name, values = line.split(" ", 2)
        found[name].append(json.loads(values))
    return found


def unlike(
    one: Function,
    events: list[dict[str, Any]],
    wanted: list[dict[str, int]],
    warned: set[str],
    entered: list[dict[str, int]] | None = None,
) -> list[str]:
    """What the trace of a function shows that its calls did not pass.

    What is in ``warned`` may also be as the calls passed it, which is ``entered``.
    """
    if len(events) > len(wanted):
        return [] if warned & MERGED else [f"{one.name}: calls of another function"]
    if len(events) < len(wanted):
        return [] if warned & (COPIED | MERGED) else [f"{one.name}: calls that are not seen"]
    return [
        f"{one.name}: {text} is {value!r}, not {right[text]}"
        for shown, right, before in zip(events, wanted, entered or wanted, strict=True)
        for text, value in shown.items()
        if not isinstance(value, int)
        or (
            (value - right[text]) % (1 << 64)
            and (text not in warned or (value - before[text]) % (1 << 64))
        )
    ]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(
    "build", BUILDS + [pytest.param(one, marks=pytest.mark.long) for one in MORE], ids=named
)
def test_what_is_shown_was_passed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], build: tuple[str, ...], seed: int
) -> None:
    require_uprobes()
    binary, functions = built(tmp_path, build, seed)
    program = fetchc.open(str(binary))
    whole = not WHOLE.isdisjoint(build)
    wrong: list[str] = []
    refused: Counter[str] = Counter()
    missing: list[str] = []
    compared = needed = 0
    words: list[str] = []
    known: dict[str, set[str]] = {}
    lines: dict[str, set[str]] = {}
    for one in functions:
        found, known[one.name], nowhere = accepted(program, one, refused)
        words += [f"{text} @ {one.name}{'%return' if text == '$retval' else ''}" for text in found]
        if one.line:
            found_there, lines[one.name], _ = accepted(program, one, refused, one.line)
            words += [f"{text} @ {one.name}:{one.line}" for text in found_there]
        if is_exported(program, one, whole):
            wanted = one.needed - nowhere - one.returned if whole else one.needed
            needed += len(wanted)
            missing += [f"{one.name} {text}" for text in sorted(wanted - set(found))]
    done = trace(capfd, *words, "-x", binary, "--unsafe-return", "--format", "jsonl", "--", binary)
    passed = printed(done.program)
    for one in functions:
        for kind, end, name in (
            ("entry", "", one.name),
            ("return", "%return", one.name),
            ("line", f":{one.line}", f"{one.name}@"),
        ):
            events = [
                each["args"]
                for each in done.objects
                if str(each.get("function")).partition("<")[0] == one.name and each["kind"] == kind
            ]
            if any(word.endswith(f"@ {one.name}{end}") for word in words):
                warned = lines[one.name] | known[one.name] if kind == "line" else known[one.name]
                wrong += unlike(one, events, passed[name], warned, passed[one.name])
                compared += sum(len(event) for event in events)
    print(f"{named(build)} seed {seed}: {compared} values, refused {dict(refused)}")
    print("wrong:", *wrong, sep="\n  ")
    print(f"of {needed} that are used {len(missing)}: {missing}")
    assert wrong == []
    assert compared > FUNCTIONS
    assert needed > 0  # else the ceiling says nothing
    assert len(missing) <= CEILING * needed


UNUSED = """
volatile long sink;
struct big { long one, two, three; };
__attribute__((noinline)) void mark(void) { sink++; }
__attribute__((noinline)) long unused(long n, struct big b) {
  mark();
  return n;
}
__attribute__((noinline)) long used(long n, struct big b) {
  mark();
  return n + b.two;
}
int main(void) {
  struct big b = {sink + 1, sink + 2, sink + 3};
  return unused(5, b) + used(5, b);
}
"""


@pytest.mark.parametrize("compiler", ["clang", "gcc"])
def test_a_structure_that_callers_leave_out_is_refused_at_lines_too(
    compiler: str, tmp_path: Path
) -> None:
    require(compiler)
    (tmp_path / "unused.c").write_text(UNUSED)
    words = [compiler, "-O2", "-g", "-o", "unused", "unused.c"]
    subprocess.run(words, check=True, cwd=tmp_path, timeout=60)
    program = fetchc.open(str(tmp_path / "unused"))
    assert program.probe("used", at=":10").compile("b.two").fetcharg
    at = program.probe("unused", at=":6")
    if compiler == "gcc":
        assert at.compile("b.two").fetcharg
        return
    with pytest.raises(fetchc.CompileError) as caught:
        at.compile("b.two")
    (said,) = caught.value.diagnostics
    assert said.code == "FC0401"
    assert "the code does not show that the function uses it" in said.message


HALF = """
volatile long sink;
__attribute__((noinline)) static long half(long a, long b, long c, long d, long e, __int128 n) {
  sink += a + b + c + d + e;
  return (long)n;
}
int main(void) { return half(sink, sink, sink, sink, sink, ((__int128)sink << 64) + sink); }
"""


def test_half_of_a_number_that_a_local_function_uses_shows_nothing_of_the_other(
    tmp_path: Path,
) -> None:
    # One half is passed in the last register, the other on the stack, where callers may leave it.
    require("clang")
    (tmp_path / "half.c").write_text(HALF)
    words = ["clang", "-O1", "-g", "-o", "half", "half.c"]
    subprocess.run(words, check=True, cwd=tmp_path, timeout=60)
    probe = fetchc.open(str(tmp_path / "half")).probe("half")
    assert probe.compile("n.low").fetcharg == "%r9:u64"
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("n.high")
    assert caught.value.diagnostics[0].code == "FC0401"


LOST = """
volatile long sink, base;
struct pair { int one; short two; };
__attribute__((noinline)) void mark(void) { sink++; }
__attribute__((noinline)) void f(long a, long b, __int128 n) {
  sink += base; sink += (long)n;
  mark();
}
__attribute__((noinline)) void g(__int128 n, short a, struct pair p) {
  sink += (long)n;
  mark();
  sink += p.one;
}
int main(void) { f(1, 2, base); g(base, 1, (struct pair){base, base}); return 0; }
"""


def test_what_gcc_describes_in_a_register_that_has_another_value_is_refused(
    tmp_path: Path,
) -> None:
    # The code loads `base` into the register of n.high, and extends that of p.one in place.
    require("gcc")
    (tmp_path / "lost.c").write_text(LOST)
    for option, name, line, lost, there in (
        ("-O1", "f", 7, "n.high", {"n.low": "%dx:u64"}),
        ("-O2", "g", 11, "p.two", {"p.one": "%cx:s32"}),
    ):
        words = ["gcc", option, "-g", "-o", "lost", "lost.c"]
        subprocess.run(words, check=True, cwd=tmp_path, timeout=60)
        program = fetchc.open(str(tmp_path / "lost"))
        assert program.probe(name).compile(lost).fetcharg
        probe = program.probe(name, at=f":{line}")
        for text, fetcharg in there.items():
            assert probe.compile(text).fetcharg == fetcharg
        with pytest.raises(fetchc.CompileError) as caught:
            probe.compile(lost)
        assert caught.value.diagnostics[0].code == "FC0401"


CALLED = """
volatile long sink;
struct pair { unsigned short one; double two; };
__attribute__((noinline)) void mark(void) { sink = 3; }
__attribute__((noinline)) long f(long a, struct pair p) {
  sink++;
  sink += (long)p.one;
  sink += a;
  mark();
  return a;
}
int main(void) { return f(1, (struct pair){2, 3}) == 0; }
"""


def test_what_gcc_describes_in_a_register_that_a_call_may_have_changed_is_refused(
    tmp_path: Path,
) -> None:
    # Where the addition overflows, the code calls UBSan's handler and comes back.
    require("gcc")
    (tmp_path / "called.c").write_text(CALLED)
    words = ["gcc", "-O2", "-g", "-fsanitize=undefined", "-o", "called", "called.c"]
    subprocess.run(words, check=True, cwd=tmp_path, timeout=60)
    program = fetchc.open(str(tmp_path / "called"))
    assert program.probe("f", at=":7").compile("p.one").fetcharg
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("f", at=":8").compile("p.one")
    (said,) = caught.value.diagnostics
    assert said.code == "FC0401"
    assert "a call may have changed" in said.message


CLONED = """
volatile long sink, base;
struct two { long one; long two; };
__attribute__((noinline)) static void first(struct two v, long k) {
  sink += k; sink += v.two; sink += v.one;
}
__attribute__((noinline)) static void moved(long k, struct two v) {
  sink += k; sink += v.two; sink += v.one;
}
__attribute__((noinline)) static void swapped(__int128 n, long k) {
  n += base; sink += k; sink += (long)n; sink += (long)(n >> 64);
}
int main(void) {
  for (int n = 0; n < 2; n++) {
    first((struct two){base, n}, 3);
    moved(3, (struct two){base, n});
    swapped(base + n, 3);
  }
  return 0;
}
"""


def test_a_clone_takes_what_its_code_reads_in_registers_that_it_never_writes(
    tmp_path: Path,
) -> None:
    # gcc describes two registers all over the function, also those that the code fills first.
    require("gcc")
    (tmp_path / "cloned.c").write_text(CLONED)
    words = ["gcc", "-O2", "-g", "-o", "cloned", "cloned.c"]
    subprocess.run(words, check=True, cwd=tmp_path, timeout=60)
    program = fetchc.open(str(tmp_path / "cloned"))
    for name in ("first", "moved"):
        probe = program.probe(name)
        assert probe.function is not None
        assert ".constprop." in probe.function.symbol
        found = [probe.compile(text).fetcharg for text in ("v.one", "v.two")]
        assert found == ["%di:s64", "%si:s64"]
    for text in ("n.low", "n.high"):
        with pytest.raises(fetchc.CompileError) as caught:
            program.probe("swapped").compile(text)
        assert caught.value.diagnostics[0].code == "FC0401"


def test_a_wrong_value_is_noticed() -> None:
    one = Function("f", "", "", [], ["v0"])
    assert unlike(one, [{"v0": 3}], [{"v0": 3}], set()) == []
    assert unlike(one, [{"v0": -1}], [{"v0": (1 << 64) - 1}], set()) == []
    assert unlike(one, [{"v0": 3}], [{"v0": 4}], set()) == ["f: v0 is 3, not 4"]
    assert unlike(one, [{"v0": 3}], [{"v0": 4}], {"v0"}, [{"v0": 3}]) == []
    assert unlike(one, [{"v0": 5}], [{"v0": 4}], {"v0"}, [{"v0": 3}]) == ["f: v0 is 5, not 4"]
    assert unlike(one, [{"v0": None}], [{"v0": 4}], set()) == ["f: v0 is None, not 4"]
    assert unlike(one, [{}, {}], [{}], set()) == ["f: calls of another function"]
    assert unlike(one, [{}, {}], [{}], {"FC0628"}) == []
    assert unlike(one, [], [{}], {"FC0624"}) == []
    assert unlike(one, [], [{}], set()) == ["f: calls that are not seen"]
