"""What to write instead: one thing to do about each problem of a hand-written definition.

Most of what goes wrong has a few causes: names of registers and types that other tools take,
quotes of a shell, lines for other machines, other files of tracefs or perf-tools. What is not
recognised has no hint.
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import Diagnostic
from fetchc.syntax.syntax_errors import format_meant
from fetchc.target.machines import architecture, tables_under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["hinted"]

_FOLLOWED = re.compile(
    r"(?:\w+=)?(%\w+|\$stack\d+|\$retval|\$arg\d+):((u?string|[usx]\d+)(\[\d+\])?)\Z"
)
_UNSIGNED = re.compile(r"(?:\w+=)?((?:0x)?[0-9a-fA-F]+\(.+)\Z")  # 8(%di), as an assembler writes
_PERF_TOOLS = re.compile(r"[pr]:([^\s:]+):([A-Za-z_]\w*)(?=\s|\Z)")  # p:bash:readline ...


def hinted(
    problems: Iterable[Diagnostic], text: str, machine: str, path: str | None = None
) -> tuple[Diagnostic, ...]:
    """``problems`` of the definition ``text``, those with a hint that have no help yet.

    ``machine`` is a key of ``targets/arch``; ``path`` the probed file, where the line has one.
    """
    return tuple([_with(each, _hint(each, text, machine, path)) for each in problems])


def _with(problem: Diagnostic, help: str | None) -> Diagnostic:
    if help is None or problem.help is not None:
        return problem
    return Diagnostic(
        problem.code, problem.message, problem.primary, problem.secondary, problem.notes, help,
        problem.origin,
    )  # fmt: skip


def _hint(problem: Diagnostic, text: str, machine: str, path: str | None) -> str | None:
    if problem.span is None:
        return None
    here = text[problem.span.start : problem.span.end]
    start = max(text.rfind(blank, 0, problem.span.start) for blank in " \t") + 1
    word = re.split(r"[ \t]", text[start:], maxsplit=1)[0]
    if word[:1] in ('"', "'"):
        return "leave the quotes out: the kernel splits at blanks and knows no quotes"
    match problem.code:
        case "FC0512":
            return _register(here, machine)
        case "FC0507":
            return _type(here, word, path)
        case "FC0503":
            return _event(here, text)
        case "FC0207" | "FC0104" | "FC0201" if _apart(text, problem.span.start):
            return "write `NAME=FETCH-ARG` as one word, without blanks"
        case "FC0207" if here and re.search(r"\W", here):
            return f"write `{_plain(here)}`"
        case "FC0206" if path is None or ":" in here or here.isidentifier():
            return _place(text, here)
        case "FC0201" if here.startswith("$ret"):
            return "write `$retval`"
        case "FC0201" if here.isidentifier() and path is not None:
            return f"`fetchc compile '{here}' -x {path} -f FUNCTION` finds it in the program"
        case "FC0101" if (found := _UNSIGNED.match(word)) is not None:
            return f"write the sign: `+{found[1]}`"
    return None


def _apart(text: str, at: int) -> bool:
    # NAME = FETCH-ARG, at one of its three words.
    return any(
        found.start() <= at <= found.end() for found in re.finditer(r"\w*[ \t]+=", text)
    ) or (re.search(r"=[ \t]*\Z", text[:at]) is not None)


def _register(here: str, machine: str) -> str | None:
    if ";" in here or "," in here:
        return "arguments stand apart by blanks"
    name = here.lstrip("%")
    known = architecture(machine)
    if name in known.refused:
        return None
    if name in known.aliases:
        kernel, bits = known.aliases[name]
        return f"write `%{kernel}{'' if bits == 8 * known.word_bytes else f':u{bits}'}`"
    for key in tables_under("arch"):
        other = key.rpartition("/")[2]
        if other != machine and name in architecture(other).named:
            return f"it is one of {other}: `--arch {other}` goes by its registers"
    return None


def _type(here: str, word: str, path: str | None) -> str | None:
    followed = _FOLLOWED.match(word)
    if followed is not None and here == followed[3]:
        return f"follow the pointer: `+0({followed[1]}):{followed[2]}`"
    if here.startswith("$arg") and path is not None:
        return f"`fetchc compile '{here}' -x {path} -f FUNCTION` says where it is"
    if here == "$retval":
        return "probe the return: `r` in place of `p`"
    name = here.partition("[")[0]
    plain = format_meant(name)
    return None if plain is None or plain == here else f"write `{plain}`"


def _event(here: str, text: str) -> str | None:
    found = _PERF_TOOLS.match(text)
    if found is not None:
        return _compiled(found[1], found[2])
    if not here:
        return "name it, or leave out what stands for the name: `p PATH:OFFSET`"
    if "," in here:
        return "commas are for the kernel's command line: write blanks"
    plain = _plain(here)
    return f"write `{plain}`" if plain and plain != here else None


def _place(text: str, here: str) -> str | None:
    found = _PERF_TOOLS.match(text)
    if found is not None:
        return _compiled(found[1], found[2])
    path, colon, function = here.rpartition(":")
    if not colon and here.isidentifier():
        # PATH:main, of which only what is behind the colon is marked
        before = text[: text.index(here)].rpartition(" ")[2]
        path, function = before.rstrip(":"), here
    if "/" in path and function.isidentifier():
        return _compiled(path, function)
    return None


def _compiled(path: str, function: str) -> str:
    file = path if "/" in path else "PATH"
    return f"`fetchc compile EXPR --format probe -x {file} -f {function}` writes the line"


def _plain(name: str) -> str:
    made = re.sub(r"\W+", "_", name, flags=re.ASCII)
    return f"_{made}" if made[:1].isdigit() else made
