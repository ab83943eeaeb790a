"""The format ``fetcharg``: one fetch-arg an expression, and the names arguments get."""

from __future__ import annotations

from fetchc.ir.notation import body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.target.kernel import Kernel

__all__ = ["argument_name", "body"]


def argument_name(expression: str, kernel: Kernel, taken: Container[str] = ()) -> str:
    """A C identifier that reads like ``expression`` and is none of ``taken``."""
    return expression
