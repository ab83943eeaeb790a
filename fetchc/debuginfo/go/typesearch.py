"""Types of a Go program by name in the run time's descriptors, and the names that tell them apart.

Nothing lists types by name; but a type's name is in the file as a text, and its descriptor has the
text's offset. So both are searched for as bytes, and what is found is read as what it should be.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.names.go_names import unescaped
from fetchc.debuginfo.go.descriptors import LABEL
from fetchc.debuginfo.go.shapes import FIRST, linker_name
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.go_symbol_names import ALIASES, MOVED
from fetchc.program.types import ArrayType, PointerType, SliceType
from fetchc.quantities import Address, ByteSize, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from fetchc.debuginfo.elf.sections import Section
    from fetchc.debuginfo.go.descriptors import Descriptor, Descriptors
    from fetchc.debuginfo.go.shapes import Shapes
    from fetchc.program.types import Type

__all__ = ["descriptor_of", "label", "named"]

_LONGEST = 256  # bytes of a package's name; people's are short
_IN_NAMES = frozenset(b"_*" + bytes(range(0x80, 0x100)))  # beside letters and digits
_MODIFIERS = 100  # `*` and `[]` in front of a name
_FLAGS = 1 << 4  # and above: no name has such flags


def named(shapes: Shapes, name: str, package: str) -> Iterator[TypeId]:
    """The types that a person calls ``name`` in code of ``package`` (import path, or empty)."""
    modifiers = []
    modifier, rest = _modifier(name)
    while modifier is not None:
        modifiers.append(modifier)
        name = rest
        modifier, rest = _modifier(name)
    if len(modifiers) > _MODIFIERS:
        return
    for found in _unmodified(shapes, name, package):
        inner: TypeId | None = found
        for each in reversed(modifiers):
            made = None if inner is None else _around(shapes, each, inner)
            inner = None if made is None else shapes.intern(made)
        if inner is not None:
            yield inner


def _unmodified(shapes: Shapes, name: str, package: str) -> Iterator[TypeId]:
    wanted = ALIASES.get(name, name)
    seen = set()
    for one in _called(shapes.descriptors, wanted, package):
        if one.address not in seen:
            seen.add(one.address)
            yield TypeId(FIRST + one.address)
    if not seen and name in MOVED:
        yield from named(shapes, MOVED[name], package)


def _modifier(name: str) -> tuple[str | None, str]:
    # `*`, `[]` or `12` of `[12]`, and the type behind it.
    if name.startswith("*"):
        return "*", name[1:].lstrip()
    if name.startswith("["):
        count, bracket, rest = name[1:].partition("]")
        if bracket and (not count or (count.isascii() and count.isdecimal())):
            return count or "[]", rest.lstrip()
    return None, name


def _around(shapes: Shapes, modifier: str, inner: TypeId) -> Type | None:
    word = ByteSize(shapes.word)
    if modifier == "*":
        return PointerType("", word, inner)
    if modifier == "[]":
        return shapes.slice_of("", inner)
    each = getattr(shapes.type(inner), "size", None)
    return (
        None
        if each is None
        else ArrayType("", inner, int(modifier), ByteSize(each * int(modifier)))
    )


def descriptor_of(shapes: Shapes, made: Type) -> Descriptor | None:
    """The descriptor of a pointer, slice or array that was made of a type with one, if any."""
    inner = made.target if isinstance(made, PointerType) else getattr(made, "element", TypeId(-1))
    if inner < FIRST:
        return None
    known = shapes.descriptors
    modifier = "*"
    if isinstance(made, SliceType):
        modifier = "[]"
    elif isinstance(made, ArrayType):
        modifier = f"[{made.count}]"
    found = _exactly(known, modifier + known.at(inner - FIRST).name)
    return next((one for one in found if one.parts[:1] == (inner - FIRST,)), None)


def label(known: Descriptors, one: Descriptor, described: Callable[[str], Collection[str]]) -> str:
    """The name of a type as ``%T`` prints it, or as the linker where that means several types.

    ``described`` gives the whole names of the types that the debug information has by a name.
    """
    for each in _named_in(known, one):
        others = _exactly(known, each.name)
        if len(described(each.name)) > 1 or any(it.package != each.package for it in others):
            return unescaped(linker_name(known, one))
    return one.name


def _named_in(known: Descriptors, one: Descriptor) -> Iterator[Descriptor]:
    # The types of packages that the name of a type has in it, each once.
    seen: set[int] = set()
    waiting = [one.address]
    while waiting:
        address = waiting.pop()
        if address not in seen:
            seen.add(address)
            found = known.at(address)
            if not found.named:
                waiting += found.parts
            elif found.package:
                yield found


def _called(known: Descriptors, wanted: str, package: str) -> Iterator[Descriptor]:
    plain = unescaped(wanted)
    head = plain.partition("[")[0]
    last = head.rfind(".")
    if last > head.rfind("/"):
        # Where the package's path ends cannot be seen; the type's own name has no dot.
        whole, short = [], []
        for one in _ending(known, plain[last:]):
            if not one.named:
                continue
            full = unescaped(linker_name(known, one))
            if full == plain:
                whole.append(one)
            elif one.name == plain or full.endswith("/" + plain):
                short.append(one)
        own = [one for one in short if _is_of(known, one, package)]
        yield from own or whole or short or _exactly(known, plain)  # chan main.T, func(main.T)
        return
    found = False
    for one in _exactly(known, plain):
        found = True
        yield one
    if package and not found:
        full = f"{unescaped(package)}.{plain}"
        for one in _ending(known, f".{plain}"):
            if unescaped(linker_name(known, one)) == full:
                yield one


def _is_of(known: Descriptors, one: Descriptor, package: str) -> bool:
    full = unescaped(linker_name(known, one))
    return bool(package) and full == f"{unescaped(package)}.{full[full.rfind('.') + 1 :]}"


def _ending(known: Descriptors, ending: str) -> Iterator[Descriptor]:
    """Types with a name that ends so, behind the name of a package and nothing else."""
    needle = ending.encode("utf-8", "surrogateescape")
    window, size = _names(known)
    for at in window.find_all(needle):
        end = at + len(needle)
        if end > size:
            return
        before = window.bytes_between(max(0, at - _LONGEST), at)
        start = len(before)
        while start and (before[start - 1 : start].isalnum() or before[start - 1] in _IN_NAMES):
            start -= 1
            name = _beginning(known, before[:start], end - at + len(before) - start)
            if name is not None:
                yield from _described(known, at - len(before) + name)


def _exactly(known: Descriptors, text: str) -> Iterator[Descriptor]:
    """Types of exactly that name, which may be stored with a star in front."""
    needle = text.encode("utf-8", "surrogateescape")
    window, size = _names(known)
    for spelled in (needle, b"*" + needle) if needle else ():
        for at in window.find_all(spelled):
            if at + len(spelled) > size:
                break
            before = window.bytes_between(max(0, at - 4), at)
            name = _beginning(known, before, len(spelled))
            if name is not None:
                described = _described(known, at - len(before) + name)
                yield from (one for one in described if one.name == text)


def _names(known: Descriptors) -> tuple[Section, int]:
    # The part of the file that has descriptors and names.
    window = known.memory.elf.window(LABEL, Address(known.start))
    return window, min(known.end - known.start, window.size)


def _beginning(known: Descriptors, before: bytes, length: int) -> int | None:
    """Offset in ``before`` of the name whose text, of ``length`` bytes, is right behind it."""
    if known.short_lengths:
        header = length.to_bytes(2, "big")
    elif length < 0x80:
        header = bytes([length])
    else:
        header = bytes([length & 0x7F | 0x80, length >> 7])
    at = len(before) - len(header) - 1
    return at if at >= 0 and before.endswith(header) and before[at] < _FLAGS else None


def _described(known: Descriptors, name: int) -> Iterator[Descriptor]:
    """The descriptors that refer to the name at that offset: behind four words and 8 bytes."""
    memory = known.memory
    window, size = _names(known)
    behind = 4 * memory.word_bytes + 8
    for at in window.find_all(memory.packed(name, 4)):
        address = known.start + at - behind
        if at + 4 > size or address % memory.word_bytes:
            continue
        try:
            one = known.at(address)
            known.must_fit(one)
        except DebugInfoError:
            continue  # the same four bytes, and no descriptor around them
        yield one
