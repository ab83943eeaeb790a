"""Memory of programs that a probe of the kernel read: whether it was in RAM.

A probe of a program brings a page in that is not there. One of the kernel may not wait, and what
it could not read leaves in the record what was there before (``copy_from_user_nofault`` of
mm/maccess.c clears nothing; seen on 7.3). A number does not tell. A text does, and as the name of a
symbol (``symstr``) any eight bytes are a short one: fetched beside the others, it says whether
these could be read.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.model import Value

    Faults = list[str]
    Make = Callable[[bytes, Faults], Value]

__all__ = ["Told", "if_there"]

_WORD = struct.Struct("=Q").unpack_from
_MASK = (1 << 64) - 1
_PAGE = 4096  # bytes; of larger ones the ends of what is read are told all the same
_READ = 8  # bytes that a text tells of


class Told:
    """What the texts beside the bytes of an object say.

    ``pointer`` is where in the record the address is that the object was found by; each of
    ``texts`` comes with how far behind it the bytes are that it tells of.
    """

    def __init__(self, pointer: int, texts: Sequence[tuple[Make, int]]) -> None:
        self._pointer = pointer
        self._texts = texts

    def there(self, data: bytes, address: int) -> bool:
        """Whether the page of ``address`` was in RAM."""
        start = _WORD(data, self._pointer)[0]
        page = address // _PAGE
        for text, behind in self._texts:
            low = start + behind & _MASK
            last = low + _READ - 1
            if low // _PAGE <= page <= last // _PAGE and text(data, []) is not None:
                return True
        return False

    def all_there(self, data: bytes, moved: int, size: int) -> bool:
        """Whether ``size`` bytes were, from ``moved`` bytes behind where the pointer leads on."""
        low = _WORD(data, self._pointer)[0] + moved & _MASK
        pages = range(low // _PAGE, (low + size - 1) // _PAGE + 1)
        return all(self.there(data, page * _PAGE) for page in pages)


def if_there(make: Make, told: Told, moved: int, size: int, path: str) -> Make:
    """``make`` of an object of ``size`` bytes if all of it was read; else ``path`` is a fault."""

    def careful(data: bytes, faults: Faults) -> Value:
        if not told.all_there(data, moved, size):
            faults.append(path)
            return None
        return make(data, faults)

    return careful
