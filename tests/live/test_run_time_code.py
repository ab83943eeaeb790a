"""Methods that .NET compiled at run time, of programs that run: values beside the program's log."""

from __future__ import annotations

import errno
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.debuginfo.perf_map_format import MapLine, parse_lines
from fetchc.tracer.bpf.features import running, unusable
from fetchc.tracer.breakpoints import most_breakpoints
from fetchc.tracer.perf_ring import PerfRing
from tests.support.container import with_own_tmp
from tests.support.dotnet import BUNDLES, NET9, NETCORE31, bundled, compiled, host, missing
from tests.support.toolchains import ROOT

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

SOURCE = ROOT / "corpus/dotnet/orders/orders.cs"
PLAIN = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
REQUESTS = 600  # at a millisecond each: the runtime compiles the method again after 30 and 100 ms
ARGUMENTS = ("path", "order.Id", "order.Customer", "order.Total", "order.State", "n")
OF_HIT = ["n"]  # what is in registers, without eBPF
SLOW = 0.1  # seconds from a breakpoint until somebody comes there
BY_PROGRAM = unusable() is None and running()[0].tried  # eBPF reads values at the hit


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


def _words(runtime: Path, assembly: Path) -> list[str]:
    # What starts a program on a runtime, or with that within it.
    if runtime in BUNDLES:
        return [str(bundled(assembly, runtime))]
    version = "9.0.1" if runtime == NET9 else runtime.name
    config = assembly.with_suffix(f".{version}.json")
    named = {"name": "Microsoft.NETCore.App", "version": version}
    config.write_text(json.dumps({"runtimeOptions": {"framework": named}}))
    return [host(runtime, assembly.parent), "exec", "--runtimeconfig", str(config), str(assembly)]


class Service:
    """The program on a runtime."""

    def __init__(
        self,
        runtime: Path,
        assembly: Path,
        settings: dict[str, str],
        *arguments: str,
        within: Sequence[str] = (),
    ) -> None:
        if reason := missing(runtime):
            pytest.skip(reason)
        self.folder = assembly.parent
        command = [*within, *_words(runtime, assembly), *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **PLAIN, **settings},
        )  # fmt: skip
        self.lines("ready")
        self.pid = self.process.pid
        if within:  # of another process, which waits for it
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
            self.pid = int(children.read_text())

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


_NUMBERS = itertools.count()


class Trace:
    """A command that traces the service, until it has set its breakpoints and further."""

    def __init__(self, service: Service, *words: str) -> None:
        command = [sys.executable, "-m", "fetchc", "trace", "-p", str(service.pid), *words]
        # A pipe would be full, and have it wait.
        self._path = service.folder / f"trace-{next(_NUMBERS)}.jsonl"
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

    def ended(self) -> tuple[list[dict[str, Any]], str]:
        """End it; the events, and all that it said."""
        time.sleep(0.2)
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        lines = self._path.read_text().splitlines()
        return [json.loads(line) for line in lines], "".join(self.said) + said


def unlike(events: list[dict[str, Any]], log: Iterable[str]) -> list[str]:
    """The log lines of the requests whose events have other values, each line maybe several times.

    Raises KeyError for an event of no request.
    """
    lines = {int(line.split()[1]): line.rpartition(" ")[0] for line in log}
    wrong = []
    for event in events:
        values = event["args"]
        number = values["n"] - 1_000_000_000_000
        name = "Paid" if number % 2 else "Open"
        shown = f"{values['path']} {values['order.Id']} {values['order.Customer']}"
        state = values["order.State"]["name"] == name if values["order.State"] else False
        same = shown == lines[number] and state and values["order.Total"] == number / 2
        if not same or event["faults"]:
            wrong.append(lines[number])
    return wrong


def missing_outside(events: list[dict[str, Any]], log: Iterable[str], said: str) -> list[str]:
    """The lines of the log without an event that are of no time which ``said`` states as missed."""
    first: dict[int, float] = {}
    for event in events:
        first.setdefault(event["address"], event["timestamp"])
    last = max([event["timestamp"] for event in events], default=0.0)
    gaps = []
    for address, took in re.findall(r"followed to (\w+): calls of the ([\d.]+) ms", said):
        found = first.get(int(address, 16))
        # Code that is followed only after its last call has no event.
        gap = (last, inf) if found is None else (found - float(took) / 1000 - SLOW, found)
        gaps.append(gap)
    seen = {event["args"]["n"] - 1_000_000_000_000 for event in events}
    lines = [line for line in log if int(line.split()[1]) not in seen]
    times = [int(line.split()[4]) / 1e9 for line in lines]
    return [
        line
        for line, time_ in zip(lines, times, strict=True)
        if not any(start <= time_ <= end for start, end in gaps)
    ]


@pytest.mark.parametrize("engine", ["auto", "tracefs"])
def test_values_are_those_of_the_log_across_recompilations(either: Service, engine: str) -> None:
    named = ("-f", "Shop.Server.Handle", "--format", "jsonl", "--engine", engine)
    trace = Trace(either, *ARGUMENTS, *named)
    log: list[str] = []
    reading = threading.Thread(target=lambda: log.extend(either.lines("done")))
    reading.start()
    either.ask(str(REQUESTS))
    reading.join(60)
    events, said = trace.ended()
    assert len(log) == REQUESTS
    assert not unlike(events, log)
    assert len(events) == len({event["args"]["n"] for event in events})  # each call once
    later = [one for one in ARGUMENTS if one not in OF_HIT]
    if engine == "auto" and BY_PROGRAM:
        assert not any("read_later" in event for event in events)
        assert "~" not in said
    else:
        assert all(event["read_later"] == later for event in events)
    assert len({event["address"] for event in events}) > 1  # the method has moved
    assert not missing_outside(events, log, said)
    assert "lost" not in said


@pytest.mark.skipif(not BY_PROGRAM, reason="eBPF is not allowed here, or the kernel is too old")
@pytest.mark.parametrize("requests", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_web_service_is_traced_while_its_heap_moves(assembly: Path, requests: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The host's list of the framework's files lacks one that sockets need.
    library = assembly.parent / "System.Diagnostics.DiagnosticSource.dll"
    if not library.exists():
        library.symlink_to(NET9 / library.name)
    service = Service(NET9, assembly, {}, str(port))
    log: list[str] = []
    try:
        named = ("-f", "Shop.Server.Handle", "--format", "jsonl")
        trace = Trace(service, *ARGUMENTS, *named)
        reading = threading.Thread(target=lambda: log.extend(service.lines("done")))
        reading.start()
        clients = [
            threading.Thread(target=get, args=(port, range(one, requests + requests // 20, 4)))
            for one in range(1, 5)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join(300)
        service.ask("0")  # "done" ends the log
        reading.join(60)
        events, said = trace.ended()
    finally:
        service.end()
    assert len(events) >= requests, said
    assert not unlike(events, log)
    assert len(events) == len({event["args"]["n"] for event in events})
    # A method that moves is followed within a second.
    assert all(float(took) < 1000 for took in re.findall(r"calls of the ([\d.]+) ms", said))
    if requests > 1_000:  # on a slow machine the method is not compiled again before
        assert len({event["address"] for event in events}) > 1, said
    assert not missing_outside(events, log, said), said
    assert "lost" not in said


def get(port: int, numbers: Iterable[int]) -> None:
    """Ask the web service for these orders, one after the other.

    With pauses: the runtime compiles nothing again before 100 ms without new methods.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for at, number in enumerate(numbers):
        if at in (50, 100):
            time.sleep(0.3)
        connection.request("GET", f"/orders/{number}")
        connection.getresponse().read()
    connection.close()


def test_the_comparison_with_the_log_can_fail() -> None:
    values = {
        "path": "/orders/7", "order.Id": 7, "order.Customer": "customer 7", "order.Total": 3.5,
        "order.State": {"name": "Paid", "value": 3}, "n": 1_000_000_000_007,
    }  # fmt: skip
    event = {"args": values, "faults": [], "address": 16, "timestamp": 5.0}
    line = "/orders/7 7 customer 7 5000000000"
    assert not unlike([event], [line])
    assert unlike([{**event, "args": {**values, "order.Customer": "customer 8"}}], [line])
    other = "/orders/8 8 customer 8 4900000000"
    said = "note: `A` was compiled again, and is followed to 0x10: calls of the 1.5 ms before may"
    assert not missing_outside([event], [line, other], said)
    assert missing_outside([event], [line, other], "") == [other]
    late = "/orders/8 8 customer 8 4500000000"
    assert missing_outside([event], [line, late], said) == [late]


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
    mark = "" if BY_PROGRAM else "~"
    assert f'path{mark}="/orders/2' in first
    assert "n=10000000000" in second
    assert ("`~`: the value is read after the hit" in said) == (not BY_PROGRAM)


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
        ("Shop.Server.Same", "parameters are; registers are at `--at 0x"),
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


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "stopped"])
def test_a_runtime_that_does_not_answer_says_why(
    service: Service,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    ends: bool,
) -> None:
    os.kill(service.pid, signal.SIGSTOP)  # it takes the question, and does not answer
    threads = [task / "stat" for task in Path(f"/proc/{service.pid}/task").iterdir()]
    while any(") T " not in thread.read_text() for thread in threads):
        time.sleep(0.01)
    if ends:
        threading.Timer(0.3, service.process.kill).start()
    else:
        monkeypatch.setattr("fetchc.tracer.diagnostic_port._PATIENCE", 0.3)
    assert main(["functions", "-p", str(service.pid)]) == 4
    said = capsys.readouterr().err
    if ends:
        assert f"error[FC0707]: process {service.pid} has ended, while it was asked" in said
    else:
        assert f"error[FC0721]: the runtime of process {service.pid} does not write" in said
        assert "it did not answer in 0.3 seconds\n   = help: let it run" in said
        os.kill(service.pid, signal.SIGCONT)
        service.ask("1")
        assert len(service.lines("done")) == 1


def test_a_machine_without_breakpoints_is_refused(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = PerfRing._opened

    def without(ring: PerfRing, kind: int, *more: Any) -> int:
        if kind == 5:  # PERF_TYPE_BREAKPOINT
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return opened(ring, kind, *more)

    monkeypatch.setattr(PerfRing, "_opened", without)
    words = ["trace", "n", "-f", "Server.Handle", "-p", str(service.pid), "--timeout", "1"]
    assert main(words) == 4
    said = capsys.readouterr().err
    assert "error[FC0720]: no breakpoint can be set at 0x" in said
    assert "perf_event_open: No such file or directory (ENOENT)" in said
    assert "this kernel has no breakpoints of the processor: a guest's may have none" in said
    assert "= help: probe code of a file by uprobes" in said


def test_an_address_of_another_assembly_has_its_parameters(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["functions", "-p", str(service.pid)]) == 0
    path = f"/tmp/perf-{service.pid}.map"
    found: list[MapLine] = []
    for _ in range(20):  # until the runtime compiles its precompiled code again
        service.ask("40")
        service.lines("done")
        time.sleep(0.15)
        lines = parse_lines(path, Path(path).read_bytes())
        if found := [one for one in lines if "System.Console::WriteLine(string)" in one.symbol]:
            break
    trace = Trace(service, "value", "--at", f"{found[-1].start:#x}", "--format", "jsonl")
    service.ask("10")
    log = service.lines("done")
    events, _ = trace.ended()
    assert [event["args"]["value"] for event in events] == [*log, "done"]
    # Of no method's beginning there is an address alone.
    inside = ["trace", "%di", "-p", str(service.pid), "--at", f"{found[-1].start + 1:#x}"]
    assert main([*inside, "--timeout", "0.5"]) in (0, 1)
    said = capsys.readouterr().err
    assert "no code any more" not in said


def test_newest_code_gets_the_breakpoints_of_older_code(service: Service) -> None:
    # Others hold three, at code that stays: one is left for all versions of a method.
    named = (("Program.Main", "--latency"), ("Server..ctor",))
    holding = [Trace(service, "-f", *words, "--format", "jsonl") for words in named]
    trace = Trace(service, "n", "-f", "Server.Handle", "--format", "jsonl")
    service.ask("200")
    service.lines("done")
    time.sleep(0.3)
    service.ask("20")
    last = service.lines("done")
    events, said = trace.ended()
    for other in holding:
        other.ended()
    assert len({event["address"] for event in events}) > 1, said
    assert not missing_outside(events, last, said)


@pytest.mark.parametrize("where", ["container", "folder"])
def test_the_port_and_the_map_are_where_the_process_has_them(
    assembly: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, where: str
) -> None:
    # In a container it has another number, and its files have the same names as others here.
    folder = str(tmp_path_factory.mktemp("own"))  # the path of a socket has at most 107 bytes
    settings = {"TMPDIR": folder, "DOTNET_PerfMapJitDumpPath": folder} if where == "folder" else {}
    within = with_own_tmp(tmp_path, ROOT, assembly.parent) if where == "container" else []
    service = Service(NET9, assembly, settings, within=within)
    try:
        stack = ("--stack",) if within else ()
        trace = Trace(service, *ARGUMENTS, "-f", "Server.Handle", "--format", "jsonl", *stack)
        service.ask("20")
        log = service.lines("done")
        events, said = trace.ended()
    finally:
        service.end()
    own = "/".join((f"/proc/{service.pid}/root", "tmp", "perf-1.map"))
    written = own if within else f"{folder}/perf-{service.pid}.map"
    assert f"it writes {written} until the process ends" in said
    assert len(events) == len(log) == 20
    assert not unlike(events, log)
    assert {event["pid"] for event in events} == {service.pid}
    callers = {event["stack"][1]["function"] for event in events if stack}
    assert callers == ({"Shop.Program.Request(Shop.Server, int)"} if within else set())


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
    assert "all breakpoints of the processor are taken: " in said
    own = Path(f"/proc/{first.process.pid}/comm").read_text().strip()
    assert f"process {first.process.pid} ({own})" in said
    assert "may have them, by events of perf" in said
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
                later = [] if BY_PROGRAM else ["*(long*)$arg2"]
                assert event.get("read_later", []) == later
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
