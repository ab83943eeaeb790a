"""System V AMD64: a value is cut into eightbytes, and each goes where its class says.

Source: System V ABI, AMD64 supplement, 3.2.3 Parameter Passing. Where gcc and clang
agree with each other and not with the text, they are followed; the conformance test
(tests/conformance/test_signatures.py) asks both.
"""

from __future__ import annotations

from fetchc.abi.classify import (
    BY_REFERENCE,
    COMPLEX_X87,
    INTEGER,
    MEMORY,
    SSE,
    SSEUP,
    WIDE_COMPLEX,
    X87,
    Classifier,
)
from fetchc.abi.layout import (
    UnclassifiedError,
    one_by_one,
    round_up,
    size_of,
    unaddressed,
    unclassified,
    undecided,
)
from fetchc.program.places import Indirect, InMemory, InRegister, Piece, Pieces
from fetchc.program.types import PointerType, SequenceType, StructType
from fetchc.target.model import EightbyteRules
from fetchc.units import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.program.places import Absent, Place
    from fetchc.program.protocol import Program
    from fetchc.target.model import Convention
    from fetchc.units import DwarfRegister, TypeId

__all__ = ["parameter_places", "result_place"]


def parameter_places(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
    receives: bool = False,
) -> tuple[Place, ...]:
    """See :func:`fetchc.abi.places.parameter_places`."""
    classifier = Classifier(program, _rules(convention))
    assignment = _Assignment(convention, classifier)
    stopped: Absent | None = None
    hidden = 0
    try:
        for result in results:
            if _result_classes(classifier, result) in ((MEMORY,), (BY_REFERENCE,)):
                hidden = 1  # the address of the memory for the result
    except UnclassifiedError as error:
        stopped = undecided(error, "the result")
    rules = _rules(convention)
    if rules.reference_first and parameters and _is_reference(program, parameters[0]):
        receives = True
    behind = receives and rules.receiver_first

    def place(position: int, parameter: TypeId) -> Place:
        if position == behind:
            assignment.integers += hidden
        return assignment.place(parameter)

    return one_by_one(parameters, place, stopped)


def result_place(program: Program, convention: Convention, result: TypeId) -> Place:
    """See :func:`fetchc.abi.places.result_place`."""
    rules = _rules(convention)
    classifier = Classifier(program, rules)
    try:
        classes = _result_classes(classifier, result)
        size = size_of(program, result)
    except UnclassifiedError as error:
        return unclassified(error)
    if classes in ((MEMORY,), (BY_REFERENCE,)):
        if not rules.result_address_returned:
            return unaddressed()
        return InMemory(convention.result_integer_registers[0], ByteOffset(0))
    if classes == (COMPLEX_X87,):
        half = ByteSize(size // 2)
        first, second = rules.x87_registers
        return Pieces(
            (
                Piece(ByteOffset(0), half, InRegister(first)),
                Piece(ByteOffset(half), half, InRegister(second)),
            )
        )
    if X87 in classes:
        return InRegister(rules.x87_registers[0])
    return _in_registers(
        classes, size, convention.result_integer_registers, convention.result_float_registers
    )


def _result_classes(classifier: Classifier, result: TypeId) -> tuple[str, ...]:
    classes = classifier.classes(result)
    if classifier.rules.plain_structures and len(classes) > 1:
        return (MEMORY,)
    if classes == (WIDE_COMPLEX,):
        raise UnclassifiedError("the debug information does not say which complex type it is")
    return classes


def _is_reference(program: Program, parameter: TypeId) -> bool:
    # To an object of .NET: pointers of other kinds lead to no class.
    made = program.type(parameter)
    if not isinstance(made, PointerType) or made.reference:
        return False
    target = program.type(made.target)
    return isinstance(target, SequenceType) or (
        isinstance(target, StructType) and target.kind == "class"
    )


class _Assignment:
    """Registers and stack handed out so far to the arguments of one call."""

    __slots__ = ("classifier", "convention", "counted", "floats", "integers", "stack")

    def __init__(self, convention: Convention, classifier: Classifier) -> None:
        self.convention = convention
        self.classifier = classifier
        self.integers = 0
        self.floats = 0
        self.stack = 0
        self.counted = 0  # registers that are filled, and that the compiler still counts with

    def place(self, parameter: TypeId) -> Place:
        """The next argument's place: wholly in registers or wholly on the stack."""
        classes = self.classifier.classes(parameter)
        size = size_of(self.classifier.program, parameter)
        if classes == (BY_REFERENCE,):
            return self._by_reference()
        if not any(classes):
            return Pieces(())  # nothing is passed: an empty structure
        integers = self.convention.integer_registers[self.integers :]
        floats = self.convention.float_registers[self.floats :]
        wanted_integers = classes.count(INTEGER)
        wanted_floats = classes.count(SSE)
        if (
            {*classes} <= {"", INTEGER, SSE, SSEUP}
            and wanted_integers <= len(integers)
            and wanted_floats <= len(floats)
        ):
            self.integers += wanted_integers
            self.floats += wanted_floats
            return _in_registers(classes, size, integers, floats)
        if 0 < wanted_integers <= self.counted and wanted_floats <= len(floats):
            self.counted -= wanted_integers
            self.floats += wanted_floats
            slots = [self._push(8, 8) for _ in range(wanted_integers)]
            return _in_registers(classes, size, (), floats, slots)
        split = _rules(self.convention).wide_splits and self.classifier.is_wide_integer(parameter)
        if split and len(integers) == 1:
            # clang asks for two registers, finds one, and leaves it for what follows. LLVM's back
            # end fills it, so the words of what follows go to the stack, each by itself.
            # Source: X86_64ABIInfo::computeInfo, clang/lib/CodeGen/TargetInfo.cpp (LLVM 14).
            self.integers += 1
            self.counted = 1
            low = Piece(ByteOffset(0), ByteSize(8), InRegister(integers[0]))
            return Pieces((low, Piece(ByteOffset(8), ByteSize(8), self._push(8, 8))))
        alignment = 8 if split else _rules(self.convention).stack_alignment
        return self._push(size, alignment or max(8, self.classifier.alignments.own(parameter)))

    def _by_reference(self) -> Place:
        if self.integers < len(self.convention.integer_registers):
            register = self.convention.integer_registers[self.integers]
            self.integers += 1
            return InMemory(register, ByteOffset(0))
        self.counted = 0
        return Indirect(self._push(8, 8), ByteOffset(0))

    def _push(self, size: int, alignment: int) -> InMemory:
        start = round_up(self.stack, alignment)
        self.stack = start + round_up(size, 8)
        offset = ByteOffset(self.convention.stack_offset + start)
        return InMemory(self.convention.stack_pointer, offset)


def _in_registers(
    classes: tuple[str, ...],
    size: int,
    integers: Sequence[DwarfRegister],
    floats: Sequence[DwarfRegister],
    slots: Sequence[InMemory] = (),
) -> Place:
    """One piece a register; SSEUP widens the vector register before it.

    ``slots`` are words on the stack, which are taken when there are no more ``integers``.
    """
    words: list[InRegister | InMemory] = [*map(InRegister, integers), *slots]
    next_integer, next_float = iter(words), iter(floats)
    pieces: list[Piece] = []
    for index, name in enumerate(classes):
        start = 8 * index
        part = min(8, size - start)
        if name == INTEGER:
            place: Place = next(next_integer)
        elif name == SSE:
            place = InRegister(next(next_float))
        elif name == SSEUP:
            before = pieces.pop()
            pieces.append(Piece(before.offset, ByteSize(before.size + part), before.place))
            continue
        else:
            continue  # padding only: it goes nowhere
        pieces.append(Piece(ByteOffset(start), ByteSize(part), place))
    if len(pieces) == 1 and pieces[0].offset == 0 and pieces[0].size == size:
        return pieces[0].place
    return Pieces(tuple(pieces))


def _rules(convention: Convention) -> EightbyteRules:
    assert isinstance(convention.rules, EightbyteRules)
    return convention.rules
