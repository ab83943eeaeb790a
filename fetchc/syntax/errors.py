"""Why a text does not parse, in the words of its writer.

Off the hot path: :mod:`fetchc.syntax.parse` imports this when there is an error. The
message comes from the first of these that has one: the character, the brackets, the
table of malformed examples, and at last what the parser could have used.
"""

from __future__ import annotations

import functools
import re

from fetchc.diag.errors import reject
from fetchc.source import Span
from fetchc.syntax import tables
from fetchc.syntax.driver import END, Unexpected, run
from fetchc.syntax.examples import ANNOTATION, BEGINNINGS, COMPARISON, EXAMPLES, Complaint
from fetchc.syntax.limits import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.errors import CompileError

__all__ = ["complaint_for", "explain"]

_PAIRS = {")": "(", "]": "["}


class _NoActions:
    """A builder that makes nothing, to see where the parser stops."""

    def __getattr__(self, name: str) -> object:
        return lambda parts, span: None


def explain(text: str, start: str, problem: Unexpected) -> CompileError:
    """The diagnostic (FC0101) for a text that stopped making sense at ``problem.token``."""
    token = problem.token
    elsewhere = _of_another_tool(text, start, token.span.start)
    at = token.span.start
    if text[at - 1 : at + 1] == "?.":  # `(a?.b)`, where a type could have stood
        return _strange_character(text, "?", Span(at - 1, at))
    if (not token.kind or token.text == "?") and elsewhere is None:
        return _strange_character(text, token.text, token.span)
    brackets = _brackets(text, token.span.start, token.kind == END, token.text)
    if brackets is not None and elsewhere is None:
        return brackets
    before = _before(text, token.span.start)
    complaint = elsewhere or complaint_for(start, problem)
    complaint = complaint or _by_expectation(start, problem, before)
    span = token.span
    if token.kind == END and before is not None:
        span = before
    elif token.kind == "POINT":
        span = Span(span.start, span.start + 1)
    piece = "" if before is None else shown(text[before.start : before.end])
    message = complaint.message.replace("{before}", piece)
    message = message.replace("{token}", shown(text[span.start : span.end]))
    help = complaint.help and complaint.help.replace("{text}", shown(text))
    return reject("FC0101", message, span, complaint.label, help=help)


def _of_another_tool(text: str, start: str, stop: int) -> Complaint | None:
    # What the parser alone cannot tell: by how the whole text begins, and by two characters.
    if start != "argument":
        return None
    if {text[stop - 1 : stop + 1], text[stop : stop + 2]} & {"==", "!=", "<=", ">="}:
        return COMPARISON
    if re.search(r"\(.*\b__(user|kernel|iomem|percpu|rcu|force)\b.*\)", text):
        return ANNOTATION
    return next((told for begins, told in BEGINNINGS if re.match(begins, text)), None)


def complaint_for(start: str, problem: Unexpected) -> Complaint | None:
    """The row of the table whose examples stop in the same place, if there is one."""
    if start != "argument":
        return None
    same_state = None
    for state, kind, complaint in _stops():
        if state != problem.state:
            continue
        if kind == problem.token.kind:
            return complaint
        if _is_specific(state):
            same_state = same_state or complaint
    return same_state


@functools.cache
def _stops() -> tuple[tuple[int, str, Complaint], ...]:
    # Where the parser stops at each example.
    stops = []
    for complaint in EXAMPLES:
        for example in complaint.examples:
            try:
                run(tables, "argument", example, _NoActions())
            except Unexpected as stop:
                stops.append((stop.state, stop.token.kind, complaint))
    return tuple(stops)


def _is_specific(state: int) -> bool:
    # A state behind a whole value accepts operators: what is wrong there depends on
    # the token, so that one example says nothing of another token.
    return not {"PLUS", "SPECIAL"} & tables.STATES[state].keys()


def _by_expectation(start: str, problem: Unexpected, before: Span | None) -> Complaint:
    accepted = tables.STATES[problem.state].keys()
    if "SPECIAL" in accepted:
        what = "a value"
    elif "WORDS" in accepted:
        what = "a type"
    elif "NAME" in accepted and "PLUS" not in accepted:
        what = "a name"
    elif "INTEGER" in accepted:
        what = "a number"
    elif problem.token.kind == END:
        return Complaint("something is missing at the end", "more must follow", None, ())
    elif start == "argument" and "PLUS" in accepted:
        help = "several expressions are several arguments, each in quotes of its own"
        return Complaint("expected an operator before `{token}`", "no operator before it", help, ())
    else:
        return Complaint("`{token}` cannot stand here", "not expected here", None, ())
    if before is None:
        message = "an argument begins with a value" if what == "a value" else f"expected {what}"
        return Complaint(message, f"not {what}", None, ())
    label = f"{what} is missing" if problem.token.kind == END else f"not {what}"
    return Complaint(f"expected {what} after `{{before}}`", label, None, ())


def _strange_character(text: str, character: str, span: Span) -> CompileError:
    if not character.isprintable():
        message = f"a character that cannot be shown (U+{ord(character):04X})"
        return reject("FC0101", message, span, "not printable")
    if character in "\"'`":
        key = text[: span.start].rstrip().endswith("[")
        help = "no probe looks a key up: `len(m)` is a map's number of entries" if key else None
        return reject("FC0101", "no text in quotes can be fetched", span, "a quote", help=help)
    help = None
    if character in "?!" and text[span.end : span.end + 1] == ".":  # of C#
        help = f"leave the `{character}` out: behind null there is no value"
    what = f"`{character}` has no meaning in an expression"
    return reject("FC0101", what, span, "not known", help=help)


def _brackets(text: str, stop: int, at_end: bool, token: str) -> CompileError | None:
    # No token but the probe point, which is the last one, has brackets that do not count.
    opened: list[int] = []
    for at, character in enumerate(text[:stop]):
        if character in "([":
            opened.append(at)
        elif character in ")]" and opened:
            opened.pop()
    if at_end and opened:
        span = Span(opened[-1], opened[-1] + 1)
        return reject("FC0101", f"unclosed `{text[opened[-1]]}`", span, "never closed")
    if token in _PAIRS:
        span = Span(stop, stop + 1)
        if not opened:
            return reject("FC0101", f"`{token}` closes nothing", span, "nothing is open here")
        if text[opened[-1]] != _PAIRS[token]:
            opener = Span(opened[-1], opened[-1] + 1)
            message = f"`{token}` cannot close `{text[opened[-1]]}`"
            return reject("FC0101", message, opener, f"closed by `{token}`")
    return None


def _before(text: str, stop: int) -> Span | None:
    # The last piece of text before ``stop``, as a reader sees pieces.
    end = len(text[:stop].rstrip())
    if end == 0:
        return None
    for pattern in (r"->\Z", r"[$%@]?\w+\Z"):
        found = re.search(pattern, text[max(0, end - 64) : end])
        if found:
            return Span(end - len(found[0]), end)
    return Span(end - 1, end)
