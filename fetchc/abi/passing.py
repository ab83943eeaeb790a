"""How a C value is passed by a convention of words: by a pointer, as numbers, or as its bytes."""

from __future__ import annotations

from fetchc.abi.layout import UnclassifiedError, bare, goes_by_reference
from fetchc.abi.shapes import Leaf, Shapes
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    DeclaredType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    NamedType,
    QualifiedType,
    SequenceType,
    SliceType,
    StringType,
    StructType,
    UnknownType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.target.model import WordRules
    from fetchc.units import TypeId

    How = str | tuple[Leaf, ...]

__all__ = ["REFERENCE", "WORDS", "Passing"]

REFERENCE = "reference"
WORDS = "words"


class Passing:
    """Answers for the types of one program, by the rules of one convention."""

    __slots__ = ("_program", "_rules", "_shapes", "_word")

    def __init__(self, program: Program, word_bytes: int, rules: WordRules) -> None:
        self._program = program
        self._word = word_bytes
        self._rules = rules
        self._shapes = Shapes(program)

    def how(self, type_id: TypeId) -> tuple[How, int, Callable[[], int]]:
        """How a value is passed, its size, and what gives its alignment in bytes.

        REFERENCE, WORDS, or the numbers that go to floating-point registers where these
        suffice. The alignment is not always known, and not always asked for. Both raise
        UnclassifiedError or DebugInfoError.
        """
        type_id, found = bare(self._program, type_id)
        size = self._shapes.alignments.size(type_id)
        how = self._kind(type_id, found, size)
        return how, size, lambda: self._alignment(type_id, found, size)

    def _kind(self, type_id: TypeId, found: Type, size: int) -> How:
        if isinstance(found, StructType):
            return self._structure(type_id, found, size)
        return self._scalar(found, size)

    def halves(self, type_id: TypeId) -> tuple[Leaf, Leaf] | None:
        """The two numbers of a complex one, where these are passed like two parameters."""
        if self._rules.complex != "parameters":
            return None
        _, found = bare(self._program, type_id)
        if not isinstance(found, ComplexType) or found.size // 2 not in self._rules.float_sizes:
            return None
        half = found.size // 2
        return Leaf(0, half, True), Leaf(half, half, True)

    def is_returned_in_memory(self, type_id: TypeId) -> bool:
        """Whether a caller passes the address of memory for a result of the type."""
        type_id, found = bare(self._program, type_id)
        size = self._shapes.alignments.size(type_id)
        how = self._kind(type_id, found, size)
        if isinstance(found, StructType) and size and self._rules.result_bytes == 0:
            return True
        if how != WORDS or size == 0:
            return how == REFERENCE
        if isinstance(found, ComplexType):
            return size > 2 * self._word
        return isinstance(found, StructType) and size > self._rules.result_bytes

    def _scalar(self, found: Type, size: int) -> How:
        rules = self._rules
        match found:
            case FloatType(name=name):
                if size in rules.float_sizes:
                    return (Leaf(0, size, True),)
                return self._rare(rules.quad, name, size)
            case ComplexType(name=name):
                half = size // 2
                if rules.complex in ("float", "parameters") and half in rules.float_sizes:
                    return (Leaf(0, half, True), Leaf(half, half, True))
                if rules.value_bytes is not None and size > rules.value_bytes:
                    return REFERENCE
                as_whole = rules.complex in ("words", "reference")
                return self._rare(rules.complex if as_whole else "", name, size)
            case IntType(name=name) if size > self._word:
                return self._rare(rules.wide if size == 2 * self._word else "", name, size)
            case ArrayType(vector=True, name=name):
                if size in rules.vector_sizes:
                    return (Leaf(0, size, True),)
                raise UnclassifiedError(
                    f"how a vector of {size} bytes is passed depends on compiler options"
                )
            case UnknownType(reason=reason):
                raise UnclassifiedError(f"its type cannot be read: {reason}")
            case VoidType() | FunctionType() | ArrayType():
                raise UnclassifiedError("its type is no object's")
            case StringType() | SliceType() | InterfaceType() | SequenceType():
                raise UnclassifiedError(f"`{found.name}` is no type of C")
            case StructType() | NamedType() | QualifiedType() | DeclaredType():
                raise AssertionError(f"not a scalar: {found!r}")
            case _:
                return WORDS

    def _rare(self, told: str, name: str, size: int) -> How:
        match told:
            case "float":
                return (Leaf(0, size, True),)
            case "words" | "reference":
                return told
            case _:
                raise UnclassifiedError(f"how `{name}` of {size} bytes is passed is not known")

    def _structure(self, type_id: TypeId, found: StructType, size: int) -> How:
        rules = self._rules
        if goes_by_reference(self._program, type_id, found, rules.triviality_stated):
            return REFERENCE
        name = found.name or "(anonymous)"
        if not found.members and size:
            # An empty class of C++, or a transparent union, whose members gcc leaves out.
            raise UnclassifiedError(f"how `{name}` without members is passed is not known")
        leaves = self._float_leaves(type_id, found, size)
        if leaves:
            return leaves
        if size and rules.value_sizes and size not in rules.value_sizes:
            return REFERENCE
        if rules.value_bytes is not None and size > rules.value_bytes:
            return REFERENCE
        return WORDS

    def _alignment(self, type_id: TypeId, found: Type, size: int) -> int:
        if not isinstance(found, StructType):
            # Where each word has its position, numbers wider than one are not aligned.
            return 1 if self._rules.positions else self._shapes.alignments.own(type_id)
        # Registers in pairs go by the members' alignment, the stack by the structure's own.
        alignments, most = self._shapes.alignments, self._rules.stack_alignment
        if self._rules.pairs:
            alignment = alignments.of_members(found, 2 * self._word)
            # One of a member of its own is not read: it may be what raised the structure's.
            unsaid = (found.alignment or 0) >= 2 * self._word
        else:
            alignment = alignments.own(type_id)
            unsaid = False
        if not unsaid and found.alignment is None:
            unsaid = most > self._word and bool(alignments.unexplained(type_id, found))
        if unsaid and alignment < most and size % most == 0:
            raise UnclassifiedError(f"an alignment of `{found.name}` may be left unsaid")
        return alignment

    def _float_leaves(
        self, type_id: TypeId, found: StructType, size: int
    ) -> tuple[Leaf, ...] | None:
        match self._rules.float_structures:
            case "homogeneous":
                return self._homogeneous(type_id, size)
            case "flat":
                return self._flat(type_id, size)
            case "single":
                return self._single(found, size)
            case _:
                return None

    def _homogeneous(self, type_id: TypeId, size: int) -> tuple[Leaf, ...] | None:
        known = self._shapes.equal(type_id)
        if known is None:
            return None
        each, count = known
        sizes = (*self._rules.float_sizes, *self._rules.vector_sizes)
        if not 0 < count <= self._rules.float_members or each * count != size:
            return None
        if each not in sizes:
            raise UnclassifiedError(f"how a number of {each} bytes is passed is not known")
        return tuple([Leaf(each * index, each, True) for index in range(count)])

    def _flat(self, type_id: TypeId, size: int) -> tuple[Leaf, ...] | None:
        leaves = self._shapes.flat(type_id) if size <= 2 * self._word else None
        if leaves is None or not 1 <= len(leaves) <= 2:
            return None
        if not any(leaf.floating for leaf in leaves):
            return None
        sizes = self._rules.float_sizes
        if any(
            leaf.size not in sizes if leaf.floating else leaf.size > self._word for leaf in leaves
        ):
            return None
        if self._shapes.has_gap(type_id):
            raise UnclassifiedError("an unnamed bit field may be in it, which is not said")
        return leaves

    def _single(self, found: StructType, size: int) -> tuple[Leaf, ...] | None:
        made: Type = found
        while isinstance(made, StructType):
            if len(made.members) != 1 or made.kind == "union" or made.members[0].bits:
                return None
            made = bare(self._program, made.members[0].type)[1]
        if isinstance(made, FloatType) and made.size == size and size in self._rules.float_sizes:
            return (Leaf(0, size, True),)
        return None
