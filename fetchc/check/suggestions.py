"""Nearest names, for the help of a diagnostic. Off the hot path: only refusals ask."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "call_meant",
    "distance",
    "name_meant",
    "nearest",
]


def distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) between two names, at most ``limit`` + 1.

    Source: the optimal string alignment distance, one row at a time.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row, older = row, [i], before
        before = above
        for j, b in enumerate(right, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if older and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def nearest(name: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Up to ``most`` of the ``names`` that ``name`` may have meant, best first.

    A name of the same letters in another case comes first, then names that end or begin
    with it, then those a few edits away (a third of its length, at least one).
    """
    lower = name.lower()
    # Of one letter, every other one is an edit away.
    limit = max(1, len(name) // 3) if len(name) > 1 else 0
    scored: list[tuple[int, str]] = []
    for candidate in dict.fromkeys(names):
        other = candidate.lower()
        if other == lower:
            scored.append((0, candidate))
        elif len(name) > 2 and (other.endswith(lower) or other.startswith(lower)):
            scored.append((1, candidate))
        elif (edits := distance(lower, other, limit)) <= limit:
            scored.append((1 + edits, candidate))
    scored.sort()
    return tuple(candidate for _, candidate in scored[:most])


# ------------------------------------------------------------------------------
# What other tools call things, and what they are called here. Off the hot path: refusals only.
#
# Sources: bpftrace's reference guide ("Builtins", "Functions"), perf-probe(1), the manual of GDB
# ("Convenience Vars"), Delve's Documentation/cli/expr.md.

_NAMES = {
    "retval": "write `$retval`, with `--return`",
    "comm": "write `$comm`",
    "pid": "write `$pid`, in a trace",
    "tid": "write `$tid`, in a trace",
    "cpu": "write `$cpu`, in a trace",
    "nsecs": "write `$time`, in a trace; `--latency` shows the time of calls",
    "kstack": "`trace --stack` shows the callers",
    "ustack": "`trace --stack` shows the callers",
    "curtask": "in the kernel write `$current`",
}
_TEXTS = ("str", "kstr", "ustr")
# What turns a number of network byte order round, in C, the kernel and bpftrace.
_TURNED = {
    "ntohs": 16, "be16_to_cpu": 16, "bpf_ntohs": 16, "ntohl": 32, "be32_to_cpu": 32,
    "bpf_ntohl": 32, "be64_to_cpu": 64, "bswap": 16,
}  # fmt: skip
_CALLS = {
    "buf": "write a range: `p[0:n]`",
    "reg": "write the register: `%di`",
    "strlen": "a string is shown whole; for a Go string or a class write `len(s)`, `s.size()`",
    "hist": "`trace --histogram EXPR` draws it",
    "lhist": "`trace --histogram EXPR` draws it",
    "count": "`trace --summary` counts calls, `--sum EXPR` adds up",
    "sum": "`trace --sum EXPR` adds up",
    "avg": "`trace --sum EXPR` shows the mean",
    "printf": "name the values alone: `trace` prints them",
}


def name_meant(name: str, parameters: Sequence[str]) -> str | None:
    """What to write for ``name``; ``parameters`` are those of the function, in order."""
    argument = re.fullmatch(r"arg(\d)", name)
    if argument is not None:
        number = int(argument[1])
        own = f"`{parameters[number]}`, or " if number < len(parameters) else ""
        return f"arguments are counted from 1: write {own}`$arg{number + 1}`"
    if name == "args":
        first = f"; one has its name alone: `{parameters[0]}`" if parameters else ""
        return f"`$args` is all parameters{first}"
    return _NAMES.get(name)


def call_meant(name: str) -> str | None:
    """What to write for the call of a function that another tool has."""
    if name in _TEXTS:
        return f"leave `{name}()` out: a `char *` is a string; cast another pointer, `(char *)p`"
    if name in _TURNED:
        return f"`fetchc trace` swaps the bytes of a number: `e:u{_TURNED[name]}be`"
    return _CALLS.get(name)
