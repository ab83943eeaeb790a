"""Coroutines of gcc and clang: what calls them, and what they go on with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.toolchains import ROOT, ZIG, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
#include <coroutine>
struct Task {
    struct promise_type {
        int value;
        Task get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_value(int v) { value = v; }
        void unhandled_exception() {}
        std::suspend_always yield_value(int v) { value = v; return {}; }
    };
    std::coroutine_handle<promise_type> handle;
};
__attribute__((noinline)) Task counter(int from, long step)
{
    for (int i = from; i < 30; i += step)
        co_yield i;
    co_return 9;
}
int main()
{
    for (int n = 1; n < 4; n++) {
        Task task = counter(10 * n, 7);
        while (!task.handle.done())
            task.handle.resume();
        task.handle.destroy();
    }
}
"""
COMPILERS = {"g++": ["g++"], "zig": [str(ZIG), "c++", "-fno-sanitize=undefined"]}


def _build(folder: Path, compiler: str, level: str) -> Path:
    require_uprobes()
    require(compiler)
    require("g++")
    (folder / "coroutine.cc").write_text(SOURCE)
    command = [*COMPILERS[compiler], "-std=c++20", "-g", level, "-c", "coroutine.cc"]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / ".toolchains/cache-zig")}
    subprocess.run(command, check=True, timeout=240, env=environment, cwd=folder)
    # By g++ whoever compiled: zig would make the whole of libc++ first.
    subprocess.run(["g++", "coroutine.o", "-o", "coroutine"], check=True, timeout=60, cwd=folder)
    return folder / "coroutine"


def _going_on(program: Path) -> str:
    names = fetchc.open(str(program)).functions("*counter*")
    return next(name for name in names if name.endswith((".resume", ".actor")))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_call_has_the_parameters(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, compiler: str, level: str
) -> None:
    program = _build(tmp_path, compiler, level)
    words = ("from", "step", "-x", program, "-f", "counter", "--format", "jsonl", "--", program)
    done = trace(capfd, *words)
    assert done.args == [{"from": 10 * n, "step": 7} for n in (1, 2, 3)]
    resumed = fetchc.open(str(program)).probe(_going_on(program))
    with pytest.raises(fetchc.CompileError) as caught:
        resumed.compile("from")
    assert caught.value.diagnostics[0].code == "FC0401"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_resumes_has_them_in_its_frame(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, compiler: str
) -> None:
    program = _build(tmp_path, compiler, "-O0")
    words = ("from", "step", "-x", program, "-f", _going_on(program), "--at", "body")
    done = trace(capfd, *words, "--format", "jsonl", "--", program)
    # How often each is resumed until it is done; gcc's also begins and ends there.
    calls = {n: times + 2 * (compiler == "g++") for n, times in ((10, 4), (20, 3), (30, 1))}
    assert [each["step"] for each in done.args] == [7] * sum(calls.values())
    assert {n: [each["from"] for each in done.args].count(n) for n in calls} == calls
