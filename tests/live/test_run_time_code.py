"""Methods that .NET compiled at run time, of programs that run: values beside the program's log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.tracer.breakpoints import most_breakpoints
from tests.support.dotnet import NET9, NETCORE31, compiled, host, missing
from tests.support.toolchains import ROOT

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

SOURCE = ROOT / "corpus/dotnet/orders/orders.cs"
PLAIN = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
REQUESTS = 600  # at a millisecond each: the runtime compiles the method again after 30 and 100 ms


# Makes a function of (number, pointer to a long, number), and a perf map that names it.
COMPILER = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    static const unsigned char sum[] = {0x48, 0x8d, 0x04, 0x17, 0x48, 0x03, 0x06, 0xc3};
    int may = PROT_READ | PROT_WRITE | PROT_EXEC;
    char path[64], *code = mmap(0, 4096, may, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code + 64, sum, sizeof sum);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %zx JS:*sum /srv/app.js:1:15\n", (long)code + 64, sizeof sum);
    fprintf(map, "%lx 10 nowhere\n", 0x10000L);
    fflush(map);
    printf("%p\n", (void *)(code + 64));
    fflush(stdout);
    for (long n = 0, seen; getchar() != EOF; n++) {
        seen = n * 100;
        printf("%ld\n", ((long (*)(long, long *, long))(code + 64))(n, &seen, -n));
        fflush(stdout);
    }
    unlink(path);
    return 0;
}
"""


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(SOURCE, tmp_path_factory.mktemp("orders") / "orders.dll")


class Service:
    """The program on a runtime."""

    def __init__(self, runtime: Path, assembly: Path, settings: dict[str, str]) -> None:
        if reason := missing(runtime):
            pytest.skip(reason)
        self.folder = assembly.parent
        version = "9.0.1" if runtime == NET9 else runtime.name
        config = assembly.with_suffix(f".{version}.json")
        named = {"name": "Microsoft.NETCore.App", "version": version}
        config.write_text(json.dumps({"runtimeOptions": {"framework": named}}))
        command = [
            host(runtime, assembly.parent), "exec", "--runtimeconfig", str(config), str(assembly)
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **PLAIN, **settings},
        )  # fmt: skip
        self.pid = self.process.pid
        self.lines("ready")

    def lines(self, last: str) -> list[str]:
        """The lines of its log until that one."""
        assert self.process.stdout is not None
        found: list[str] = []
        for line in self.process.stdout:
            if line == f"{last}\n":
                return found
            found.append(line.rstrip("\n"))
        raise AssertionError(f"the service has ended: {found}")

    def ask(self, line: str) -> None:
        """Have it do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """End it, and what it left in /tmp."""
        self.process.kill()
        self.process.communicate()
        for pattern in ("perf*-{}.*", "dotnet-diagnostic-{}-*", "clr-debug-pipe-{}-*"):
            for each in Path("/tmp").glob(pattern.format(self.pid)):
                each.unlink(missing_ok=True)


@pytest.fixture(name="service")
def service_(assembly: Path) -> Iterator[Service]:
    """On .NET 9, with its defaults."""
    service = Service(NET9, assembly, {})
    yield service
    service.end()


@pytest.fixture(params=["9.0", "3.1"])
def either(request: pytest.FixtureRequest, assembly: Path) -> Iterator[Service]:
    """On .NET 9 with its defaults, on 3.1 with the setting that it needs."""
    settings = {} if request.param == "9.0" else {"COMPlus_PerfMapEnabled": "1"}
    service = Service(NET9 if request.param == "9.0" else NETCORE31, assembly, settings)
    yield service
    service.end()


class Trace:
    """A command that traces the service, until it has set its breakpoints and further."""

    def __init__(self, service: Service, *words: str) -> None:
        command = [sys.executable, "-m", "fetchc", "trace", "-p", str(service.pid), *words]
        self._path = service.folder / "trace.jsonl"  # a pipe would be full, and have it wait
        with self._path.open("w") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
        self.said: list[str] = []
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("tracing "):
                break
        else:
            raise AssertionError("".join(self.said))

    def ended(self) -> tuple[list[dict[str, object]], str]:
        """End it; the events, and all that it said."""
        time.sleep(0.2)
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        lines = self._path.read_text().splitlines()
        return [json.loads(line) for line in lines], "".join(self.said) + said


def test_values_are_those_of_the_log_across_recompilations(either: Service) -> None:
    arguments = ("path", "order.Id", "order.Customer", "order.Total", "order.State", "n")
    named = ("-f", "Shop.Server.Handle", "--format", "jsonl")
    trace = Trace(either, *arguments, *named)
    log: list[str] = []
    reading = threading.Thread(target=lambda: log.extend(either.lines("done")))
    reading.start()
    either.ask(str(REQUESTS))
    reading.join(60)
    events, said = trace.ended()
    seen: dict[int, str] = {}
    for event in events:
        values = event["args"]
        assert isinstance(values, dict)
        number = values["order.Id"]
        seen[number] = f"{values['path']} {number} {values['order.Customer']}"
        assert values["order.Total"] == number / 2
        assert values["order.State"]["name"] == ("Paid" if number % 2 else "Open")
        assert values["n"] == 1_000_000_000_000 + number
        assert event["faults"] == []
        # What is in a register is of the hit.
        assert event["read_later"] == [one for one in arguments if one != "n"]
    expected = {int(line.split()[1]): line for line in log}
    assert len(expected) == REQUESTS
    assert len(events) == len(seen)  # each call once
    assert {number: expected[number] for number in seen} == seen
    assert len({event["address"] for event in events}) > 1  # the method has moved
    assert "was compiled again" in said
    missing = [number for number in expected if number not in seen]
    # Between new code and the line of the map that names it; never later.
    assert len(missing) < REQUESTS / 4, missing
    assert max(missing, default=0) < REQUESTS


def test_what_is_compiled_is_listed_and_described(
    either: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = str(either.pid)
    assert main(["functions", "-p", pid]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert "Shop.Server.Handle(string, Shop.Order, long)" in listed
    assert not [name for name in listed if "Never" in name]  # nobody has called it
    assert main(["variables", "Shop.Server.Handle", "-p", pid, "--format", "json"]) == 0
    places = {one["name"]: one["place"] for one in json.loads(capsys.readouterr().out)}
    assert places == {"this": "in %di", "path": "in %si", "order": "in %dx", "n": "in %cx"}
    assert main(["compile", "order.Total", "-f", "Server.Handle", "-p", pid]) == 0
    assert capsys.readouterr().out == "+16(%dx):x64\n"
    # Nothing that needs an offset in a file is written.
    assert main(["compile", "n", "-f", "Server.Handle", "-p", pid, "--format", "probe"]) == 3
    assert "error[FC0906]" in capsys.readouterr().err


def test_a_filter_and_the_columns_of_text(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = threading.Timer(0.7, service.ask, ("60",))
    asking.start()
    words = ["path", "n", "-f", "Server.Handle", "--filter", "order.Id >= 20", "--count", "2"]
    assert main(["trace", "-p", str(service.pid), *words, "--timeout", "30"]) == 0
    asking.join()
    out, said = capsys.readouterr()
    first, second = out.splitlines()
    assert 'path~="/orders/2' in first
    assert "n=10000000000" in second
    assert "`~`: the value is read after the hit" in said


def test_nothing_is_asked_of_the_runtime_where_that_is_refused(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["trace", "n", "-f", "Server.Handle", "-p", str(service.pid), "--timeout", "1"]
    assert main([*words, "--no-enable"]) == 4
    assert "error[FC0721]" in capsys.readouterr().err
    assert not Path(f"/tmp/perf-{service.pid}.map").exists()
    assert main(words) == 0
    assert f"writes /tmp/perf-{service.pid}.map until the process ends" in capsys.readouterr().err
    assert main([*words, "--no-enable"]) == 0  # it writes one already


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Shop.Server.Never", "has not compiled a method `Shop.Server.Never`"),
        ("Shop.Server.Same", "it is generic"),
    ],
)
def test_a_method_without_such_code_is_refused(
    service: Service, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    assert main(["trace", "n", "-f", name, "-p", str(service.pid), "--timeout", "1"]) in (1, 3)
    assert message in capsys.readouterr().err


def test_a_process_without_a_port_is_refused(
    assembly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(NET9, assembly, {"DOTNET_EnableDiagnostics": "0"})
    try:
        assert main(["functions", "-p", str(service.pid)]) == 4
        assert "has no diagnostic port" in capsys.readouterr().err
    finally:
        service.end()


def test_a_runtime_that_does_not_know_the_command_says_what_helps(
    assembly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(NETCORE31, assembly, {})
    try:
        assert main(["functions", "-p", str(service.pid)]) == 4
        said = capsys.readouterr().err
        assert "its version does not know the command" in said
        assert "COMPlus_PerfMapEnabled=1" in said
    finally:
        service.end()


def test_a_process_that_ends_ends_the_trace(service: Service) -> None:
    trace = Trace(service, "n", "-f", "Server.Handle")
    service.process.kill()
    _, said = trace.process.communicate(timeout=60)
    assert trace.process.returncode == 0
    assert f"process {service.pid} has ended" in said


def test_breakpoints_are_shared_with_others(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["trace", "-p", str(service.pid), "--timeout", "3"]
    first = Trace(
        service, "-f", "Server.Handle", "-f", "Server.Idle", "-f", "Program.Request",
        "-f", "Program.Main",
    )  # fmt: skip
    assert main([*words, "-f", "Server.Handle"]) == 4
    said = capsys.readouterr().err
    assert "error[FC0720]: no breakpoint can be set" in said
    assert "all breakpoints of the processor are taken" in said
    first.ended()
    five = [word for name in ("Handle", "Idle", ".ctor") for word in ("-f", f"Server.{name}")]
    five += ["-f", "Program.Main", "-f", "Program.Request"]
    assert main([*words, *five]) == 4
    assert "5 addresses of process" in capsys.readouterr().err
    assert main([*words[:-1], "1", "-f", "Server.Idle"]) == 0  # all are free again


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maker")
    (folder / "maker.c").write_text(COMPILER)
    command = ["gcc", "-o", str(folder / "maker"), str(folder / "maker.c")]
    subprocess.run(command, check=True, timeout=60)
    return folder / "maker"


def test_other_code_has_registers_and_words_by_name_and_by_address(
    maker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen([maker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        address = run.stdout.readline().strip()
        pid = str(run.pid)
        assert main(["functions", "-x", f"/proc/{pid}:"]) == 0
        # What is in no executable memory is no code.
        assert capsys.readouterr().out == "JS:*sum /srv/app.js:1:15\n"
        number = 0
        for place in (("-f", "sum"), ("-f", "JS:*sum /srv/app.js:1:15"), ("--at", address)):
            asking = partial(print, "...", end="", file=run.stdin, flush=True)
            calls = threading.Timer(0.7, asking)
            calls.start()
            words = ["$arg1", "*(long*)$arg2", "(int)$arg3", "%ip", "--count", "3"]
            command = ["trace", *words, "-p", pid, *place, "--format", "jsonl", "--timeout", "20"]
            assert main(command) == 0, capsys.readouterr().err
            calls.join()
            events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert len(events) == 3
            for event in events:
                assert event["args"]["$arg1"] == number
                assert event["args"]["(int)$arg3"] == -number
                assert event["args"]["%ip"] == event["address"] == int(address, 16)
                assert event["read_later"] == ["*(long*)$arg2"]
                number += 1
        nowhere = ["trace", "%di", "-x", f"/proc/{pid}:", "--at", "0x10000", "--timeout", "1"]
        assert main(nowhere) in (1, 3)
        assert "error[FC0206]" in capsys.readouterr().err
        run.stdin.close()


def test_a_process_without_a_map_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        assert main(["functions", "-x", f"/proc/{sleeping.pid}:"]) == 1
        assert "no function with code matches" in capsys.readouterr().err
        sleeping.kill()
    assert main(["functions", "-x", f"/proc/{sleeping.pid}:"]) == 3
    assert "there is no process" in capsys.readouterr().err
