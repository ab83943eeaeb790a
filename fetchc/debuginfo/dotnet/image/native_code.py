"""What is asked of an assembly's native code, whatever format it is in.

Nothing imports this module at run time: it is of use to type checkers alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from fetchc.quantities import Address
else:
    Protocol = object

__all__ = ["NativeCode"]


class NativeCode(Protocol):
    """The code of methods. A piece of code goes by a number, which is the format's own matter."""

    def entry(self, method: int) -> int | None:
        """The piece of code that a method begins with, by its row; None where it has none."""

    def entries(self) -> Iterator[tuple[int, int]]:
        """The rows of all methods that have code, each with its piece of code."""

    def begin(self, index: int, /) -> Address:
        """Relative address of the first byte of a piece of code."""

    def end(self, index: int, /) -> Address:
        """The address behind it."""

    def instances(self) -> list[int]:
        """Offsets in the file of what is said of instantiations; none where nothing is known."""
