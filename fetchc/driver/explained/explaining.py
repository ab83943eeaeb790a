"""``fetchc explain``: what a fetch does, hop by hop, in the words of the program.

Works on a fetch, whoever wrote it: its registers are looked up among the parameters, its offsets
in the types. Of an expression the checker's own findings come first, since only they know of
casts and of the members of unions.
"""

from __future__ import annotations

import re

from fetchc.check.checker import check
from fetchc.check.probe_site import Checker
from fetchc.diag.diagnostic import CompileError
from fetchc.driver.compile import compile_argument
from fetchc.driver.explained.hints import Hints
from fetchc.driver.explained.outcomes import outcome
from fetchc.driver.explained.roads import Hop, Walk
from fetchc.driver.points.found import Found
from fetchc.driver.points.sites import find_site
from fetchc.driver.written.fetching import ReadFetch
from fetchc.ir.fetch import body
from fetchc.record import Record
from fetchc.syntax.expression_parser import parse_argument
from fetchc.syntax.fetcharg_parser import read_fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.ir.fetch import Decode, Fetch
    from fetchc.syntax.tree import Argument
    from fetchc.target.kernel_versions import Kernel

__all__ = ["Explained", "Hop", "Road", "explain"]

_WRITTEN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*=)?[-+@%$\\]")  # how a fetch-arg begins


class Road(Record):
    """The hops of one fetch-arg, and what the event holds of it in the end.

    ``name`` is that of a companion or a member, empty for the value itself. ``unknown`` says why
    the known types end on the way, or do not fit.
    """

    name: str
    fetcharg: str
    hops: tuple[Hop, ...]
    result: str
    decode: Decode | None
    unknown: str | None


class Explained(Record):
    """A text explained: one fetch-arg, or those of a whole value.

    ``type`` is an expression's, None of a fetch-arg that somebody wrote. ``found`` is where.
    """

    text: str
    type: str | None
    found: Found
    roads: tuple[Road, ...]
    warnings: tuple[Diagnostic, ...]


def explain(text: str, found: Found, kernel: Kernel) -> Explained:
    """What ``text``, an expression or a fetch-arg, fetches at the site.

    Raises CompileError where it is refused. What is both (``%di``) is taken for a fetch-arg.
    """
    kind = found.site.probe_kind
    family = "function" if found.site.program.in_kernel else "program"
    read = _written(text, "event" if kind == "eprobe" else family)
    if read is not None:
        problems = read.problems_for(kernel, kind, found.site.architecture.named)
        if problems:
            raise CompileError(tuple(problems))
        assert read.fetch is not None
        return _explain_fetch(read.fetch, text, found)
    argument = parse_argument(text)
    if argument.point is not None:
        function = found.site.function
        name = None if function is None else function.name
        returns = found.kind.startswith("return")
        found = find_site(found.site.program, name, argument.point, returns, kernel=kernel)
    return _explain_argument(argument, text, found, kernel)


def _written(text: str, family: str) -> ReadFetch | None:
    """``text`` as a fetch-arg of a probe of ``family``, None where it is an expression."""
    if not _WRITTEN.match(text):
        return None
    sure = re.match(r"([A-Za-z_]\w*=)?([-+]u?[0-9]\w*\(|@|\\)", text) is not None
    try:
        read = ReadFetch(read_fetch(text), family)
    except CompileError:
        if sure:
            raise
        return None
    return read if sure or not read.problems else None


def _explain_argument(argument: Argument, text: str, found: Found, kernel: Kernel) -> Explained:
    """The hops of an expression: of its one fetch-arg, or of all where one cannot hold it."""
    try:
        compiled = compile_argument(argument, text, found, kernel, whole=False)
    except CompileError as refusal:
        if refusal.diagnostics[0].code not in ("FC0312", "FC0505"):
            raise
        compiled = compile_argument(argument, text, found, kernel, whole=True)
    checker = Checker(found.site)
    hints = Hints(checker, text)
    hints.learn(check(checker, argument.expression))
    roads = [
        _road(Walk(checker, part.fetch, hints), part.suffix, part.decode) for part in compiled.parts
    ]
    return Explained(text, compiled.type, found, tuple(roads), compiled.warnings)


def _explain_fetch(fetch: Fetch, text: str, found: Found) -> Explained:
    """The hops of a fetch-arg that somebody wrote, by the types of what is visible there."""
    checker = Checker(found.site)
    road = _road(Walk(checker, fetch, Hints(checker, text)), "", None)
    return Explained(text, None, found, (road,), ())


def _road(walk: Walk, name: str, decode: Decode | None) -> Road:
    hops, unknown = walk.hops()
    fetch = walk.fetch
    return Road(name, body(fetch), hops, outcome(fetch.store, decode), decode, unknown)
