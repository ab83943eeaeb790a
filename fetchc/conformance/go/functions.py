"""One probed function of a drawn program in Go, and the function that tells values and calls it."""

from __future__ import annotations

from fetchc.conformance.go.types import GoProbe

__all__ = ["function_lines"]


def function_lines(probe: GoProbe) -> list[str]:
    """Declarations of both; the teller takes captured variables, parameters and results."""
    lines, called = _closure(probe) if probe.form == "closure" else _named(probe)
    lines.append(f"func tell{probe.tag}({_listed(probe.variables)}) {{")
    for number, expression in enumerate(probe.expressions):
        lines.append(f'    fmt.Printf("value {probe.tag} {number}")')
        lines += [f"    {it}" for it in expression.told] + ["    fmt.Println()"]
    if probe.form == "closure":
        lines += _made(probe)
    names = ", ".join(name for name, _ in probe.parameters)
    return [*lines, f"    {called}({names})", "}"]


def _named(probe: GoProbe) -> tuple[list[str], str]:
    """A function or method, and how it is called."""
    star = "*" if probe.form == "method" else ""
    any_type, of = ("[T any]", "[T]") if probe.generic else ("", "")
    lines = []
    head, called = f"func probe{probe.tag}{any_type}", f"probe{probe.tag}"
    if probe.form != "function":
        instance = f"[{probe.parameters[0][1]}]" if probe.generic else ""
        lines.append(f"type R{probe.tag}{any_type} struct {{ a int32; b string }}")
        lines.append(f"var v{probe.tag} = R{probe.tag}{instance}{{7, `receiver`}}")
        head, called = f"func (r {star}R{probe.tag}{of}) probe", f"v{probe.tag}.probe"
    signature, body = _signature(probe)
    return [*lines, "//go:noinline", f"{head}{signature} {{", *body, "}"], called


def _closure(probe: GoProbe) -> tuple[list[str], str]:
    """A function that makes the probed one. What it takes is captured, every second by address."""
    signature, body = _signature(probe)
    maker = f"func probe{probe.tag}({_listed(probe.captured)}) func{signature} {{"
    moved = [
        f"    region(unsafe.Pointer(&{name}), unsafe.Sizeof({name}))"
        for name, _ in probe.captured[1::2]
    ]
    kept = [f"    all.kept{probe.tag}{name} = {name}" for name, _ in probe.captured]
    inner = [f"    return func{signature} {{", *kept, *body, "    }"]
    return ["//go:noinline", maker, *moved, *inner, "}"], "made"


def _made(probe: GoProbe) -> list[str]:
    """Making the closure, and its bytes: the code's address and what is captured, in order."""
    names = ", ".join(name for name, _ in probe.captured)
    fields = [
        f"{name} {'*' * (number % 2)}{made}" for number, (name, made) in enumerate(probe.captured)
    ]
    size = f"unsafe.Sizeof(struct{{ code uintptr; {'; '.join(fields)} }}{{}})"
    return [
        f"    made := probe{probe.tag}({names})",
        f"    region(*(*unsafe.Pointer)(unsafe.Pointer(&made)), {size})",
    ]


def _signature(probe: GoProbe) -> tuple[str, list[str]]:
    taken, results = list(probe.parameters), list(probe.results)
    returned = [f"all.ret{probe.tag}{name}" for name, _ in results]
    if probe.generic:
        taken[0] = taken[0][0], "T"
        results[0], returned[0] = (results[0][0], "T"), taken[0][0]
    if not probe.named:
        results = [("", made) for _, made in results]
    body = ["    sink++"] + ([f"    return {', '.join(returned)}"] if returned else [])
    return f"({_listed(taken)}) ({_listed(results)})", body


def _listed(names: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {made}".strip() for name, made in names)
