"""The format ``probe``: whole definitions for ``uprobe_events``, and their names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.diag.model import Diagnostic
    from fetchc.ir.nodes import Fetch
    from fetchc.target.kernel import Kernel
    from fetchc.units import FileOffset

__all__ = ["definition", "event_name", "group_name", "verify_event"]


def definition(
    kind: str,
    group: str,
    event: str,
    path: str,
    offset: FileOffset,
    arguments: Sequence[tuple[str, str]],
) -> str:
    """One line of ``uprobe_events``: ``p:GROUP/EVENT PATH:0xOFFSET NAME=BODY ...``."""
    letter = {"uprobe": "p", "uretprobe": "r"}[kind]
    words = [f"{letter}:{group}/{event}", f"{path}:{offset:#x}"]
    words += [f"{name}={body}" for name, body in arguments]
    return " ".join(words)


def event_name(function: str) -> str:
    """A C identifier for probes of ``function``: the last part of its name."""
    return function


def group_name(path: str) -> str:
    """The group of probes of the file ``path``: ``fetchc_`` and its base name."""
    return path


def verify_event(
    arguments: Sequence[tuple[str, Fetch]],
    group: str,
    event: str,
    path: str,
    offset: FileOffset,
    kernel: Kernel,
    kind: str = "uprobe",
) -> tuple[Diagnostic, ...]:
    """Problems of a whole definition beyond those of its fetches; none is ()."""
    return ()
