"""Drawing calculations in C#, over the edges of all types of numbers.

The program prints lines as those of :mod:`fetchc.conformance.operator_drawing`. What the compiler
refuses (``ulong + int``, ``&&`` of numbers) is left out.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from fetchc.conformance.operator_drawing import Operators

__all__ = ["csharp_operators", "without_refused"]

_BITS = {
    "sbyte": 8, "byte": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "long": 64,
    "ulong": 64, "char": 16,
}  # fmt: skip
_MEMBERS = dict(zip("abcdiulv", _BITS, strict=False))
_MEMBERS |= {"ch": "char", "f": "float", "g": "double", "ok": "bool"}
_CONSTANTS = (
    "1", "2", "7", "255", "3000000000", "-1", "2147483648", "-2147483648", "0x80000000", "3u", "5L",
    "7ul", "0xffffffffffffffff", "'A'", "(long)3", "(uint)3", "0.1", "0.1f",
)  # fmt: skip
_OF_ENUMERATIONS = (
    "~{0}", "{0} - {1}.A", "{0} + 3", "{0} | {1}.B", "{0} < {1}.A", "{0} ^ {0}", "3 + {0}",
    "{0} - 2", "{0} + e.b", "(int){0}",
)  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "==", "<", ">=")
_ENUMERATIONS = {"kind": "Kind", "small": "Small", "large": "Large"}
_SOURCE = """
using System;
using System.Globalization;
using System.Runtime.CompilerServices;
public enum Kind { A = 1, B = 2, C = -5 }
public enum Small : byte { A = 1, B = 254 }
public enum Large : uint { A = 1, B = 0xfffffff0 }
public class Values { @MEMBERS@ public Kind kind; public Small small; public Large large; }
public static class Program {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Take(Values e) { GC.KeepAlive(e); }
    static string Shown(Func<object> one) {
        object found;
        try { found = one(); }
        catch (ArithmeticException) { return "-"; }
        var text = CultureInfo.InvariantCulture;
        if (found is bool) return (bool)found ? "b1" : "b0";
        if (found is float) return "f" + ((float)found).ToString("R", text);
        if (found is double) return "d" + ((double)found).ToString("R", text);
        if (found is Enum)
            found = Convert.ChangeType(found, Enum.GetUnderlyingType(found.GetType()));
        return "i" + Convert.ToString(found, text);
    }
    static void Evaluate(Values e) {
@EVALUATED@
        Console.WriteLine();
    }
    public static void Main() {
        foreach (var e in new[] { @GIVEN@ }) { Take(e); Evaluate(e); }
    }
}
"""


def csharp_operators(chosen: Random, expressions: int, calls: int) -> Operators:
    """A program of ``expressions``, evaluated at each of ``calls``."""
    texts = [f"(e.{name}) {operator} ({one})" for name in "iulv" for one in _CONSTANTS
             for operator in chosen.sample(["+", "<", "-", "=="], 2)]  # fmt: skip
    for name, type in _ENUMERATIONS.items():
        texts += [form.format(f"e.{name}", type) for form in _OF_ENUMERATIONS]
    texts += ["-e.u", "-e.b", "~e.u", "~e.b", "-(e.d)", "-e.ch", "e.ok & (e.i < 3)", "e.ok ^ true"]
    while len(texts) < expressions:
        text = _expression(chosen, chosen.choice((1, 2, 2, 3)))
        if "e." in text and text not in texts:
            texts.append(text)
    rows = []
    for _ in range(calls):
        parts = [f"{name} = {_value(chosen, type)}" for name, type in _MEMBERS.items()]
        parts += [f"{name} = {type}.{chosen.choice('AB')}" for name, type in _ENUMERATIONS.items()]
        rows.append(f"new Values {{ {', '.join(parts)} }}")
    source = (
        _SOURCE.replace("@MEMBERS@", " ".join(f"public {t} {n};" for n, t in _MEMBERS.items()))
        .replace("@EVALUATED@", "\n".join(_evaluated(text) for text in texts))
        .replace("@GIVEN@", ", ".join(rows))
    )
    return Operators(source, "Program.Take", tuple(texts))


def _evaluated(text: str) -> str:
    return f'        Console.Write(Shown(() => {text}) + " ");'


def _value(chosen: Random, type: str) -> str:
    if type in ("float", "double"):
        return f"({type}){chosen.choice(('0.0', '-0.0', '1.5', '0.1', '-7.25e10', '1e30'))}"
    if type == "bool":
        return chosen.choice(("true", "false"))
    low = 0 if type[0] == "u" or type in ("byte", "char") else -(1 << _BITS[type] - 1)
    high = low + (1 << _BITS[type]) - 1
    return f"({type})({chosen.choice((low, high, 0, 1, 3, max(low, -1), high // 3))})"


def _expression(chosen: Random, depth: int) -> str:
    if depth == 0:
        return chosen.choice([*[f"e.{name}" for name in _MEMBERS], chosen.choice(_CONSTANTS)])
    one, two, three = (_expression(chosen, depth - 1) for _ in range(3))
    name = chosen.choice("abcdiulv")
    if depth == 1 and chosen.random() < 0.5:  # two of one type are what the compiler takes
        one, two = f"e.{name}", f"e.{name}"
    forms = [
        f"({one}) {operator} ({two})"
        for operator in ["+", "-", "*", "/", "%", "&", "|", "^", "==", "<", ">="]
    ]
    forms += [f"({one}) << (e.{chosen.choice('abci')})", f"({one}) >> (e.{chosen.choice('abci')})"]
    forms += [f"-({one})", f"~({one})", f"!({one})", f"({one}) ? ({two}) : ({three})"]
    forms += [f"({chosen.choice([*_BITS][:8])})(e.{name})" for _ in range(2)]
    forms += [f"({one}) && ({two})", f"({one}) || ({two})"]
    return chosen.choice(forms)


def without_refused(drawn: Operators, folder: Path) -> Operators:
    """The program without what the compiler refuses."""
    source = folder / "drawn.cs"
    source.write_text(drawn.source)
    command = ["mcs", "-langversion:latest", f"-out:{folder / 'drawn.exe'}", str(source)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    lines = drawn.source.split("\n")
    refused = {int(at) - 1 for at in re.findall(r"drawn\.cs\((\d+),\d+\): error", done.stderr)}
    kept = [line for at, line in enumerate(lines) if at not in refused]
    texts = [text for text in drawn.texts if _evaluated(text) in kept]
    assert len(kept) - len(texts) == len(lines) - len(drawn.texts), done.stderr
    if not texts:
        pytest.fail(done.stderr)
    return drawn.replaced(source="\n".join(kept), texts=tuple(texts))
