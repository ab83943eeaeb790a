"""Alignments of structures of which some members are packed, and others aligned.

Each layout is clang's, 14.0 with -gdwarf-5, which does not say what is packed.
"""

from __future__ import annotations

import pytest

from fetchc.abi.c_alignment import Alignments
from fetchc.abi.signature import UnclassifiedError
from fetchc.program.types import (
    InterfaceType,
    IntType,
    Member,
    PointerType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    Type,
)
from fetchc.quantities import ByteOffset, ByteSize, TypeId
from tests.support.types import TypeTable


class Types(TypeTable):
    """A character, a pointer, and a union aligned to 16."""

    def __init__(self) -> None:
        super().__init__()
        self.char = self.add(IntType("char", ByteSize(1), True))
        self.pointer = self.add(PointerType("", ByteSize(8), self.char))
        self.wide = self.struct(16, alignment=16, m=(self.char, 0))

    def struct(
        self, size: int, alignment: int | None = None, **members: tuple[TypeId, int]
    ) -> TypeId:
        # What is called `base` is a base class.
        listed = tuple(
            Member(name, made, ByteOffset(offset), None, name == "base")
            for name, (made, offset) in members.items()
        )
        stated = None if alignment is None else ByteSize(alignment)
        return self.add(StructType("s", "struct", ByteSize(size), listed, stated, None))

    def alignment(self, type_id: TypeId) -> int:
        return Alignments(self.program).own(type_id)


def test_a_hole_tells_that_only_a_member_is_packed() -> None:
    # struct { char c; char *p __attribute__((packed)); char d; union aligned(16) w; }
    t = Types()
    made = t.struct(32, c=(t.char, 0), p=(t.pointer, 1), d=(t.char, 9), w=(t.wide, 16))
    assert t.alignment(made) == 16


def test_without_a_hole_nothing_tells() -> None:
    # p is packed, or all of it.
    t = Types()
    made = t.struct(48, c=(t.char, 0), p=(t.pointer, 1), q=(t.wide, 16), filled=(t.wide, 32))
    assert t.alignment(made) == 16
    seven = t.struct(7, c=(t.char, 0))
    made = t.struct(32, c=(t.char, 0), p=(t.pointer, 1), d=(seven, 9), w=(t.wide, 16))
    with pytest.raises(UnclassifiedError, match="unsaid `packed`"):
        t.alignment(made)


def test_a_member_that_is_packed_itself_raises_nothing() -> None:
    t = Types()
    made = t.struct(33, p=(t.pointer, 1), q=(t.pointer, 9), w=(t.wide, 17))
    assert t.alignment(made) == 1


def test_a_size_tells_that_the_whole_is_packed() -> None:
    t = Types()
    made = t.struct(25, c=(t.char, 0), p=(t.pointer, 1), w=(t.wide, 9))
    assert t.alignment(made) == 1


def test_a_base_class_keeps_its_alignment_in_a_packed_class() -> None:
    # struct packed aligned(4) : base { char c; char *p; }, in 16 bytes more
    t = Types()
    base = t.struct(16, w=(t.wide, 0))
    made = t.struct(32, alignment=4, base=(base, 0), c=(t.char, 16), p=(t.pointer, 17))
    assert t.alignment(made) == 16
    member = t.struct(32, alignment=4, inner=(base, 0), c=(t.char, 16), p=(t.pointer, 17))
    with pytest.raises(UnclassifiedError):
        t.alignment(member)


@pytest.mark.parametrize("kind", ["text", "slice", "interface", "span"])
def test_words_side_by_side_are_aligned_as_one_word(kind: str) -> None:
    # &str and &[T] of Rust, Span<T> of .NET: 16 bytes, aligned to 8.
    t = Types()
    number = t.add(IntType("usize", ByteSize(8), False))
    pointer = Member("data_ptr", t.pointer, ByteOffset(0))
    length = Member("length", number, ByteOffset(8))
    members, size = (pointer, length), ByteSize(16)
    made: dict[str, Type] = {
        "text": StringType("&str", size, members),
        "slice": SliceType("&[char]", size, t.char, members),
        "interface": InterfaceType("error", size, False, members),
        "span": SequenceType("Span<byte>", size, members, length, pointer, False, True),
    }
    words = t.add(made[kind])
    assert t.alignment(words) == 8
    assert t.alignment(t.struct(24, number=(number, 0), words=(words, 8))) == 8
