"""What every Program answers that is neither a kernel by its BTF nor an image of .NET."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.program.entities import Function, Property
    from fetchc.program.protocol import ObjectTypes
    from fetchc.quantities import TypeId

__all__ = ["Ordinary"]


class Ordinary:
    """A base of Programs; each question is explained in
    :class:`~fetchc.program.protocol.Program`.
    """

    __slots__ = ()

    def tracepoints(self) -> Iterator[str]:
        """None, as :meth:`tracepoint`."""
        return iter(())

    def events(self) -> Iterator[str]:
        """None, as :meth:`event`."""
        return iter(())

    def tracepoint(self, name: str) -> Function | None:
        """None: BTF is where tracepoints are looked up."""
        return None

    def event(self, group: str, name: str) -> Function | None:
        """None: BTF is where events are looked up."""
        return None

    def continued_in(self, function: Function) -> str:
        """Empty: nothing says that a function's body is another one's."""
        return ""

    def without_code(self) -> Iterator[tuple[str, str]]:
        """None: what has no code is not described."""
        return iter(())

    def packages_called(self, name: str) -> tuple[str, ...]:
        """None: packages are of Go."""
        return ()

    def interface_tables(self) -> tuple[tuple[str, str], ...]:
        """None: they are of Go."""
        return ()

    def named_constants(self, type_id: TypeId) -> tuple[tuple[str, int], ...]:
        """None: constants with names of their own are of Go."""
        return ()

    def property_of(self, type_id: TypeId, name: str) -> Property | None:
        """None: properties are of .NET."""
        return None

    def object_types(self) -> ObjectTypes | None:
        """None: objects say nothing of their types."""
        return None
