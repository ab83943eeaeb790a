"""What is inside a channel: ``ch.qcount``, ``ch.buf[0]``.

A channel is a pointer to the run-time's structure. ``buf`` leads to room for ``dataqsiz`` elements,
which values take in turn: the next one is received from ``buf[recvx]``.
Source: Go 1.15 to 1.27, src/runtime/chan.go (hchan).
"""

from __future__ import annotations

from fetchc.check.typed import Follow
from fetchc.program.types import Member, SliceType, StructType
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.program.types import ChannelType

__all__ = ["header"]

_BUFFER, _ROOM = "buf", "dataqsiz"


def header(checker: Checker, channel: Typed, made: ChannelType) -> Typed:
    """The structure behind ``channel``, of which the buffer is a slice of elements."""
    inside = checker.resolved(made.header)
    if not isinstance(inside, StructType):
        return Follow(channel, made.header, channel.span)
    known = {member.name: member for member in inside.members}
    if not {_BUFFER, _ROOM} <= known.keys():
        return Follow(channel, made.header, channel.span)
    start = known[_BUFFER].offset
    first = Member("array", checker.pointer_to(made.element), ByteOffset(0))
    count = Member("len", known[_ROOM].type, ByteOffset(known[_ROOM].offset - start))
    word = ByteSize(checker.program.word_bytes)
    elements = checker.program.intern(SliceType("", word, made.element, (first, count)))
    buffer = Member(_BUFFER, elements, start)
    members = tuple([buffer if one.name == _BUFFER else one for one in inside.members])
    whole = StructType(inside.name, inside.kind, inside.size, members)
    return Follow(channel, checker.program.intern(whole), channel.span)
