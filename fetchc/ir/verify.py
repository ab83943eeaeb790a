"""A fetch against the rules of one kernel: what it would refuse, or silently mangle."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.model import Diagnostic
    from fetchc.ir.nodes import Fetch
    from fetchc.target.kernel import Kernel

__all__ = ["verify"]


def verify(fetch: Fetch, kernel: Kernel, kind: str = "uprobe") -> tuple[Diagnostic, ...]:
    """Problems of ``fetch`` in a probe of ``kind`` (``uprobe``, ``uretprobe``); none is ()."""
    return ()
