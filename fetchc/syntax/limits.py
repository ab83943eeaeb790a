"""How long and how deep an argument may be.

The kernel takes far less (62 characters of a fetch-arg's body, some tens of
dereferences), but that is said of the compiled text. These bounds keep every pass that
walks a tree by recursion safe.
"""

from __future__ import annotations

from fetchc.diag.errors import reject
from fetchc.record import Record
from fetchc.source import Span

__all__ = [
    "BRACKETS",
    "DEPTH",
    "LENGTH",
    "depth_exceeds",
    "shown",
    "too_deep",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.errors import CompileError

LENGTH = 4096  # characters of one argument
BRACKETS = 200  # brackets open at once
_SHOWN = 60  # characters of the text repeated in a message
DEPTH = 200  # nodes of a tree from its root to a leaf


def too_deep(span: Span) -> CompileError:
    """The refusal of a tree that is deeper than :data:`DEPTH`."""
    return reject("FC0102", f"more than {DEPTH} operations within each other", span, "too deep")


def depth_exceeds(root: Record, limit: int = DEPTH) -> bool:
    """Whether a tree is deeper than ``limit``; walks level by level, without recursion."""
    level = [root]
    for _ in range(limit):
        level = [child for node in level for child in _children(node)]
        if not level:
            return False
    return True


def _children(node: Record) -> list[Record]:
    found: list[Record] = []
    fields: tuple[str, ...] = type(node).__match_args__
    for field in fields:
        value = getattr(node, field)
        if isinstance(value, Record) and not isinstance(value, Span):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(item for item in value if isinstance(item, Record))
    return found


def shown(text: str) -> str:
    """A piece of the text as a message has it: of bounded length, and safe to print."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text[:_SHOWN])
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
