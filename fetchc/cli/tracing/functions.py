"""``-f``: names and globs to the functions to probe."""

from __future__ import annotations

from fetchc.diag.diagnostic import CompileError, reject
from fetchc.program.go_symbol_names import without_type_arguments
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.api.library import Program

__all__ = ["MOST", "Name", "named", "wider"]

MOST = 10_000
"""Functions of a session: installed in a few seconds, and a kernel has room for them."""


class Name(Record):
    """A function to probe; ``by_glob``: one among many that a pattern matches."""

    text: str
    by_glob: bool


def named(program: Program, patterns: Iterable[str]) -> list[Name]:
    """The functions that the patterns mean, each once.

    ``*`` and ``?`` are wildcards where no function is called exactly so: ``main.(*server).run``
    is a name. Raises CompileError FC0755 for a glob that matches nothing, and for too many.
    """
    found: dict[str, bool] = {}
    known: set[str] | None = None
    for pattern in patterns:
        if "*" not in pattern and "?" not in pattern:
            found.setdefault(pattern, False)
            continue
        if known is None:
            known = set(program.functions())
        if pattern in known or _method(pattern, known):
            found.setdefault(pattern, False)
            continue
        matching = list(program.functions(pattern))
        if not matching and (_is_go_name(pattern) or _is_overload(program, pattern)):
            matching = [pattern]
            found.setdefault(pattern, False)
        if not matching:
            raise reject(
                "FC0755",
                f"no function with code matches `{pattern}` in `{program.path}`",
                help=wider(program, pattern)
                or f"list them: `fetchc functions '*part*' -x {program.path}`",
            )
        for name in matching:
            found.setdefault(name, True)
    if len(found) > MOST:
        raise reject(
            "FC0755",
            f"{len(found)} functions match, of which {MOST} can be traced at once",
            help="narrow it: `-f 'main.*'`",
        )
    return [Name(text, by_glob) for text, by_glob in found.items()]


def wider(program: Program, pattern: str) -> str | None:
    """What a glob of a part of names would have to be; None where that matches nothing either."""
    # A glob is of whole names, with their package's path or their namespaces.
    tried = [f"*{pattern}", f"*{pattern}*"]
    found = [(sum(1 for _ in program.functions(whole)), whole) for whole in tried]
    if "*" in pattern or "?" in pattern:
        del found[1:]
    number, whole = max(found, key=lambda one: one[0])
    return f"`{whole}` matches {number}: a glob is of whole names" if number else None


def _is_go_name(pattern: str) -> bool:
    # dns.(*Msg).Pack, Stack[*Item].Push: a receiver's star, or a type argument's.
    rest = without_type_arguments(pattern).replace("(*", "(")
    return "*" not in rest and "?" not in rest


def _is_overload(program: Program, pattern: str) -> bool:
    # Type.Method(int*, char*): the stars are of pointers.
    if "(" not in pattern.partition("*")[0].partition("?")[0]:
        return False
    try:
        program.probe(pattern)
    except CompileError:
        return False
    return True


def _method(pattern: str, known: set[str]) -> bool:
    # `(*server).run`, `server.(*conn).run`: the end of a name, star and all.
    return "(*" in pattern and any(
        name.endswith(pattern) and name[-len(pattern) - 1] in "./" for name in known
    )
