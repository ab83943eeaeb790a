"""Functions that an unknown name may have meant. Off the hot path: only refusals ask.

Go names are long, and people leave out parts of them: the type arguments that the compiler chose
(``main.Max`` and ``main.Max[...]``, as stack traces have it, for ``main.Max[go.shape.int]``), the
import path, the star of a receiver, the package.
"""

from __future__ import annotations

from fetchc.check.suggestions import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["alike", "alike_demangled"]


def alike(name: str, known: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """Up to ``most`` of the ``known`` names, best first."""
    names = sorted(set(known))
    wanted = _plain(name)
    within = f".{wanted}"
    found = [
        other for other in names if (short := _plain(other)) == wanted or short.endswith(within)
    ]
    if not found:
        found = list(nearest(name, names, most))
    if not found and "." in wanted:
        elsewhere = within[within.index(".", 1) :]
        found = [other for other in names if _plain(other).endswith(elsewhere)]
    if not found:
        lasts: dict[str, list[str]] = {}
        for other in names:
            lasts.setdefault(_plain(other).rpartition(".")[2], []).append(other)
        for close in nearest(wanted.rpartition(".")[2], lasts, most):
            found += lasts[close]
    return tuple(found[:most])


def alike_demangled(name: str, known: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """The same for functions of C++ by their symbols: names without parameters, best first."""
    from fetchc.lang.cpp_function_names import parts, shortened
    from fetchc.program.demangle import demangled

    wanted = parts(name)[0]
    whole: dict[str, None] = {}
    lasts: dict[str, list[str]] = {}
    for symbol in known:
        shown = demangled(symbol)
        if shown is None or "[clone" in shown:
            continue
        plain = parts(shortened(shown))[0]
        if " " not in plain and plain not in whole:
            whole[plain] = None
            lasts.setdefault(plain.rpartition("::")[2].partition("<")[0], []).append(plain)
    found = list(nearest(wanted, whole, most))
    if not found:
        for close in nearest(wanted.rpartition("::")[2], lasts, most):
            found += lasts[close]
    return tuple(found[:most])


def _plain(name: str) -> str:
    # main.Stack.Push of a.b/main.(*Stack[go.shape.[]a.b/c.T]).Push, N.T.M of N.T.M(string, int)
    kept = []
    depth = 0
    for character in name if "[" in name else ():
        depth += character == "["
        if depth == 0:
            kept.append(character)
        depth -= character == "]" and depth > 0
    bare = "".join(kept) if "[" in name else name
    bare = bare[bare.rfind("/") + 1 :].replace("(*", "").replace("%2e", ".")
    return bare.partition("(")[0].replace(")", "")
