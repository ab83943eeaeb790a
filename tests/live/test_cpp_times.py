"""Lengths of time of ``std::chrono`` are shown with their unit; in JSON they are the numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <chrono>
#include <cstdio>
#include <ratio>
#include <type_traits>
#include <vector>
namespace c = std::chrono;
struct Times {
    c::nanoseconds nano; c::microseconds micro; c::milliseconds milli; c::seconds second;
    c::minutes minute; c::hours hour; c::duration<int, std::ratio<86400>> day;
    c::duration<double> real; c::duration<float, std::milli> part;
    c::duration<short, std::ratio<1, 30>> frame; c::duration<unsigned, std::ratio<5>> five;
    c::steady_clock::time_point point; std::vector<c::milliseconds> several;
};
template <class R, class P> void show(c::duration<R, P> given) {
    using period = typename P::type;
    const char *unit = std::is_same<period, std::nano>() ? "ns" : std::is_same<period, std::micro>() ? "us"
        : std::is_same<period, std::milli>() ? "ms" : std::is_same<period, std::ratio<1>>() ? "s"
        : std::is_same<period, std::ratio<60>>() ? "min" : std::is_same<period, std::ratio<3600>>() ? "h"
        : std::is_same<period, std::ratio<86400>>() ? "d" : nullptr;
    if (std::is_floating_point<R>()) std::printf("%g", double(given.count()));
    else std::printf("%lld", (long long)given.count());
    if (unit) std::printf("%s ", unit);
    else if (period::den == 1) std::printf("[%lld]s ", (long long)period::num);
    else std::printf("[%lld/%lld]s ", (long long)period::num, (long long)period::den);
}
extern "C" __attribute__((noinline)) void look(Times *t, c::milliseconds passed)
{ asm volatile("" : : "g"(t), "g"(passed.count()) : "memory"); }
int main() {
    const long given[] = {0, 1500, -7};
    for (long n : given) {
        std::printf("EVENT ");
        Times t{c::nanoseconds(n), c::microseconds(n), c::milliseconds(n), c::seconds(n),
            c::minutes(n), c::hours(n), decltype(Times::day)(int(n)), c::duration<double>(n / 4.0),
            decltype(Times::part)(n / 4.0f), decltype(Times::frame)(short(n)),
            decltype(Times::five)(unsigned(n < 0 ? 7 : n)), c::steady_clock::time_point(c::nanoseconds(n)),
            {c::milliseconds(n)}};
        look(&t, c::milliseconds(n));
        show(t.nano); show(t.micro); show(t.milli); show(t.second); show(t.minute); show(t.hour);
        show(t.day); show(t.real); show(t.part); show(t.frame); show(t.five);
        show(t.point.time_since_epoch()); show(t.several[0]); show(c::milliseconds(n));
        std::puts("");
    }
}
"""  # noqa: E501
MEMBERS = ["nano", "micro", "milli", "second", "minute", "hour", "day", "real", "part", "frame",
           "five", "point", "several[0]"]  # fmt: skip
TEXTS = [f"t->{name}" for name in MEMBERS] + ["passed"]


@pytest.mark.parametrize("command", ["g++ -O2", "clang++ -O2", "clang++ -stdlib=libc++"])
def test_times_have_their_unit(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    require("libc++" if "libc++" in command else command.split()[0])
    source, program = tmp_path / "times.cpp", tmp_path / "times"
    source.write_text(SOURCE)
    words = [*command.split(), "-g", "-std=c++17", "-o", str(program), str(source)]
    subprocess.run(words, check=True, timeout=280)
    asked: list[str | Path] = [*TEXTS, "-x", program, "-f", "look", "--filter", "t->milli < 5000"]
    done = trace(capfd, *asked, "--", program)
    shown = [
        [word.partition("=")[2] for word in line.split()[-len(TEXTS) :]] for line in done.lines
    ]
    # A number with a point is one of these, whatever its unit: 0.0s is what C prints as 0s.
    plain = [[word.replace(".0s", "s").replace(".0ms", "ms") for word in line] for line in shown]
    assert plain == [line.split()[1:] for line in done.program]
    assert len(plain) == 3
    # In C++ an operator converts units first: 1500ms is more than 1s, and 1500 is not 1.
    refused = trace(capfd, "t->milli > t->second", *asked[len(TEXTS) :], "--", program)
    assert (refused.status, refused.program) == (1, [])
    assert "`e.count()`" in refused.errors
    first = trace(capfd, *asked, "--json", "--count", "1", "--", program).args[0]
    assert first == dict.fromkeys(TEXTS, 0)
    total = trace(capfd, "--sum", "passed", *asked[len(TEXTS) :], "--json", "--", program).objects[
        -1
    ]
    assert (total["sum"], total["total"]) == ("passed", 1493)
