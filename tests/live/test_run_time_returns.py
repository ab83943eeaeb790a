"""``--return`` and ``--latency`` of code that was compiled at run time: its return instructions."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.tracer.breakpoints import most_breakpoints
from tests.live.test_run_time_code import SOURCE, Service, Trace
from tests.support.dotnet import NET9, compiled
from tests.support.toolchains import require

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

BOTH = ("--latency", "--return")

# Compiles a function with as many return instructions as its argument says: each returns its
# number, as far as there is one for n. Ten calls for each line.
COMPILER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
    int returns = atoi(words[1]), may = PROT_READ | PROT_WRITE | PROT_EXEC;
    unsigned char *code = mmap(0, 4096, may, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at = code + 64;
    for (int number = 0; number < returns; number++) {
        /* lea NUMBER(%rdi,%rdi),%rax; cmp $NUMBER,%dil; jne next; ret */
        unsigned char one[] = {
            0x48, 0x8d, 0x44, 0x3f, number, 0x40, 0x80, 0xff, number, 0x75, 1, 0xc3 };
        if (number == returns - 1) one[9] = one[10] = 0x90;
        memcpy(at, one, sizeof one);
        at += sizeof one;
    }
    char path[64], line[8];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %lx twice\n", (long)code + 64, (long)(at - code - 64));
    fflush(map);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (long n = 0; n < 10; n++) printf("%ld %ld\n", n, ((long (*)(long))(code + 64))(n));
        fflush(stdout);
    }
    unlink(path);
    return 0;
}
"""


class Compiled(Service):
    """A process with such a function."""

    def __init__(self, program: Path, returns: int) -> None:
        self.folder = program.parent
        self.process = subprocess.Popen(
            [program, str(returns)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        self.lines("ready")


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("compiler")
    (folder / "compiler.c").write_text(COMPILER)
    command = ["gcc", "-w", "-o", "compiler", "compiler.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "compiler"


@pytest.mark.parametrize("returns", [1, 3])
def test_each_return_has_its_call(compiler: Path, returns: int) -> None:
    service = Compiled(compiler, returns)
    try:
        words = ("$arg1", "$retval", "-f", "twice", *BOTH, "--format", "jsonl")
        trace = Trace(service, *words)
        service.ask("go")
        assert service.process.stdout is not None
        told = [service.process.stdout.readline().split() for _ in range(10)]
        events, said = trace.ended()
    finally:
        service.end()
    found = [event["args"] for event in events]
    expected = [{"$arg1": int(n), "$retval": int(value)} for n, value in told]
    assert found == expected
    assert found != [{**one, "$arg1": 0} for one in expected]
    assert len({event["address"] for event in events}) == returns
    assert "had no return" not in said


def test_more_returns_than_breakpoints_are_refused(
    compiler: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Compiled(compiler, 4)
    try:
        words = ["trace", "-f", "twice", "-p", str(service.pid), "--timeout", "1"]
        assert main([*words, "--latency"]) == 4
        said = capsys.readouterr().err
        assert f"error[FC0720]: 5 addresses of process {service.pid}" in said
        assert "`twice` has 4 return instructions" in said
        assert main([*words, "--return"]) == 0
    finally:
        service.end()


@pytest.fixture(name="service")
def service_(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("returns")
    service = Service(NET9, compiled(SOURCE, folder / "orders.dll"), {})
    yield service
    service.end()


# Every third call ends by an exception.
THROWING = """
using System;
using System.Runtime.CompilerServices;
public static class Program {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Risky(int n) { if (n % 3 == 0) throw new Exception("3"); return n * 5; }
    public static int Main() {
        Risky(1);
        Console.WriteLine("ready");
        while (Console.ReadLine() != null) {
            for (int n = 1; n <= 9; n++) try { Risky(n); } catch (Exception) {}
            Console.WriteLine("done");
        }
        return 0;
    }
}
"""


def test_exceptions_that_pass_a_method_are_counted(tmp_path: Path) -> None:
    (tmp_path / "risky.cs").write_text(THROWING)
    service = Service(NET9, compiled(tmp_path / "risky.cs", tmp_path / "risky.dll"), {})
    try:
        trace = Trace(service, "n", "$retval", "-f", "Risky", *BOTH, "--format", "jsonl")
        service.ask("go")
        service.lines("done")
        events, said = trace.ended()
        service.ask("go")
        service.lines("done")  # it lives
    finally:
        service.end()
    found = [event["args"] for event in events]
    assert found == [{"n": n, "$retval": 5 * n} for n in range(1, 10) if n % 3]
    assert "note: 3 calls had no return: an exception passed, or they still run" in said


def test_results_of_dotnet_across_recompilations(service: Service) -> None:
    words = ("order.Id", "n", "$retval", "-f", "Shop.Server.Handle", *BOTH)
    trace = Trace(service, *words, "--format", "jsonl")
    log: list[str] = []
    reading = threading.Thread(target=lambda: log.extend(service.lines("done")))
    reading.start()
    service.ask("300")
    reading.join(60)
    events, said = trace.ended()
    assert len(log) == 300
    assert "was compiled again" in said
    seen = []
    for event in events:
        values = event["args"]
        assert isinstance(values, dict)
        if "n" not in values:
            continue  # its entry was before the breakpoints
        number = values["n"] - 1_000_000_000_000
        result = len(f"/orders/{number}") + number + values["n"] + len("server-1")
        assert values["$retval"] == (result + (1 << 31)) % (1 << 32) - (1 << 31)
        seen.append(number)
    assert len(seen) == len(set(seen))
    assert len({event["address"] for event in events}) > 1
    assert len(seen) > 200
