"""What ends a run of the suite: a toolchain that cannot be used, a machine that does not let us."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, Error

__all__ = ["ConformanceError", "refused"]


class ConformanceError(Error):
    """The suite cannot go on; ``diagnostic`` is of the FC08 family."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code}: {diagnostic.message}")
        self.diagnostic = diagnostic


def refused(code: str, message: str, help: str, *notes: str) -> ConformanceError:
    """An exception with one diagnostic, for ``raise refused(...)``."""
    return ConformanceError(Diagnostic(code, message, notes=notes, help=help))
