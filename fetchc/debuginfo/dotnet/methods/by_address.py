"""Native code that is outside of an assembly's own tables: a piece of it goes by its address."""

from __future__ import annotations

from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["CodeByAddress"]


class CodeByAddress:
    """A base of what knows where a method begins (``entry``) and where its code ends (``end``)."""

    __slots__ = ("_assembly",)

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    if TYPE_CHECKING:

        def entry(self, method: int) -> int | None:
            """Where a method begins, by its row."""

    def begin(self, address: int) -> Address:
        """The address itself."""
        return Address(address)

    def entries(self) -> Iterator[tuple[int, int]]:
        """The rows of all methods whose code is known, each with its address."""
        for row in range(1, self._assembly.metadata.count("MethodDef") + 1):
            address = self.entry(row)
            if address is not None:
                yield row, address

    def instances(self) -> list[int]:
        """None: nothing says for certain which types an instantiation is of."""
        return []
