"""Bits of a structure that no member explains: where an unnamed bit field may be.

Debug information has no entry for ``int :32;``, and gcc passes the eightbyte that holds
one in an integer register (clang ignores it; measured with gcc 12 and clang 14).
"""

from __future__ import annotations

from fetchc.abi.layout import round_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["unexplained_bits"]


def unexplained_bits(
    members: Iterable[tuple[int, int, int, bool]], size: int, alignment: int
) -> list[tuple[int, int]]:
    """Half-open ranges of bits that the members' alignment does not account for.

    ``members`` are (first bit, bits, alignment in bits, whether a bit field), in any order;
    the alignment of a bit field is the size of its type. ``size`` and ``alignment`` of the
    structure are in bits too. An unnamed bit field within ordinary padding stays unseen.
    """
    gaps = []
    end = 0
    for first, bits, unit, is_bit_field in sorted(members):
        natural = end
        if not is_bit_field or end // unit != (end + bits - 1) // unit:
            natural = round_up(end, unit)
        if first > natural:
            gaps.append((end, first))
        end = max(end, first + bits)
    if size > round_up(end, alignment):
        gaps.append((end, size))
    return gaps
