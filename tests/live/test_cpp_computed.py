"""What a trace computes of library objects of C++: every value is what the program printed."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.live.cpp_library import BUILDS, PARAMETERS, built, has_old_lists, printed
from tests.live.traced import trace
from tests.support.tools import bpftrace_version, run_bpftrace

pytestmark = pytest.mark.live

FUNCTIONS = ("deques", "elements", "packed", "adapted", "wide", "boosted")
# What one fetch-arg cannot be, of both libraries.
COMPUTED = ("of.vector.empty()", "of.vector.size()", "of.priorities.size()")


@pytest.fixture(scope="module", params=PARAMETERS)
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return built("computed.cc", request.param, tmp_path_factory.mktemp("computed"))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_are_what_the_program_printed(
    capfd: pytest.CaptureFixture[str], program: Path, function: str
) -> None:
    calls = printed(program)[function]
    assert len(calls) == 6
    if function == "adapted" and has_old_lists(program):
        probe = fetchc.open(str(program)).probe(function)
        for text in ("of.queue.size()", "of.list.empty()"):
            with pytest.raises(fetchc.CompileError, match="cannot be fetched"):
                probe.compile(text)
            for one in calls:
                del one[text]
    wanted: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl", "--", program]
    names = list(calls[0])
    halves = function in ("deques", "elements")  # many places of each element
    for some in filter(None, (names[:12], names[12:]) if halves else (names,)):
        done = trace(capfd, *some, *wanted)
        assert done.args == [{name: one[name] for name in some} for one in calls], done.errors


def test_a_mutex_is_the_thread_that_has_it(
    capfd: pytest.CaptureFixture[str], program: Path
) -> None:
    done = trace(
        capfd, "of.mutex", "-x", program, "-f", "packed", "--format", "jsonl", "--", program
    )
    owners = [event["args"]["of.mutex"] for event in done.objects]
    assert owners == [event["thread"] for event in done.objects]
    assert len(owners) == 6


def test_sums_and_filters_of_sizes(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    calls = printed(program)["deques"]
    sizes = [call["of.ints.size()"] for call in calls]
    asked: list[str | Path] = ["-x", program, "-f", "deques", "--format", "jsonl"]
    done = trace(capfd, "--sum", "of.ints.size()", *asked, "--", program)
    (sums,) = [one for one in done.objects if one.get("sum") == "of.ints.size()"]
    assert sums["total"] == sum(one for one in sizes if isinstance(one, int))
    few = ["--filter", "of.ints.size() == 1", *asked, "--", program]
    done = trace(capfd, "of.ints.size()", *few)
    assert [one["of.ints.size()"] for one in done.args] == [one for one in sizes if one == 1]


@pytest.mark.parametrize("expression", COMPUTED)
def test_one_fetch_arg_is_refused_with_what_it_is_made_of(program: Path, expression: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        print(fetchc.open(str(program)).probe("adapted").compile(expression).fetcharg)
    (told_so,) = refused.value.diagnostics
    assert told_so.code == "FC0312"
    assert "(%di)" in told_so.notes[0]


@pytest.mark.parametrize(
    ("expression", "libstdcxx", "libcxx"),
    [
        ("of.turned[3]", "one of 4 places", "a division of `__start_`"),
        ("of.turned[16]", "one of 17 places", "a division of `__start_`"),
        ("of.turned[-1]", "before the first element", "a division of `__start_`"),
        ("of.middles[9].id", "one of 4 places", "a division of `__start_`"),
        ("of.large[1].id", "in this place, or in none", "a division of `__start_`"),
        ("of.turned[1:3]", "begins with its first element", "begins with its first element"),
    ],
)
def test_an_element_of_a_deque_is_in_one_of_several_places(
    program: Path, expression: str, libstdcxx: str, libcxx: str
) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        fetchc.open(str(program)).probe("elements").compile(expression)
    (told_so,) = refused.value.diagnostics
    types = " ".join(fetchc.open(str(program)).types())
    assert told_so.primary is not None
    said = f"{told_so.message}, {told_so.primary.text}"
    assert (libcxx if "std::__1" in types else libstdcxx) in said


def test_blocks_of_another_size_are_a_fault(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # libstdc++'s deque has 512 bytes in a block unless the program says otherwise.
    made = built("computed.cc", BUILDS[0], tmp_path, "-D_GLIBCXX_DEQUE_BUF_SIZE=1024")
    asked: list[str | Path] = ["-x", made, "-f", "deques", "--format", "jsonl", "--", made]
    done = trace(capfd, "of.ints", "of.ints.back()", "of.ints.empty()", "of.ints[1]", *asked)
    assert [list(one.values()) for one in done.args] == [[None] * 4] * 6


@pytest.mark.parametrize(
    ("function", "some"),
    [("adapted", ("of.priorities.size()", "of.vector.empty()", "of.list.empty()")),
     ("packed", ("of.flags.size()", "of.none.empty()"))],
)  # fmt: skip
def test_bpftrace_computes_sizes(function: str, some: tuple[str, ...], tmp_path: Path) -> None:
    version = bpftrace_version()
    binary = built("computed.cc", "g++, -O0", tmp_path)
    probe = fetchc.open(str(binary)).probe(function)
    calls = printed(binary)[function]
    taken: dict[str, fetchc.Argument] = {}
    for text in calls[0]:
        try:
            argument = probe.compile(f"v{len(taken)}={text}", computes=True)
        except fetchc.CompileError:
            continue  # one of several values
        if argument.whole.computed is not None:
            taken[text] = argument
    assert taken.keys() >= set(some)
    twice = probe.compile(f"twice={some[0]} * 2 + 1", computes=True)
    listed = [*taken.values(), twice]
    program = probe.written("bpftrace", listed, "g", "sizes", version).text
    reported, _ = run_bpftrace(program, binary, tmp_path)
    (hits,) = reported.values()
    assert len(hits) == len(calls)
    for hit, call in zip(hits, calls, strict=True):
        assert {text: int(hit[f"v{at}"], 0) for at, text in enumerate(taken)} == {
            text: call[text] for text in taken
        }
        assert int(hit["twice"]) == 2 * int(str(call[some[0]])) + 1
