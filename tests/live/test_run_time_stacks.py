"""``--stack`` of code that was compiled at run time, beside the program's own stack traces."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fetchc.tracer.breakpoints import most_breakpoints
from tests.live.test_run_time_code import Service, Trace
from tests.support.dotnet import NET9, compiled

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

# Each call of Leaf logs what the runtime takes for its callers: through interfaces, delegates,
# precompiled code, handlers of exceptions, reflection, on threads of the pool.
SOURCE = """
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

public interface IStep { int Go(int depth, int n); }

public class Ping : IStep {
    public IStep Next;
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Go(int depth, int n) {
        return depth == 0 ? Program.Leaf(n, "ping") : Next.Go(depth - 1, n) + 1;
    }
}

public class Pong : IStep {
    public IStep Next;
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Go(int depth, int n) {
        double d = depth * 1.5;
        return depth == 0 ? Program.Leaf(n, "pong") : Next.Go(depth - 1, n) + (int)d;
    }
}

public static class Program {
    static readonly List<string> log = new List<string>();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Leaf(int n, string how) {
        string line = "" + n;
        foreach (var frame in new StackTrace(1, false).GetFrames()) {
            var method = frame.GetMethod();
            var type = method.DeclaringType;
            line += " " + (type == null ? "" : type.FullName) + "." + method.Name;
        }
        log.Add(line);
        return n;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Caught(int n) {
        try {
            try { Thrown(n); } finally { Leaf(n, "finally"); }
            return 0;
        } catch (InvalidOperationException) { return Leaf(n, "catch"); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Thrown(int n) { throw new InvalidOperationException("" + n); }

    static void Round(IStep step, int n) {
        step.Go(n % 20, 10 * n);
        new List<int> { 10 * n + 1 }.ForEach(one => Leaf(one, "delegate"));
        Caught(10 * n + 2);
        var text = new string[] { "b", "a" };
        Array.Sort(text, (one, other) => {
            Leaf(10 * n + 3, "sort");
            return string.CompareOrdinal(one, other);
        });
        typeof(Program).GetMethod("Leaf").Invoke(null, new object[] { 10 * n + 4, "reflection" });
        using (var done = new ManualResetEvent(false)) {
            ThreadPool.QueueUserWorkItem(_ => { Leaf(10 * n + 5, "pool"); done.Set(); });
            done.WaitOne();
        }
    }

    public static int Main() {
        Ping ping = new Ping(); Pong pong = new Pong();
        ping.Next = pong; pong.Next = ping;
        Round(ping, 0);
        log.Clear();
        Console.WriteLine("ready");
        for (string line; (line = Console.ReadLine()) != null;) {
            for (int n = 1; n <= int.Parse(line); n++) { Round(ping, n); Thread.Sleep(1); }
            foreach (var one in log) Console.WriteLine(one);
            log.Clear();
            Console.WriteLine("done");
        }
        return 0;
    }
}
"""
HOW = {"ping", "pong", "delegate", "finally", "catch", "sort", "reflection", "pool"}


@pytest.fixture(name="service")
def service_(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "deep.cs").write_text(SOURCE)
    service = Service(NET9, compiled(tmp_path / "deep.cs", tmp_path / "deep.dll"), {})
    yield service
    service.end()


def plain(name: str) -> str:
    """Type and method without what the two sides spell otherwise: namespaces, type arguments."""
    name = name.partition("(")[0].replace("+", ".")
    name = re.sub(r"`\d+(\[.*?\])?|(?<=\w)<[^<>]*>", "", name)
    return ".".join(name.split(".")[-2:])


def managed(event: dict[str, Any]) -> list[str]:
    """The callers of the event's function that are methods."""
    assert "not_unwound" not in event["stack"][-1]
    return [
        plain(one["function"])
        for one in event["stack"][1:]
        if one["function"] is not None and (one["file"] or ".dll").endswith(".dll")
    ]


def test_callers_are_those_of_the_programs_own_stack_traces(service: Service) -> None:
    trace = Trace(
        service, "n", "how", "-f", "Program.Leaf", "--stack", "--stack-bytes", "60000",
        "--format", "jsonl",
    )  # fmt: skip
    log: list[str] = []
    for rounds in ("40", "40", "40"):
        service.ask(rounds)
        log += service.lines("done")
        time.sleep(0.3)  # the runtime compiles again what was called often when it is idle
    events, said = trace.ended()
    told: dict[int, list[list[str]]] = {}
    for words in map(str.split, log):
        told.setdefault(int(words[0]), []).append([plain(one) for one in words[1:]])
    unlike = [one for one in events if managed(one) not in told[one["args"]["n"]]]
    assert not unlike
    assert len(events) > 700, said
    # Compiled again, and of each kind.
    assert len({one["address"] for one in events}) > 1
    assert {one["args"]["how"] for one in events} == HOW
    threads = {one["comm"] for one in events if one["args"]["how"] == "pool"}
    assert threads == {".NET TP Worker"}
    # Without one caller it is another stack.
    assert all(managed({"stack": one["stack"][:1] + one["stack"][2:]}) != managed(one)
               for one in events)  # fmt: skip
