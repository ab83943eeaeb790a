"""Records of the kernel that are not as they are known to be: told, and never taken for values."""

from __future__ import annotations

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.kernel.tracefs import refused

__all__ = ["unread"]

_HELP = "`fetchc add --enable` has the kernel print them itself; report its version with this"


def unread(what: str) -> TracerError:
    """FC0716, for ``raise unread(...)``; ``what`` is odd, in words."""
    return refused("FC0716", f"the kernel's records cannot be read: {what}", help=_HELP)
