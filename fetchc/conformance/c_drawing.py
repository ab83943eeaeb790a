"""Drawing C and C++ types: every kind of member, in every company that the languages allow.

The drawing takes a ``random.Random``: a seeded one for programs of many types, or one of
``hypothesis.strategies.randoms()`` for a few types that shrink.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from fetchc.record import Record

__all__ = [
    "CHARACTERS",
    "FLOATS",
    "INTEGERS",
    "WIDE",
    "Alias",
    "Array",
    "CType",
    "Code",
    "Enum",
    "Family",
    "Member",
    "Number",
    "Pointer",
    "Qualified",
    "Reference",
    "Signature",
    "Struct",
    "TypeDrawing",
    "Variable",
    "Void",
    "arithmetic",
    "body",
    "careful",
    "declare",
    "draw",
    "draw_signatures",
    "members_of",
    "resolved",
    "short",
]

# ------------------------------------------------------------------------------
# C and C++ types as data, drawn at random: what a program declares, fills and walks.
#
# Nothing here knows where a compiler puts a member. Only the compiler does.


class Number(Record):
    """An arithmetic type; ``kind`` is what ``decode`` calls it."""

    name: str
    kind: str
    size: int

    @property
    def wide(self) -> bool:
        """Wider than any fetch."""
        return self.size > 8 or self.kind == "complex"


class Enum(Record):
    """``enum tag``; ``fixed`` is the underlying type of a scoped one of C++."""

    tag: str
    values: tuple[int, ...]
    packed: bool
    fixed: str = ""


class Void(Record):
    """What a ``void *`` leads to."""


class Code(Record):
    """What a function pointer leads to."""


class Pointer(Record):
    """A pointer; a structure that it leads to may point back."""

    target: CType


class Reference(Record):
    """A C++ reference; only parameters are of that type."""

    target: CType


class Array(Record):
    """``count`` None is a flexible array."""

    element: CType
    count: int | None


class Qualified(Record):
    """``const``, ``volatile`` or both, ``_Atomic``."""

    qualifier: str
    target: CType


class Alias(Record):
    """A typedef."""

    name: str
    target: CType
    attribute: str = ""


class Member(Record):
    """An empty name is an anonymous member, or with a width a bit field that only takes room."""

    name: str
    type: CType
    width: int | None = None
    attribute: str = ""


class Struct:
    """A structure, class or union; a type that is written where it is used has an empty tag.

    Mutable: it may be used before it is complete, and loses members when a failure
        gets smaller.
    """

    __match_args__ = ("kind", "tag", "members", "attribute", "bases")

    def __init__(self, kind: str, tag: str) -> None:
        self.kind = kind
        self.tag = tag
        self.members: list[Member] = []
        self.attribute = ""
        self.bases: list[Struct] = []

    @property
    def flexible(self) -> Member | None:
        """The array at the end that has no bound."""
        last = self.members[-1] if self.members else None
        return last if last and isinstance(last.type, Array) and last.type.count is None else None


CType = Number | Enum | Void | Code | Pointer | Reference | Array | Qualified | Alias | Struct


def resolved(c_type: CType) -> CType:
    """The type without typedefs and qualifiers."""
    while isinstance(c_type, Alias | Qualified):
        c_type = c_type.target
    return c_type


def short(tag: str) -> str:
    """A tag without its namespace."""
    return tag.rpartition("::")[2]


def declare(c_type: CType, name: str) -> str:
    """A declaration of ``name``; a type's name where that is empty."""
    match c_type:
        case Number():
            return f"{c_type.name} {name}".strip()
        case Enum():
            return f"enum {c_type.tag} {name}".strip()
        case Alias():
            return f"{c_type.name} {name}".strip()
        case Void():
            return f"void {name}".strip()
        case Code():
            return f"int {name}(int, void *)"
        case Struct(tag=""):
            return f"{body(c_type)} {name}".strip()
        case Struct():
            return f"{c_type.kind} {c_type.tag} {name}".strip()
        case Array(element=element, count=count):
            return declare(element, f"{name}[{'' if count is None else count}]")
        case Pointer(target=target) | Reference(target=target):
            starred = f"{'*' if isinstance(c_type, Pointer) else '&'}{name}"
            return declare(target, f"({starred})" if isinstance(target, Array | Code) else starred)
        case Qualified(qualifier=qualifier, target=Pointer() as target):
            return declare(target, f"{qualifier} {name}".strip())
        case Qualified(qualifier=qualifier, target=target):
            return f"{qualifier} {declare(target, name)}"


def body(struct: Struct) -> str:
    """The definition of a structure, class or union."""
    lines = ["public:"] if struct.kind == "class" else []
    for member in struct.members:
        width = "" if member.width is None else f" : {member.width}"
        lines.append(f"{declare(member.type, member.name)}{width}{member.attribute};")
    bases = ", ".join(f"public {base.tag}" for base in struct.bases)
    # After the keyword: the one place that C and C++ both know.
    head = f"{struct.kind}{struct.attribute} {short(struct.tag)}{f' : {bases}' if bases else ''}"
    return f"{head} {{ {' '.join(lines)} }}"


def members_of(struct: Struct) -> Iterator[Member]:
    """The members that have names, those of bases and anonymous members among them."""
    for base in struct.bases:
        yield from members_of(base)
    for member in struct.members:
        inner = resolved(member.type)
        if member.name:
            yield member
        elif isinstance(inner, Struct):
            yield from members_of(inner)


def careful(c_type: CType, path: str = "") -> Iterator[tuple[str, CType]]:
    """Paths of what may not hold any bytes: pointers and truth values."""
    resolved_type = resolved(c_type)
    match resolved_type:
        case Pointer() | Number(kind="bool"):
            yield path, resolved_type
        case Array(element=element, count=count):
            for index in range(3 if count is None else count):
                yield from careful(element, f"{path}[{index}]")
        case Struct():
            for member in members_of(resolved_type):
                if member.width is None:
                    yield from careful(member.type, f"{path}.{member.name}")
        case _:
            pass


# ------------------------------------------------------------------------------
# What one drawing declares: structures that point at each other, globals, signatures.


class Variable(Record):
    """A parameter, or a global with what its declaration begins with (``static``)."""

    name: str
    type: CType
    storage: str = ""


class Signature(Record):
    """What a function takes and, in ``result``, gives; None: nothing."""

    parameters: tuple[CType, ...]
    result: CType | None


class Family:
    """Structures that point at each other, and what is declared for them, in order.

    ``plus``: of C++; ``space`` is the namespace then, or empty.
    """

    def __init__(self, number: int, plus: bool = False, space: str = "") -> None:
        self.number = number
        self.plus = plus
        self.space = space
        self.declared: list[Enum | Alias | Struct] = []
        self.roots: list[Struct] = []
        self.globals: list[Variable] = []
        self.signatures: list[Signature] = []

    def source(self) -> str:
        """The declarations."""
        lines = [f"namespace {self.space} {{"] if self.space else []
        lines += [f"{root.kind} {short(root.tag)};" for root in self.roots]
        for declaration in self.declared:
            match declaration:
                case Enum():
                    lines.append(_enumeration(declaration))
                case Alias(name=name, target=target, attribute=attribute):
                    lines.append(f"typedef {declare(target, short(name))}{attribute};")
                case Struct():
                    lines.append(f"{body(declaration)};")
        begun = " = {}" if self.plus else ""
        for each in self.globals:
            lines.append(f"{each.storage} {declare(each.type, short(each.name))}{begun};".strip())
        return "\n".join([*lines, "}"] if self.space else lines)


def _enumeration(enum: Enum) -> str:
    tag = short(enum.tag)
    listed = ", ".join(f"{tag}_{n} = {value}" for n, value in enumerate(enum.values))
    if enum.fixed:
        return f"enum class {tag} : {enum.fixed} {{ {listed} }};"
    return f"enum {tag} {{ {listed} }}{' __attribute__((packed))' if enum.packed else ''};"


# ------------------------------------------------------------------------------
# Drawing one C or C++ type, or one bit field: numbers, enumerations, pointers, arrays, aliases.

INTEGERS = {
    **{"short": 2, "unsigned short": 2, "int": 4, "unsigned": 4, "long": 8, "unsigned long": 8},
    **{"long long": 8, "unsigned long long": 8},
}
CHARACTERS = ("char", "signed char", "unsigned char")
FLOATS = {"float": 4, "double": 8}
WIDE = {"long double": "float", "__int128": "integer", "double _Complex": "complex"}
_ENUMS = [(0, 1, 7), (-3, 4), (0, 0x90000000), (-1, 70000), (0, 300), (1, 1 << 40), (-(1 << 35), 2)]
_FIXED = ["unsigned char", "short", "unsigned", "long"]


def arithmetic(name: str) -> Number:
    """The number of that name. Only ``char`` alone is a character; the other two are numbers."""
    if name in FLOATS:
        return Number(name, "float", FLOATS[name])
    return Number(name, "char" if name == "char" else "integer", INTEGERS.get(name, 1))


class TypeDrawing:
    """Types of one family; what has to be declared for them goes into it. ``plus``: of C++."""

    def __init__(self, random: Random, number: int, plus: bool) -> None:
        self._random = random
        self._plus = plus
        space = f"N{number}" if plus and self._chance(0.5) else ""
        self._family = Family(number, plus, space)
        self._prefix = f"{space}::" if space else ""
        self._names = 0

    def _chance(self, of: float) -> bool:
        return self._random.random() < of

    def _name(self) -> str:
        self._names += 1
        return f"m{self._names}"

    def _complete(self) -> list[Struct]:
        return [it for it in self._family.declared if isinstance(it, Struct)]

    def _bit_field(self, kind: str) -> Member:
        which = self._random.random()
        if which < 0.12:
            return Member(self._name(), Number("_Bool", "bool", 1), 1)
        if which < 0.2:
            base: CType = self._enum()
            bits = 3 if isinstance(base, Enum) and (base.packed or base.fixed) else 17
            return Member(self._name(), base, self._random.randint(1, bits))
        name = self._random.choice([*INTEGERS, *CHARACTERS])
        size = INTEGERS.get(name, 1)
        if which < 0.32 and kind != "union":
            return Member("", Number(name, "integer", size), self._random.choice([0, 1, 3, 5]))
        c_type: CType = arithmetic(name)
        if self._chance(0.2):
            c_type = self._named(c_type)
        if self._chance(0.1) and not self._plus:
            c_type = Qualified("volatile", c_type)
        return Member(self._name(), c_type, self._random.randint(1, 8 * size))

    def _type(self, depth: int, wide: bool) -> CType:
        which = self._random.random()
        if which < 0.3:
            return self._plain()
        if which < 0.52:
            return self._pointer()
        if which < 0.74:
            element = self._type(depth + 1, wide) if depth < 2 else self._plain()
            if isinstance(resolved(element), Array) and self._chance(0.3):
                element = self._named(element)
            return Array(element, self._random.choice([1, 2, 3, 4, 5]))
        if which < 0.78:
            return Array(arithmetic("char"), self._random.choice([1, 4, 9, 16]))
        if which < 0.88 and (complete := [it for it in self._complete() if not it.flexible]):
            return self._dressed(self._random.choice(complete))
        if which < 0.9 and wide:
            name = self._random.choice(list(WIDE))
            return Number(name, WIDE[name], 16)
        return self._dressed(self._plain())

    def _plain(self) -> CType:
        which = self._random.random()
        if which < 0.5:
            name = self._random.choice(list(INTEGERS))
            return arithmetic(name)
        if which < 0.65:
            return arithmetic(self._random.choice(CHARACTERS))
        if which < 0.8:
            return self._float()
        return self._enum()

    def _float(self) -> Number:
        return arithmetic(self._random.choice(list(FLOATS)))

    def _enum(self) -> Enum:
        values = self._random.choice(_ENUMS)
        self._names += 1
        tag = f"{self._prefix}E{self._family.number}_{self._names}"
        fixed = self._random.choice(_FIXED) if self._plus and self._chance(0.5) else ""
        if fixed:
            values = (0, 1, 100)
        enum = Enum(tag, values, not fixed and self._chance(0.4), fixed)
        self._family.declared.append(enum)
        return enum

    def _pointer(self) -> CType:
        which = self._random.random()
        target: CType
        if which < 0.4:
            target = self._random.choice(self._family.roots)
        elif which < 0.55:
            target = arithmetic(self._random.choice(CHARACTERS))
        elif which < 0.7:
            target = self._plain()
        elif which < 0.76:
            target = Array(self._plain(), self._random.choice([1, 3]))
        elif which < 0.84:
            target = self._pointer()
        elif which < 0.9:
            target = Number("_Bool", "bool", 1)
        else:
            target = Void() if which < 0.95 else Code()
        if not isinstance(target, Array | Code | Void) and self._chance(0.25):
            qualifiers = ["const", "volatile", "const volatile"]
            if isinstance(target, Number) and not self._plus:
                qualifiers.append("_Atomic")
            target = _qualified(self._random.choice(qualifiers), target)
        return self._dressed(Pointer(target))

    def _dressed(self, c_type: CType) -> CType:
        # Behind typedefs and qualifiers, in chains.
        while self._chance(0.25):
            if isinstance(c_type, Alias | Number | Enum | Pointer) and self._chance(0.4):
                # In C++ nothing that holds a volatile object can be copied.
                qualifiers = ["const"] if self._plus else ["const", "volatile"]
                c_type = _qualified(self._random.choice(qualifiers), c_type)
            else:
                c_type = self._named(c_type)
        return c_type

    def _named(self, c_type: CType) -> Alias:
        self._names += 1
        name = f"{self._prefix}A{self._family.number}_{self._names}"
        under = isinstance(c_type, Number) and c_type.size > 2 and self._chance(0.4)
        # Less than its own: reads move.
        alias = Alias(name, c_type, " __attribute__((aligned(2)))" if under else "")
        self._family.declared.append(alias)
        return alias


def _qualified(qualifier: str, c_type: CType) -> CType:
    # One layer for all words, each of them once.
    if not isinstance(c_type, Qualified):
        return Qualified(qualifier, c_type)
    words = dict.fromkeys([*qualifier.split(), *c_type.qualifier.split()])
    return Qualified(" ".join(words), c_type.target)


def draw(random: Random, number: int, roots: int | None = None, plus: bool = False) -> Family:
    """A family of up to six structures; ``plus``: of C++."""
    return _Drawing(random, number, plus).family(roots or random.randint(2, 6))


def draw_signatures(random: Random, number: int, functions: int, plus: bool = False) -> Family:
    """A family with ``functions`` signatures of structures of 1 to 40 bytes and of numbers."""
    return _Drawing(random, number, plus).signatures(functions)


class _Drawing(TypeDrawing):
    def family(self, roots: int) -> Family:
        family = self._family
        kinds = ["struct", "struct", "class"] if self._plus else ["struct"]
        for index in range(roots):
            kind = "union" if self._chance(0.12) else self._random.choice(kinds)
            family.roots.append(Struct(kind, f"{self._prefix}T{family.number}_{index}"))
        for root in family.roots:
            small = root.kind != "union" and self._chance(0.3)
            if self._plus and root.kind != "union":
                self._inherit(root)
            (self._small if small else self._fill)(root, 0)
            if root.kind != "union" and self._chance(0.15):
                element = self._plain() if self._chance(0.7) else self._type(1, False)
                root.members.append(Member(self._name(), Array(element, None)))
            family.declared.append(root)
        for _ in family.roots:
            taken = [self._parameter() for _ in range(self._random.randint(0, 7))]
            given = self._parameter(result=True) if self._chance(0.4) else None
            family.signatures.append(Signature(tuple(taken), given))
        for index in range(self._random.randint(1, 3)):
            name = f"{self._prefix}g{family.number}_{index}"
            storage = self._random.choice(
                ["", "static"] if self._plus else ["", "static", "static volatile"]
            )
            family.globals.append(Variable(name, self._object(), storage))
        return family

    def signatures(self, functions: int) -> Family:
        family = self._family
        for _ in range(functions):
            most = self._random.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 14])
            floating = 0.8 if self._chance(0.2) else 0.15  # more than there are registers for
            taken = [self._argument(floating) for _ in range(most)]
            given = self._argument(0.15) if self._chance(0.8) else None
            family.signatures.append(Signature(tuple(taken), given))
        return family

    def _parameter(self, result: bool = False) -> CType:
        if self._chance(0.5):
            return self._object()
        if self._plus and not result and self._chance(0.3):
            return Reference(self._random.choice([*self._complete(), self._plain()]))
        return self._random.choice([self._plain(), self._pointer(), self._float()])

    def _object(self) -> CType:
        whole = [it for it in self._complete() if not it.flexible]
        return self._random.choice(whole) if whole else self._plain()

    def _inherit(self, struct: Struct) -> None:
        # From what has no base in common: a member there twice would have two meanings.
        met: set[str] = set()
        for base in self._complete():
            above = {it.tag for it in _ancestors(base)}
            usable = base.kind != "union" and not base.flexible and not met & above
            if usable and len(struct.bases) < 3 and self._chance(0.4):
                struct.bases.append(base)
                met |= above

    def _argument(self, floating: float) -> CType:
        if self._chance(floating):
            return self._float()
        which = self._random.random()
        if which < 0.55:
            return self._sized(self._random.randint(1, 40))
        if which < 0.64:
            name = self._random.choice(list(WIDE))
            return Number(name, WIDE[name], 16)
        if which < 0.69:
            return Number("_Bool", "bool", 1)
        if which < 0.8:
            target = self._random.choice([arithmetic("char"), Void(), self._plain()])
            return Pointer(target)
        return self._plain()

    def _sized(self, room: int) -> Struct:
        # Members until about ``room`` bytes are full; padding comes on top of it.
        struct = Struct("struct", f"{self._prefix}V{self._family.number}_{len(self._complete())}")
        if self._chance(0.2):
            choices = ["packed", "aligned(16)", "aligned(32)"]
            struct.attribute = f" __attribute__(({self._random.choice(choices)}))"
        alike = self._random.choice(["float", "double", "int"]) if self._chance(0.3) else ""
        inner = [it for it in self._complete() if _about(it) <= room]
        while room > 0 or not struct.members:
            member = self._of_at_most(max(room, 1), alike, inner)
            room -= _about(member.type) if member.width is None else 1
            struct.members.append(member)
        self._family.declared.append(struct)
        return struct

    def _of_at_most(self, room: int, alike: str, inner: list[Struct]) -> Member:
        which = self._random.random()
        sizes = FLOATS | INTEGERS | dict.fromkeys(CHARACTERS, 1)
        if alike and sizes[alike] <= room:
            sizes = {alike: sizes[alike]}
        elif which < 0.12:
            base = self._random.choice(["int", "unsigned", "long", "unsigned char"])
            number = arithmetic(base)
            return Member(self._name(), number, self._random.randint(1, 8 * number.size))
        elif which < 0.22 and (fits := [it for it in inner if _about(it) <= room]):
            return Member(self._name(), self._random.choice(fits))
        name = self._random.choice([it for it, size in sizes.items() if size <= room])
        size = sizes[name]
        c_type: CType = arithmetic(name)
        if room >= 2 * size and self._chance(0.25):
            c_type = Array(c_type, self._random.randint(1, min(5, room // size)))
        return Member(self._name(), c_type)

    def _small(self, struct: Struct, depth: int) -> None:
        # As small as what is passed in registers, with several members in each of them.
        for _ in range(self._random.randint(2, 4)):
            which = self._random.random()
            if which < (0.65 if depth else 0.2):
                name = self._random.choice(["int", "unsigned", "short", "unsigned char"])
                width = self._random.randint(1, 8)
                struct.members.append(Member(self._name(), arithmetic(name), width))
            elif which < 0.55 and depth < 1:
                inner = Struct("struct", "")
                self._small(inner, depth + 1)
                struct.members.append(Member(self._name(), inner))
            elif which < 0.7:
                struct.members.append(Member(self._name(), self._pointer()))
            else:
                names = ["char", "signed char", "short", "unsigned short", "int", "unsigned"]
                name = self._random.choice(names)
                base = arithmetic(name)
                number: CType = Array(base, 2) if self._chance(0.2) else base
                struct.members.append(Member(self._name(), number))

    def _fill(self, struct: Struct, depth: int) -> None:
        attributes = ["packed", "aligned(16)", "packed, aligned(4)", "aligned(32)"]
        if self._chance(0.3):
            struct.attribute = f" __attribute__(({self._random.choice(attributes)}))"
        guarded = False  # a union has one member at most that may not hold any bytes
        for _ in range(self._random.choice([1, 2, 3, 3, 4, 5, 6, 7])):
            free = struct.kind == "union" and guarded
            member = self._member(depth, free, struct.kind)
            guarded = guarded or next(careful(member.type), None) is not None
            struct.members.append(member)
        if "packed" in struct.attribute:
            _narrow(struct)
        if not any(member.name for member in struct.members):
            struct.members.append(Member(self._name(), self._plain()))

    def _member(self, depth: int, free: bool, kind: str) -> Member:
        which = self._random.random()
        if which < 0.25:
            return self._bit_field(kind)
        if which < 0.35 and depth < 3:
            inner = Struct(self._random.choice(["struct", "struct", "union"]), "")
            self._fill(inner, depth + 1)
            if free and next(careful(inner), None):
                return Member(self._name(), self._plain())
            return Member("" if self._chance(0.6) else self._name(), inner)
        c_type = self._plain() if free else self._type(depth, True)
        attribute = ""
        if self._chance(0.1):
            attribute = f" __attribute__(({self._random.choice(['packed', 'aligned(8)'])}))"
        return Member(self._name(), c_type, None, attribute)


def _narrow(struct: Struct) -> None:
    # clang 14 leaves out where a packed bit field begins that is as wide as its type. That shows
    # where it overlaps another one, and does not where only an unnamed one is before it.
    if all(it.name or it.width is None for it in struct.members):
        return
    for index, member in enumerate(struct.members):
        inner = resolved(member.type)
        if isinstance(inner, Number) and member.width == 8 * inner.size and inner.size > 1:
            struct.members[index] = Member(member.name, member.type, member.width - 1)


def _ancestors(struct: Struct) -> list[Struct]:
    return [struct, *(above for base in struct.bases for above in _ancestors(base))]


def _about(c_type: CType) -> int:
    # Bytes without padding.
    match resolved(c_type):
        case Number(size=size):
            return size
        case Array(element=element, count=count):
            return _about(element) * (count or 0)
        case Struct(members=members):
            return sum(_about(it.type) if it.width is None else 1 for it in members)
        case _:
            return 8
