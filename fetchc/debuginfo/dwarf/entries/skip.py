"""Functions that jump over attribute values, generated for each sequence of forms.

Walking is what a reader does most: 15 million entries in a kernel. A function written out
for one sequence (fixed sizes summed, LEB128 loops in line) walks 4 to 10 million entries a
second, a hundred times what an interpreter of forms does. Producers use about a thousand
sequences in a kernel and a few dozen in most programs; the cache is bounded all the same.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries import constants as c
from fetchc.debuginfo.dwarf.entries.forms import Encoding, read_uleb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Skipper = Callable[[bytes, int], int]

__all__ = ["fixed_size", "interpreted", "skipper"]

_MOST = 4096  # generated functions kept, about 1 kB each
_skippers: dict[tuple[tuple[int, ...], tuple[int, int, int, bool]], Skipper] = {}


def fixed_size(forms: tuple[int, ...], encoding: Encoding) -> int | None:
    """Size of the values together, None where one of them has no fixed size."""
    total = 0
    for form in forms:
        size = encoding.sizes.get(form)
        if size is None:
            return None
        total += size
    return total


def interpreted(forms: tuple[int, ...], encoding: Encoding) -> Skipper:
    """A function that does the same form by form, for sequences met only a few times."""
    readers = encoding.readers

    def skip(data: bytes, at: int) -> int:
        for form in forms:
            if form == c.DW_FORM_indirect:
                at = encoding.indirect(data, at)[2]
            elif form != c.DW_FORM_implicit_const:
                at = readers[form](data, at)[1]
        return at

    return skip


def skipper(forms: tuple[int, ...], encoding: Encoding) -> Skipper:
    """A generated function (data, position of the first value) -> position behind the last.

    It raises one of forms.DAMAGED where the data ends.
    """
    key = (forms, encoding.key)
    found = _skippers.get(key)
    if found is None:
        if len(_skippers) >= _MOST:
            _skippers.clear()
        found = _skippers[key] = _generated(forms, encoding)
    return found


def _generated(forms: tuple[int, ...], encoding: Encoding) -> Skipper:
    # Only these literal lines are ever executed: no text of the input gets into the source.
    lines: list[str] = []
    pending = 0
    for form in forms:
        size = encoding.sizes.get(form)
        if size is not None:
            pending += size
            continue
        if pending:
            lines.append(f" p += {pending}")
            pending = 0
        lines.extend(_LINES.get(form, _LEB128))
    lines.append(f" return p + {pending}" if pending else " return p")
    names: dict[str, object] = {
        "uleb": read_uleb,
        "u16": encoding.numbers[2].unpack_from,
        "u32": encoding.numbers[4].unpack_from,
        "indirect": encoding.indirect,
    }
    exec("def skip(b, p):\n" + "\n".join(lines), names)
    made: Skipper = names["skip"]  # type: ignore[assignment]  # exec made it
    return made


_LEB128 = (" while b[p] > 127: p += 1", " p += 1")
_ULEB_BLOCK = (
    " n = b[p]; p += 1",
    " if n > 127: n, p = uleb(b, p - 1)",
    " p += n",
)
_LINES = {
    c.DW_FORM_string: (" p = b.index(0, p) + 1",),
    c.DW_FORM_block: _ULEB_BLOCK,
    c.DW_FORM_exprloc: _ULEB_BLOCK,
    c.DW_FORM_block1: (" p += 1 + b[p]",),
    c.DW_FORM_block2: (" p += 2 + u16(b, p)[0]",),
    c.DW_FORM_block4: (" p += 4 + u32(b, p)[0]",),
    c.DW_FORM_indirect: (" p = indirect(b, p)[2]",),
}
