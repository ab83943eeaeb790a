"""The format ``fetcharg``: one fetch-arg an expression, and the name it can bear."""

from __future__ import annotations

from fetchc.emit.names import argument_name
from fetchc.ir.notation import body

__all__ = ["argument_name", "body"]
