"""Elements of containers that no offset leads to: lists, trees, tables.

What a container of a language's library consists of is known to that language's rules
(``container`` of :class:`~fetchc.check.type_rules.TypeRules`): modules that import this one.

Such an expression is one element, whose address is in a cursor, and its walk
(:attr:`fetchc.check.checker.Checker.walk`) says which elements there are. What is selected of the
expression is selected of each of them: ``list(head, next).name`` are all names.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.arithmetic_conversions import operand_of
from fetchc.check.array_dimensions import grid, window_room
from fetchc.check.builtins import container_of, offset_of
from fetchc.check.conversions import decayed, type_named
from fetchc.check.typed_tree import (
    Address,
    Constant,
    Located,
    Operation,
    Pointee,
    Ranged,
    Special,
    Subobject,
)
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.ir.arithmetic import Number
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
    EnumType,
    IntType,
    PointerType,
    SequenceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax import tree
from fetchc.syntax.expression_parser import as_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = [
    "MOST",
    "SLOTS",
    "BTree",
    "Blocks",
    "BucketMap",
    "HashTable",
    "Linked",
    "Store",
    "Strided",
    "SwissMap",
    "TextParts",
    "Tree",
    "Walked",
    "Windowed",
    "at_path",
    "begin",
    "cursor",
    "entries",
    "leads_to_container",
    "listed",
    "looked_up",
    "offset",
    "pointer_target",
    "side_by_side",
    "text_parts",
    "unknown_layout",
]

_NUMBERS = (tree.Integer, tree.FloatNumber, tree.Negate, tree.Binary)
_WORD = 8
_SIGNED = Number(64, True)
MOST = 32
"""Elements that are fetched where nobody says how many."""


class Linked(Record):
    """Elements each of which leads to the next one: ``next`` is that pointer, of the cursor.

    They end at NULL, and where the next one is ``stop``, an address (None: the first element).
    ``count`` is their number, where the container has it; ``version`` is what it counts its changes
    in.
    """

    first: Typed
    next: Typed
    stop: Typed | None
    count: Typed | None
    version: Typed | None = None


class Tree(Record):
    """The nodes of a binary tree in order, from where ``first`` points on.

    Where ``head`` points is after the last one, and the parent of the root. ``left``, ``right``
    and ``parent`` are pointers of a node, by the cursor. An element is in a node.
    """

    first: Typed
    head: Typed
    left: Typed
    right: Typed
    parent: Typed
    count: Typed


class Strided(Record):
    """``used`` elements of ``each`` bytes side by side, from where ``first`` points on.

    Free ones are those of which the number ``free[0]``, with ``free[1]`` added, has its highest bit
    set; ``count`` are the others. ``version`` is what the container counts its changes in.
    """

    first: Typed
    used: Typed
    each: int
    count: Typed
    free: tuple[Typed, int] | None = None
    version: Typed | None = None


class Windowed(Record):
    """``count`` elements of ``each`` bytes of an array, from the index ``start`` on.

    ``first`` points to the array's first element, which ``around`` its end follows the last one:
    that is how many the array has. ``backwards``: they are before ``start``, and go down.
    See :class:`fetchc.program.types.Window`.
    """

    first: Typed
    start: Typed
    count: Typed
    each: int
    around: Typed | None
    backwards: bool


class Blocks(Record):
    """``count`` elements of ``each`` bytes in blocks of ``length``, from element ``start`` on.

    ``blocks`` points to the pointer to the first block. ``measured``: the length that the container
    itself shows; where it is another one, no element is found.
    """

    blocks: Typed
    start: Typed
    count: Typed
    each: int
    length: int
    measured: Typed | None


class HashTable(Record):
    """A table of Rust's hashbrown: ``control`` points to a byte for each of ``mask`` + 1 slots.

    An element of ``each`` bytes is at the first cursor; the last one ends where the bytes begin.
    """

    control: Typed
    mask: Typed
    count: Typed
    each: int


class BTree(Record):
    """A BTreeMap of Rust: ``root`` points to a node, ``height`` links above the leaves.

    A key is at the first cursor, its value at the second one. ``keys`` and ``values`` are the
    offset of the first of them in a node, and the bytes from one to the next.
    """

    root: Typed
    height: Typed
    count: Typed
    leaf: TypeId
    internal: TypeId
    keys: tuple[int, int]
    values: tuple[int, int]


SLOTS = 8
"""Entries of a group, or bucket, of a Go map."""


class Store(Record):
    """Keys or values of a group: the offset of the first, and the bytes from one to the next.

    ``apart``: a pointer to each is stored.
    """

    offset: int
    each: int
    apart: bool


class SwissMap(Record):
    """A map of Go from 1.24 on: ``map`` is the pointer to its header, of the type ``header``.

    A key is at the first cursor, its value at the second one. ``stores`` are those of a group.
    """

    map: Typed
    header: TypeId
    table: TypeId
    groups: TypeId
    group_bytes: int
    stores: tuple[Store, Store]


class BucketMap(Record):
    """A map of Go before 1.24, as :class:`SwissMap`; ``overflow`` is an offset in a bucket."""

    map: Typed
    header: TypeId
    bucket_bytes: int
    overflow: int
    stores: tuple[Store, Store]


class Walked(Record):
    """A walk; ``most`` of its elements are fetched. ``key`` is that of one, in a map.

    With ``wanted`` the walk is for the one element that has this key: a number or bytes, or what
    is one in the program. ``within``: the container is in the element that this walk looks for,
    whose cursors are those of ``way`` that say where the container is.
    """

    way: Linked | Tree | Strided | Windowed | Blocks | HashTable | BTree | SwissMap | BucketMap
    most: int
    span: Span
    key: Typed | None = None
    wanted: int | bytes | Typed | None = None
    within: Walked | None = None


class TextParts(Record):
    """A string: ``length`` units, ``lead`` bytes beyond where ``data`` points.

    A ``unit`` is a byte of UTF-8, or two of UTF-16. ``long`` is a number, and the parts that count
    where it is not 0: a long string of libc++ is not in the object.
    """

    data: Typed
    lead: int
    length: Typed
    unit: int
    long: tuple[Typed, TextParts] | None = None


def cursor(checker: Checker, target: TypeId, span: Span, number: int = 0) -> Special:
    """The cursor of that number, a pointer to the type ``target``."""
    return Special("cursor", str(number), checker.pointer_to(target), span)


def begin(checker: Checker, walk: Walked, base: Typed) -> None:
    """The expression is an element of ``walk``, of the container ``base``.

    Raises CompileError where it walks another one, unless that looks for the element that the
    container is in.
    """
    outer = checker.walk
    if outer not in (None, walk):
        assert outer is not None
        found = outer.wanted is not None and _is_of_element(base)
        if not found or any(_is_of_element(one) for one in checker.assumptions):
            raise reject(
                "FC0314",
                "an expression walks one container",
                walk.span,
                "the second one",
                notes=("a container in an element is walked where a key leads to the element",),
                help="write an argument for each; one in an element has a length: `len(m[7])`",
            )
        walk = walk.replaced(within=outer)
    checker.walk = walk


def _is_of_element(node: object) -> bool:
    # Whether a cursor is somewhere in it.
    match node:
        case Special(kind=kind):
            return kind == "cursor"
        case Located():
            return False
        case tuple():
            return any(map(_is_of_element, node))
        case Record():
            fields: tuple[str, ...] = type(node).__match_args__
            return any(_is_of_element(getattr(node, one)) for one in fields)
        case _:
            return False


# ------------------------------------------------------------------------------
# `list(c)`; lists of C: `list(head, next)`, and `list(head, T, member)` as the kernel's
# list_for_each_entry.


def listed(checker: Checker, node: tree.Call) -> Typed:
    """An element of ``list(c)``, ``list(head, next)`` or ``list(head, T, member)``.

    A number as the last operand is how many elements are fetched. Raises CompileError where the
    operands are no container.
    """
    *operands, last = node.arguments
    most = MOST
    if isinstance(last, _NUMBERS) and operands:
        most = last.value if isinstance(last, tree.Integer) else 0
        if most < 1:
            what = "the number of elements to show is a plain number above 0"
            help = f"write it, or leave it out: {MOST} then"
            raise reject("FC0303", what, last.span, "no such number", help=help)
    else:
        operands.append(last)
    base = checker.check(operands[0])
    wanted = node.type
    if wanted is None and len(operands) == 3:
        named = operands.pop(1)
        wanted = as_type(named)
        if wanted is None:
            raise reject("FC0204", "this is not a type", named.span, "the type of the elements")
    match operands[1:]:
        case []:
            element, walked = _whole(checker, base, node)
        case [path] if wanted is None:
            element, walked = _chained(checker, node, _first(checker, base), path)
        case [path] if wanted is not None:
            element, walked = _embedded(checker, node, _first(checker, base), wanted, path)
        case _:
            what = "`list` takes up to three operands, and a number"
            raise reject("FC0101", what, node.function_span, "too many")
    begin(checker, walked.replaced(most=most), base)
    return element


def _first(checker: Checker, base: Typed) -> Typed:
    head = _raw_pointer(checker, decayed(checker, base))
    if isinstance(checker.resolved(head.type), PointerType):
        return head
    return Address(head, checker.pointer_to(head.type), head.span)


def _raw_pointer(checker: Checker, node: Typed) -> Typed:
    # The pointer that a smart pointer holds; what is none, unchanged.
    lead = checker.rules_for(checker.resolved(node.type)).dereference
    inner = None if lead is None else lead(checker, node, node.span)
    return inner.base if isinstance(inner, Pointee) else node


def _whole(checker: Checker, base: Typed, node: tree.Call) -> tuple[Typed, Walked]:
    # A container of the program's library, or what has its elements side by side.
    found = _container(checker, base, node.span)
    if found is not None:
        return found
    if isinstance(base, Ranged):
        return _of_range(checker, base, node.span)
    return side_by_side(checker, base, node.span)


def _of_range(checker: Checker, base: Ranged, span: Span) -> tuple[Typed, Walked]:
    # An element of `a[2:n]`. Bounds that no range has are a number that no walk has: below 0.
    from fetchc.check.literals import truth_type

    if base.low != base.start:
        what, help = "the range begins at an index that varies", "write a number: `list(a[0:n])`"
        raise reject("FC0304", what, base.span, "not walked", help=help)
    word, rules = checker.word(signed=True), checker.site.language.arithmetic

    def number(node: Typed | int) -> Typed:
        if isinstance(node, int):
            return Constant(node, word, base.span)
        return Operation("convert", (node,), _SIGNED, rules, word, base.span)

    def computed(operator: str, *operands: Typed, type: TypeId = word) -> Typed:
        return Operation(operator, operands, _SIGNED, rules, type, base.span)

    high = number(base.high)
    count = computed("-", high, number(base.start)) if base.start else high
    if base.bound is not None:
        beyond = computed(">", high, number(base.bound), type=truth_type(checker))
        count = computed("?:", beyond, number(-1), count)
    first = base.first
    each = checker.size(first.type) or 0
    _side_by_side_or_refuse(checker, base, count, first)
    address = Address(first, checker.pointer_to(first.type), span)
    element = Pointee(cursor(checker, first.type, span), first.type, span)
    return element, Walked(Strided(address, count, each, count), MOST, span)


def side_by_side(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked]:
    """An element of a vector, slice or array, and its walk; raises CompileError of others."""
    from fetchc.check.builtins import length
    from fetchc.check.indexing import element_at

    try:
        count = length(checker, base, base.span)
    except CompileError as refusal:
        raise _not_counted(checker, base) if refusal.reason == "no length" else refusal from None
    first = element_at(checker, base, 0, span, base.span)
    each = checker.size(first.type) or 0
    _side_by_side_or_refuse(checker, base, count, first)
    address = Address(first, checker.pointer_to(first.type), span)
    element = Pointee(cursor(checker, first.type, span), first.type, span)
    return element, Walked(Strided(address, count, each, count), MOST, span)


def _not_counted(checker: Checker, base: Typed) -> CompileError:
    from fetchc.check.indexing import element_at

    help = "the pointer leads to a container: `list(*p)`"
    if not leads_to_container(checker, base):
        element_at(checker, base, 0, base.span, base.span)  # what has elements at all
        help = "of a list in C name the link, too: `list(head, next)`"
    what = f"the number of elements of a `{checker.spell(base.type)}` is not known"
    return reject("FC0304", what, base.span, "no end", help=help)


def _side_by_side_or_refuse(checker: Checker, base: Typed, count: Typed, first: Typed) -> None:
    counted = isinstance(count, Subobject) and checker.resolved(count.base.type)
    what, help = "are not side by side", None
    if isinstance(counted, SequenceType) and (counted.window or counted.dimensions):
        help = "fetch it without `list`: `fetchc trace` shows its first elements"
    elif isinstance(first, Subobject) and first.bits is not None:
        help = "fetch one of them: `e[2]`"
    elif not checker.size(first.type):
        what, help = "have no bytes", "fetch their number: `len(e)`"
    elif isinstance(first, Pointee | Subobject):
        return
    what = f"the elements of a `{checker.spell(base.type)}` {what}"
    raise reject("FC0304", what, base.span, "not supported", help=help)


def _chained(
    checker: Checker, node: tree.Call, head: Typed, path: tree.Expression
) -> tuple[Typed, Walked]:
    target = pointer_target(checker, head)
    if not isinstance(checker.resolved(target), StructType) or checker.size(target) is None:
        raise reject(
            "FC0305",
            f"`{checker.spell(head.type)}` is not a pointer to a structure",
            node.arguments[0].span,
            "the first element",
            help="write the pointer to the first element, then the member that leads to the next",
        )
    element = Pointee(cursor(checker, target, node.span), target, node.span)
    following = _raw_pointer(checker, _member(checker, element, path))
    leads_to = pointer_target(checker, following, path.span)
    same = checker.bare(leads_to) == checker.bare(target)
    if not same and not isinstance(checker.resolved(leads_to), VoidType):
        raise reject(
            "FC0305",
            f"`{checker.spell(following.type)}` does not lead to a `{checker.spell(target)}`",
            path.span,
            "not the next element",
            help="for links inside of elements: `list(head, T, member)`, T being their type",
        )
    return element, Walked(Linked(head, following, None, None), MOST, node.span)


def _embedded(
    checker: Checker,
    node: tree.Call,
    head: Typed,
    wanted: tree.TypeName,
    path: tree.Expression,
) -> tuple[Typed, Walked]:
    # The head and the links of a list_head are alike; an hlist's head has the first link alone.
    span = node.span
    holder = type_named(checker, wanted)
    link = _member(checker, Pointee(cursor(checker, holder, span), holder, span), path)
    following = members.named_member(
        checker, Pointee(cursor(checker, link.type, span), link.type, span), "next", path.span
    )
    of_head = Pointee(head, pointer_target(checker, head), head.span)
    stop: Typed | None = head
    try:
        first = members.named_member(checker, of_head, "next", head.span)
    except CompileError:
        first = members.named_member(checker, of_head, "first", head.span)
        stop = None
    start = cursor(checker, link.type, span)
    whole = container_of(checker, start, holder, _path(_names(path), path.span), span)
    element = Pointee(whole, holder, span)
    return element, Walked(Linked(first, following, stop, None), MOST, span)


# ------------------------------------------------------------------------------
# Containers that the debug information describes: `m[:]`, `m[:20]`.


def entries(checker: Checker, base: Typed, node: tree.Range) -> Typed | None:
    """An element of ``base[:high]``, or of ``base[:]``; of a map a value.

    None where ``base`` is no container that has to be walked. Raises CompileError where the range
    does not begin with the first element, or its bounds are no constants.
    """
    found = _container(checker, base, node.span)
    if found is None or _has_range(checker, base):
        return None
    value, walked = found
    begin(checker, walked.replaced(most=_most(checker, base, node)), base)
    return value


def looked_up(
    checker: Checker, base: Typed, key: int | bytes | Typed, span: Span, key_span: Span
) -> Typed:
    """The value of ``base[key]``, a map, or the key of a set that is ``key``.

    Raises CompileError of others, and of another key.
    """
    from fetchc.check.indexing import has_keys, referent

    found = _container(checker, base, span)
    if found is None or not has_keys(checker, referent(checker, base)):
        help = "a map or a set of Go, Rust or C++, or a `Dictionary` or `HashSet` of .NET"
        if found is not None:
            help = "`c[:]` shows its first elements"
        elif leads_to_container(checker, base):
            help = 'the pointer leads to a container: `(*p)["key"]`'
        spelled = checker.spell(base.type)
        what = f"`{spelled}` has no values by key"
        raise reject("FC0304", what, key_span, "a key", help=help)
    value, walked = found
    of_entry = walked.key or value
    text = text_parts(checker, of_entry)
    if isinstance(key, int | bytes):
        key = _constant_key(checker, of_entry, text, key, key_span)
    elif text is not None:
        key = _text_key(checker, of_entry, text, referent(checker, key), key_span)
    else:
        key = _number_key(checker, of_entry, referent(checker, key), key_span)
    if _is_of_element(key):
        what = "the key is in an element of a container that is walked"
        help = "fetch the key, and look it up, in two traces"
        raise reject("FC0314", what, key_span, "not known before", help=help)
    begin(checker, walked.replaced(most=1, key=of_entry, wanted=key), base)
    return value


def _no_such_key(checker: Checker, key: Typed, at: Span, help: str) -> CompileError:
    what = f"the keys are of the type `{checker.spell(key.type)}`"
    return reject("FC0304", what, at, "not such a key", help=help)


def _constant_key(
    checker: Checker, key: Typed, text: TextParts | None, wanted: int | bytes, at: Span
) -> int | bytes:
    # A number, or the bytes of a string.
    numbers = None if text is not None else _numbers(checker.resolved(key.type))
    if isinstance(wanted, bytes):
        help = "" if text is not None else "write a number: `m[7]`"
    else:
        help = "" if numbers is not None else 'write a string: `m["key"]`'
    if text is None and numbers is None:
        help = _SHOWN_WITH_KEYS
    elif isinstance(wanted, int) and numbers is not None and wanted not in numbers:
        help = f"write a number from {numbers[0]} to {numbers[-1]}"
    if help:
        raise _no_such_key(checker, key, at, help)
    if text is not None and text.unit > 1 and isinstance(wanted, bytes):
        try:
            return wanted.decode().encode("utf-16-le")
        except UnicodeDecodeError:
            help = "write it as UTF-8"
            what = "no text of UTF-16 has these bytes"
            raise reject("FC0304", what, at, "a key", help=help) from None
    return wanted


_SHOWN_WITH_KEYS = "`m[:]` shows the first entries, with their keys"


def _text_key(checker: Checker, key: Typed, text: TextParts, given: Typed, at: Span) -> Typed:
    # A string that a value of the program is.
    parts = text_parts(checker, given)
    if parts is None or parts.unit != text.unit:
        spelled = checker.spell(given.type)
        help = f'write a string with a length, not a `{spelled}`, or a constant: `m["key"]`'
        raise _no_such_key(checker, key, at, help)
    return given


def _number_key(checker: Checker, key: Typed, given: Typed, at: Span) -> Typed:
    # A number that is computed from values of the program.
    resolved = checker.resolved(key.type)
    numbers = _numbers(resolved)
    if numbers is None or (checker.size(key.type) or 0) > _WORD:
        raise _no_such_key(checker, key, at, _SHOWN_WITH_KEYS)
    given, number = operand_of(checker, given, "[]", at)
    if number.floating or isinstance(checker.resolved(given.type), PointerType):
        raise _no_such_key(checker, key, at, "write a whole number")
    least = -(1 << number.bits - 1) if number.signed else 0
    possible = range(least, least + (1 << number.bits))
    converts = checker.site.language.arithmetic == "c" and not isinstance(resolved, BoolType)
    if not converts and not (possible[0] in numbers and possible[-1] in numbers):
        help = f"convert the number to that type: `({checker.spell(key.type)})e`"
        raise _no_such_key(checker, key, at, help)
    return given


def _numbers(resolved: Type) -> range | None:
    # Those that a key of the type can be; None where no number is one.
    match resolved:
        case BoolType():
            return range(2)
        case IntType(size=size, signed=signed) | CharType(size=size, signed=signed):
            pass
        case EnumType(size=size, signed=signed):
            pass
        case _:
            return None
    least = -(1 << 8 * size - 1) if signed else 0
    return range(least, least + (1 << 8 * size))


def text_parts(checker: Checker, key: Typed) -> TextParts | None:
    """Where the characters of a string are; None of what is no string."""
    resolved = checker.resolved(key.type)
    if isinstance(resolved, StringType):
        data, length = [members.subobject(key, one, key.span) for one in resolved.members[:2]]
        return TextParts(data, resolved.lead, length, 1)
    find = checker.rules_for(resolved).text_parts
    return None if find is None else find(checker, key)


def _container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    # An element, or of a map a value, and its walk; None where nothing has to be walked.
    from fetchc.check.indexing import referent

    base = referent(checker, base)
    part = grid(checker, base)
    if part is not None and part[1].window is not None:
        return _window(checker, *part, span)
    find = checker.rules_for(checker.resolved(base.type)).container
    return None if find is None else find(checker, base, span)


def _window(
    checker: Checker, holder: Typed, resolved: SequenceType, span: Span
) -> tuple[Typed, Walked] | None:
    # An element of a part of an array; None where the array can be another object.
    from fetchc.check.indexing import first_element

    window = resolved.window
    assert window is not None
    if window.of_any:
        return None
    start, target, each = first_element(checker, holder, span)
    if isinstance(checker.resolved(start.type), ArrayType):
        start = Address(start, checker.pointer_to(target), span)
    around = window_room(checker, holder, resolved)
    index, count = (members.subobject(holder, one, span) for one in (window.start, resolved.length))
    way = Windowed(start, index, count, each, around, window.backwards)
    return Pointee(cursor(checker, target, span), target, span), Walked(way, MOST, span)


def leads_to_container(checker: Checker, base: Typed) -> bool:
    """Whether ``base`` is a pointer to what ``[:]`` or ``list`` walk."""
    resolved = checker.resolved(base.type)
    if not isinstance(resolved, PointerType):
        return False
    inner = Pointee(base, resolved.target, base.span)
    return _container(checker, inner, base.span) is not None


def _has_range(checker: Checker, base: Typed) -> bool:
    # Whether a range of it is one of an array: a list of .NET.
    resolved = checker.resolved(base.type)
    if isinstance(resolved, PointerType):
        resolved = checker.resolved(resolved.target)
    return isinstance(resolved, SequenceType) and resolved.window is None


def _most(checker: Checker, base: Typed, node: tree.Range) -> int:
    if node.low == 0 and node.high is None:
        return MOST
    if node.low == 0 and isinstance(node.high, int) and node.high > 0:
        return node.high
    if node.low == 0 and not isinstance(node.high, int):
        what = f"how many elements of a `{checker.spell(base.type)}` to show is a plain number"
        help = "`c[:20]` are the first 20, and how many there are"
        raise reject("FC0303", what, node.range_span, "this varies", help=help)
    raise reject(
        "FC0303",
        f"a range of a `{checker.spell(base.type)}` begins with its first element",
        node.range_span,
        "not from the first one on",
        help="`m[:]` are the first elements, `m[:20]` the first 20",
    )


def offset(checker: Checker, holder: TypeId, path: tuple[str | int, ...], span: Span) -> int:
    """The offset of what ``path`` leads to in an object of the type ``holder``, in bytes."""
    return offset_of(checker, holder, _path(path, span), span).value


def _path(names: Iterable[str | int], span: Span) -> tree.Path:
    steps = [
        tree.IndexStep(one, span) if isinstance(one, int) else tree.FieldStep(one, span)
        for one in names
    ]
    return tree.Path(tuple(steps), span)


def at_path(checker: Checker, node: Typed, path: tuple[str | int, ...], span: Span) -> Typed:
    """What the names of members and the indices of elements lead to from ``node``."""
    from fetchc.check.indexing import element_at

    for one in path:
        if isinstance(one, int):
            node = element_at(checker, node, one, span, span)
        else:
            node = members.named_member(checker, node, one, span)
    return node


def unknown_layout(checker: Checker, base: Typed, span: Span) -> CompileError:
    """FC0314, for ``raise unknown_layout(...)``: its members are other ones."""
    return reject(
        "FC0314",
        f"where the entries of a `{checker.spell(base.type)}` are is not known",
        span,
        "cannot be walked",
        help="their number can be fetched: `len(m)`, `m.size()`",
    )


def pointer_target(checker: Checker, pointer: Typed, span: Span | None = None) -> TypeId:
    """What ``pointer`` points to; raises CompileError FC0305 of what is no pointer."""
    resolved = checker.resolved(pointer.type)
    if not isinstance(resolved, PointerType):
        what = f"`{checker.spell(pointer.type)}` is not a pointer"
        raise reject("FC0305", what, span or pointer.span, "not a pointer")
    return resolved.target


def _member(checker: Checker, element: Typed, path: tree.Expression) -> Typed:
    return at_path(checker, element, _names(path), path.span)


def _names(path: tree.Expression) -> tuple[str | int, ...]:
    match path:
        case tree.Name(text=text, line=None):
            return (text,)
        case tree.Member(base=base, name=name, arrow=False):
            return (*_names(base), name)
        case tree.Index(base=base, index=int() as index, further=()):
            return (*_names(base), index)
        case _:
            what = "this is not the name of a member"
            raise reject("FC0302", what, path.span, "`next`, `link.next` or `links[0]`")
