"""Conventions that pass word by word: one engine for all machines but x86-64, rules as data.

A value goes as a pointer, in floating-point registers, in integer registers, or on the stack;
targets/abi says which, for each machine with the text that it is from. Where gcc and clang agree
with each other and not with the text, they are followed; the conformance tests
(tests/conformance/test_architectures.py) ask the compilers.
"""

from __future__ import annotations

from fetchc.abi.layout import (
    UnclassifiedError,
    one_by_one,
    round_up,
    unaddressed,
    unclassified,
    undecided,
)
from fetchc.abi.passing import REFERENCE, Passing
from fetchc.abi.shapes import Leaf
from fetchc.program.places import Absent, Indirect, InMemory, InRegister, Piece, Pieces
from fetchc.target.model import WordRules
from fetchc.units import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.program.places import Place
    from fetchc.program.protocol import Program
    from fetchc.target.model import Convention
    from fetchc.units import DwarfRegister, TypeId

    Alignment = Callable[[], int]

__all__ = ["parameter_places", "result_place"]


def _unaligned() -> int:
    return 1


def parameter_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> tuple[Place, ...]:
    """See :func:`fetchc.abi.places.parameter_places`."""
    rules = _rules(convention)
    passing = Passing(program, convention.word_bytes, rules)
    call = _Call(convention, convention.integer_registers, convention.float_registers)
    stopped: Absent | None = None
    try:
        in_memory = any(passing.is_returned_in_memory(result) for result in results)
        if in_memory and rules.result_address is None:
            call.place(REFERENCE, convention.word_bytes, _unaligned)
    except UnclassifiedError as error:
        stopped = undecided(error, "the result")

    def place(_position: int, parameter: TypeId) -> Place:
        halves = passing.halves(parameter)
        return call.place(*passing.how(parameter)) if halves is None else call.parts(halves)

    return one_by_one(parameters, place, stopped)


def result_place(program: Program, convention: Convention, result: TypeId) -> Place:
    """See :func:`fetchc.abi.places.result_place`."""
    rules = _rules(convention)
    passing = Passing(program, convention.word_bytes, rules)
    registers = convention.result_integer_registers
    try:
        if not passing.is_returned_in_memory(result):
            call = _Call(convention, registers, convention.result_float_registers)
            return call.place(*passing.how(result))
    except UnclassifiedError as error:
        return unclassified(error)
    if not rules.result_address_returned:
        return unaddressed()
    return InMemory(registers[0], ByteOffset(0))


class _Call:
    """Registers and stack handed out so far to the values of one call."""

    __slots__ = ("_convention", "_free", "_integers", "_next", "_rules", "_stack", "_word")

    def __init__(
        self,
        convention: Convention,
        integers: Sequence[DwarfRegister],
        floats: Sequence[DwarfRegister],
    ) -> None:
        self._convention = convention
        self._rules = _rules(convention)
        self._word = convention.word_bytes
        self._integers = integers
        self._next = 0  # of the integer registers; of all words where they are positions
        self._free: list[DwarfRegister | None] = list(floats)
        self._stack = 0

    def place(self, how: str | tuple[Leaf, ...], size: int, alignment: Alignment) -> Place:
        """The next value's place; ``how`` as :meth:`fetchc.abi.passing.Passing.how` gives it."""
        if size == 0:
            return Pieces(())
        if how == REFERENCE:
            pointer = self._words(self._word, _unaligned)
            if isinstance(pointer, InRegister):
                return InMemory(pointer.register, ByteOffset(0))
            return Indirect(pointer, ByteOffset(0))
        if isinstance(how, str):
            return self._words(size, alignment)
        place = self._in_floats(how, size)
        if place is not None:
            if self._rules.positions:
                self._words(size, alignment)
            return place
        if self._rules.positions:
            return self._partly_in_floats(how, size, alignment)
        if self._rules.floats_overflow:
            return self._words(size, alignment)
        if self._rules.closes:
            self._free = []
        return self._push(size, alignment)

    def parts(self, leaves: tuple[Leaf, ...]) -> Place:
        """The place of a value whose numbers are passed like parameters of their own."""
        return Pieces(
            tuple(
                [
                    Piece(
                        ByteOffset(leaf.offset),
                        ByteSize(leaf.size),
                        self.place((Leaf(0, leaf.size, True),), leaf.size, _unaligned),
                    )
                    for leaf in leaves
                ]
            )
        )

    def _in_floats(self, leaves: tuple[Leaf, ...], size: int) -> Place | None:
        """A register each, in a row; None, and nothing taken, where there are too few."""
        whole = [leaf for leaf in leaves if not leaf.floating]
        if whole and len(whole) > len(self._integers) - self._next:
            return None
        each = max(1, leaves[0].size // self._rules.float_register_bytes)
        many = each * (len(leaves) - len(whole))
        for start in range(0, len(self._free) - many + 1, each):
            row = self._free[start : start + many]
            if None not in row:
                break
        else:
            return None
        self._free[start : start + many] = [None] * many
        registers = iter([register for register in row[::each] if register is not None])
        pieces = []
        for leaf in leaves:
            if leaf.floating:
                register = next(registers)
            else:
                register = self._integers[self._next]
                self._next += 1
            pieces.append(Piece(ByteOffset(leaf.offset), ByteSize(leaf.size), InRegister(register)))
        return _joined(pieces, size)

    def _partly_in_floats(self, leaves: tuple[Leaf, ...], size: int, alignment: Alignment) -> Place:
        # As many numbers as there are registers left, the others in their words.
        left = [register for register in self._free if register is not None]
        words = self._words(size, alignment)
        self._free = [None] * len(self._free)
        if not left:
            return words
        pieces = [
            Piece(ByteOffset(leaf.offset), ByteSize(leaf.size), InRegister(register))
            for leaf, register in zip(leaves, left, strict=False)
        ]
        rest = (
            words.pieces
            if isinstance(words, Pieces)
            else (Piece(ByteOffset(0), ByteSize(size), words),)
        )
        end = pieces[-1].offset + pieces[-1].size
        pieces += [piece for piece in rest if piece.offset + piece.size > end]
        return Pieces(tuple(pieces))

    def _words(self, size: int, alignment: Alignment) -> Place:
        """Integer registers, the stack, or both."""
        word, rules = self._word, self._rules
        paired = rules.pairs or rules.positions
        if paired and size > word and alignment() >= 2 * word:
            self._next = round_up(self._next, 2)
        count = round_up(size, word) // word
        left = self._integers[self._next : self._next + count]
        if rules.positions:
            return self._at_position(size, count)
        if len(left) < count and not (left and rules.splits and self._stack == 0):
            if rules.closes:
                self._next = len(self._integers)
            return self._push(size, alignment)
        self._next += len(left)
        pieces = self._pieces(left, size)
        rest = size - word * len(left)
        if rest > 0:
            start = ByteOffset(size - rest)
            pieces.append(Piece(start, ByteSize(rest), self._push(rest, _unaligned)))
        return _joined(pieces, size)

    def _at_position(self, size: int, count: int) -> Place:
        # The caller's frame has a slot for each word, those in registers among them.
        word, first = self._word, self._next
        self._next += count
        left = self._integers[first : first + count]
        pieces = self._pieces(left, size)
        rest = size - word * len(left)
        if rest > 0:
            at = self._convention.stack_offset + word * (first + len(left))
            slot = InMemory(self._convention.stack_pointer, ByteOffset(at))
            pieces.append(Piece(ByteOffset(size - rest), ByteSize(rest), slot))
        return _joined(pieces, size)

    def _pieces(self, registers: Sequence[DwarfRegister], size: int) -> list[Piece]:
        word = self._word
        return [
            Piece(
                ByteOffset(word * index),
                ByteSize(min(word, size - word * index)),
                InRegister(register),
            )
            for index, register in enumerate(registers)
        ]

    def _push(self, size: int, alignment: Alignment) -> InMemory:
        word, rules = self._word, self._rules
        start = self._stack
        if size > word < rules.stack_alignment:
            start = round_up(start, max(word, min(alignment(), rules.stack_alignment)))
        self._stack = start + round_up(size, word)
        if rules.right_adjusted and size < word:
            start += word - size
        offset = ByteOffset(self._convention.stack_offset + start)
        return InMemory(self._convention.stack_pointer, offset)


def _joined(pieces: list[Piece], size: int) -> Place:
    if len(pieces) == 1 and pieces[0].offset == 0 and pieces[0].size == size:
        return pieces[0].place
    return Pieces(tuple(pieces))


def _rules(convention: Convention) -> WordRules:
    assert isinstance(convention.rules, WordRules)
    return convention.rules
