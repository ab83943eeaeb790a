"""How installed definitions are shown, by ``add``, ``list`` and ``remove``."""

from __future__ import annotations

from fetchc import __version__
from fetchc.answers.json_documents import diagnostic_document
from fetchc.diag.render import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.tracer.persistent_probes import ListedEvent

__all__ = ["document", "lines"]

_OWNERS = {
    "added": "added",
    "session": "of a running session",
    "stale": "left by a session that was killed",
    "other": "not fetchc's",
}
_STATES = {True: "on", False: "off", None: "?"}


def lines(listed: Sequence[ListedEvent]) -> Iterator[str]:
    """Two lines or more an event: what it is, and its definitions."""
    width = max((len(one.name) for one in listed), default=0)
    for one in listed:
        hits = "?" if one.hits is None else str(one.hits)
        words = [f"{one.name:<{width}}", f"{_STATES[one.enabled]:<3}", f"{hits:>7} hits"]
        words.append(_OWNERS[one.owner])
        if one.added is not None:
            words.append(_source(one.added.function, one.added.expressions))
        yield printable("  ".join(words).rstrip())
        for line in one.definitions:
            yield "    " + printable(line)


def _source(function: str | None, expressions: tuple[str, ...]) -> str:
    return f"{function or ''}: {', '.join(expressions)}" if expressions else function or ""


def document(listed: Sequence[ListedEvent], diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """The JSON form."""
    return {
        "fetchc": __version__,
        "definitions": [
            {
                "group": one.group,
                "event": one.event,
                "owner": one.owner,
                "binary": None if one.added is None else one.added.binary,
                "function": None if one.added is None else one.added.function,
                "expressions": None if one.added is None else list(one.added.expressions),
                "definitions": list(one.definitions),
                "enabled": one.enabled,
                "hits": one.hits,
            }
            for one in listed
        ],
        "diagnostics": [diagnostic_document(each, None) for each in diagnostics],
    }
