"""The typed tree: what an expression means, with no name left to look up.

Six kinds of nodes serve every language: the object of a variable, a constant, a subobject,
the object that a pointer points to, a pointer moved by a constant, and the address of an
object. The checker expresses slices, strings and promoted fields in them. A range of
elements and the result of an operator are nodes for readers only. Every node has the type of its
value and the span of the expression that it comes from.
"""

from __future__ import annotations

from fetchc.program.entities import Place, RuntimeType
from fetchc.program.types import BitField, Variant
from fetchc.quantities import ByteOffset, TypeId
from fetchc.record import Record
from fetchc.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.arithmetic import Number

__all__ = [
    "Address",
    "AssumedClass",
    "AssumedCount",
    "AssumedDynamicType",
    "AssumedVariant",
    "Assumption",
    "Computed",
    "Conditional",
    "Constant",
    "Convert",
    "Dispatched",
    "FloatConstant",
    "Indexed",
    "Located",
    "Operation",
    "Pointee",
    "Ranged",
    "Shift",
    "Special",
    "Subobject",
    "Term",
    "Typed",
]


class Located(Record):
    """The object of a variable: ``place`` is its location at the probe point."""

    place: Place
    name: str
    type: TypeId
    span: Span


class Special(Record):
    """What the kernel has a name for: ``%ax`` (kind register), ``$stack``, ``$stackN``
    (kind entry), ``$comm``, ``$retval`` (kind result), an event's text field (kind text).

    The kind cursor is the address in the cursor of that number: see :mod:`fetchc.check.walks`.
    """

    kind: str
    text: str
    type: TypeId
    span: Span


class Constant(Record):
    """A number that is known at compile time."""

    value: int
    type: TypeId
    span: Span


class FloatConstant(Record):
    """A floating-point number in the text: an operand only, since no fetch gives it."""

    value: float
    type: TypeId
    span: Span


class Subobject(Record):
    """A member or an element: ``offset`` bytes into ``base``; ``bits`` where it is a bit field."""

    base: Typed
    offset: ByteOffset
    bits: BitField | None
    type: TypeId
    span: Span


class Pointee(Record):
    """The object that the pointer ``base`` points to."""

    base: Typed
    type: TypeId
    span: Span


class Shift(Record):
    """The pointer ``base`` moved by ``offset`` bytes."""

    base: Typed
    offset: ByteOffset
    type: TypeId
    span: Span


class Indexed(Record):
    """The pointer ``base`` moved by ``index`` elements of ``each`` bytes; ``index`` is a number.

    There are ``count`` elements, and another index leads nowhere. None: no type says how many.
    """

    base: Typed
    index: Typed
    each: int
    count: Typed | None
    type: TypeId
    span: Span


class Address(Record):
    """The address of the object ``base``."""

    base: Typed
    type: TypeId
    span: Span


class Convert(Record):
    """The value of ``base`` read as ``type``: its low bytes where that is smaller."""

    base: Typed
    type: TypeId
    span: Span


class AssumedDynamicType(Record):
    """What a type assertion of Go assumes; a reader of events checks it.

    ``word`` is the interface's dynamic type, ``start`` the address that the runtime counts its
    types from: the word has to be ``wanted.offset`` bytes after it. ``empty``: the interface
    has no methods, and the word is its first one.
    """

    word: Typed
    start: Typed
    wanted: RuntimeType
    empty: bool
    span: Span


class AssumedVariant(Record):
    """What a field of a variant assumes: that ``tag`` selects that variant.

    ``variants`` are all variants of the enum, ``wanted`` is the name of one. ``tag_expression`` is
    what a user appends to the enum to fetch the tag.
    """

    tag: Typed
    variants: tuple[Variant, ...]
    wanted: str
    holder: TypeId
    tag_expression: str
    span: Span


class AssumedClass(Record):
    """What a cast of .NET assumes: the object that ``reference`` refers to has type ``wanted``."""

    reference: Typed
    wanted: TypeId
    span: Span


class AssumedCount(Record):
    """What an index assumes: that ``holder`` has at least ``least`` elements.

    ``most``: capacity for that many elements is enough.
    """

    holder: Typed
    least: int
    most: bool
    span: Span


class Ranged(Record):
    """The elements from the index ``low`` up to, not including, ``high``.

    At least one of the two is known only at run time. ``first`` is the element at the index
    ``start``; no element of the range comes before it. ``bound`` is the number of elements that
    exist, None where no type says. Type: a ``RangeType``.
    """

    first: Typed
    start: int
    low: Typed | int
    high: Typed | int
    bound: Typed | int | None
    type: TypeId
    span: Span


class Term(Record):
    """A term of a sum that a reader computes: ``(number - subtrahend) / each * times``.

    With ``times`` 0 it adds nothing, and the difference has to be ``each``: the term checks what
    the checker assumes of the object. ``names`` are those of the two numbers, of a difference that
    is all of the sum.
    """

    number: Typed
    subtrahend: Typed | None
    each: int
    times: int
    names: tuple[str, str] = ("", "less")


class Computed(Record):
    """A number that a reader computes: the sum of the terms and a constant.

    With ``is_zero`` it is the Boolean value of ``sum == 0``.
    """

    terms: tuple[Term, ...]
    constant: int
    is_zero: bool
    type: TypeId
    span: Span


class Conditional(Record):
    """One of two objects: ``if_zero`` where the number is 0, else ``if_nonzero``.

    ``adjacent``: objects that one pointer points to are elements of one array, and a reader can
    fetch them together. ``assumptions``: those of each of the two.
    """

    number: Computed
    if_zero: Typed
    if_nonzero: Typed
    type: TypeId
    span: Span
    adjacent: bool = False
    assumptions: tuple[tuple[Assumption, ...], tuple[Assumption, ...]] = ((), ())


Assumption = AssumedDynamicType | AssumedVariant | AssumedClass | AssumedCount


class Dispatched(Record):
    """One of several objects: that of the first case whose assumption holds."""

    cases: tuple[tuple[AssumedDynamicType, Typed], ...]
    type: TypeId
    span: Span


class Operation(Record):
    """A number that a reader computes: what an operator gives for its operands.

    ``operator`` is one of :func:`fetchc.ir.arithmetic.evaluate`, or one that does not evaluate all
    operands: ``&&``, ``||``, ``?:`` (condition, value if true, value if false) or ``[]`` (an index,
    all elements of an array). The operands are taken as ``number`` first, a count of bits, a
    condition and an index as they are. ``rules`` is the key of the language's rules.
    ``assumptions``: those of each operand, which have to hold only where it is evaluated.
    """

    operator: str
    operands: tuple[Typed, ...]
    number: Number
    rules: str
    type: TypeId
    span: Span
    assumptions: tuple[tuple[Assumption, ...], ...] = ()


Typed = (
    Located
    | Special
    | Constant
    | FloatConstant
    | Subobject
    | Pointee
    | Shift
    | Indexed
    | Address
    | Convert
    | Ranged
    | Computed
    | Conditional
    | Dispatched
    | Operation
)
