"""What a file's code calls and takes the address of, by what is called: one pass for all functions.

Code names a place by an opcode and a distance of four bytes from behind them. Instructions have no
mark of where they begin, so bytes that only look like one are found, too.
"""

from __future__ import annotations

import re
from array import array
from struct import Struct

from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.debuginfo.elf.elf_file import Elf
    from fetchc.target.machines import CallRules

__all__ = ["CodeUses"]

_PF_X = 1
_DISTANCE = Struct("<i")
_WORD = Struct("=Q")  # an element of the arrays
_END = 1 << 64  # of all addresses; a segment behind it is damage


class CodeUses:
    """The places in the code that name another one; making it reads nothing."""

    __slots__ = ("_addresses", "_calls", "_elf", "rules")

    def __init__(self, elf: Elf, rules: CallRules) -> None:
        self._elf = elf
        self.rules = rules
        self._calls: _Distances | None = None
        self._addresses: _Distances | None = None

    def calls(self, target: Address) -> Iterator[Address]:
        """Where direct calls of ``target`` return to, in order."""
        if self._calls is None:
            self._calls = _Distances(self._elf, (self.rules.opcode,))
        return self._calls.to(target)

    def takes_address(self, target: Address, size: int) -> bool:
        """Whether an instruction outside the ``size`` bytes of the function ``target`` computes
        its address from a distance.
        """
        if self._addresses is None:
            self._addresses = _Distances(self._elf, self.rules.address_of)
        return any(not target < at <= target + size for at in self._addresses.to(target))


class _Distances:
    # What is named, and behind what: 16 bytes for each, half a million in 30 MB of code.
    __slots__ = ("_behind", "_named")

    def __init__(self, elf: Elf, opcodes: Sequence[bytes]) -> None:
        pattern = re.compile(b"|".join([re.escape(one) for one in opcodes]), re.DOTALL)
        segments = [one for one in elf.segments if one.flags & _PF_X and one.file_size]
        segments = [one for one in segments if one.address + one.memory_size < _END]
        low = min([one.address for one in segments], default=0)
        high = max([one.address + one.memory_size for one in segments], default=0)
        named, behind = array("Q"), array("Q")
        for segment in segments:
            code = elf.read(segment.address, segment.file_size)
            last = len(code) - _DISTANCE.size
            for one in pattern.finditer(code):
                at = one.end()
                if at > last:
                    break
                end = segment.address + at + _DISTANCE.size
                target = end + _DISTANCE.unpack_from(code, at)[0]
                if low <= target < high:  # no chance bytes that lead out of all code
                    named.append(target)
                    behind.append(end)
        self._named = named.tobytes()
        self._behind = behind

    def to(self, target: Address) -> Iterator[Address]:
        """The addresses behind the distances that lead to ``target``, in order."""
        wanted = _WORD.pack(target)
        at = self._named.find(wanted)
        while at >= 0:
            if at % _WORD.size == 0:
                yield Address(self._behind[at // _WORD.size])
            at = self._named.find(wanted, at + 1)
