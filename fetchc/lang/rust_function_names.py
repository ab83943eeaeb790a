"""Which function of a Rust program a person means by a name.

The compiler writes ``<app::Thing<u16>>::get`` and ``<app::Point as app::Walk>::walk``. People write
``Thing::get``, ``Point::walk`` or ``<Point as Walk>::walk``, and ``f::<u32>`` for one instance of a
generic function. Symbols of the legacy scheme have no type arguments; the debug information has.
"""

from __future__ import annotations

from fetchc.program.demangle_rust import is_rust, rust_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["meant", "of_type", "without_arguments"]

_OPENING, _CLOSING = "<([{", ">)]}"
_CLOSURES = ("{{closure}}", "{closure")


def meant(wanted: str, symbols: Iterable[str]) -> list[str]:
    """Those of the ``symbols`` that ``wanted`` can mean, of the best kind that there is.

    First those whose whole name it is, then those whose last parts it is.
    """
    asked = _read(wanted)
    key = _plain(asked[-1][-1])
    if not key:
        return []
    kinds: dict[bool, list[str]] = {}
    for symbol in symbols:
        if key.strip("{}") not in symbol and not key.startswith(_CLOSURES):
            continue
        shown = rust_name(symbol) if is_rust(symbol) else None
        if shown is None:
            continue
        whole = _alike(_read(shown), asked)
        if whole is not None:
            kinds.setdefault(not whole, []).append(symbol)
    return sorted(kinds[min(kinds)]) if kinds else []


def without_arguments(wanted: str) -> str:
    """``app::Thing::get`` of ``app::Thing<u16>::get``."""
    text = wanted.replace("::<", "<")
    return "".join(
        [text[at] for at, depth in _depths(text) if depth == 0 and text[at] not in _CLOSING]
    )


def of_type(wanted: str, receiver: str) -> bool:
    """Whether ``wanted`` is a method of ``receiver``, ``&app::Thing<u16>`` or without the ``&``."""
    path = _read(wanted)[0][:-1]
    bare = receiver.removeprefix("&").removeprefix("mut ")
    return bool(path) and _ends(_split(bare), path) > 0


def _alike(name: list[list[str]], asked: list[list[str]]) -> bool | None:
    """Whether it is the whole name; None where it is another one."""
    if len(asked) > 1:
        # `<T as Trait>::f`: both are asked for.
        if len(name) != len(asked):
            return None
        ends = [_ends(mine, theirs) for mine, theirs in zip(name, asked, strict=True)]
    else:
        ends = [max((one for one in (_ends(each, asked[0]) for each in name)), default=0)]
    if not all(ends):
        return None
    return min(ends) > 1


def _ends(whole: list[str], wanted: list[str]) -> int:
    # 2 where they are the same, 1 where ``wanted`` is the end of it, 0 of others.
    if len(wanted) > len(whole):
        return 0
    if not all(map(_same, whole[-len(wanted) :], wanted)):
        return 0
    return 1 + (len(wanted) == len(whole))


def _same(part: str, wanted: str) -> bool:
    if part == wanted or wanted == _plain(part):
        return True
    return part.startswith("{closure") and wanted == "{{closure}}"


def _plain(part: str) -> str:
    return part if part.startswith("{") else part.partition("<")[0]


def _read(text: str) -> list[list[str]]:
    """The paths that a name has: of ``<T as Trait>::f`` one of the type and one of the trait."""
    text = text.strip().replace("::<", "<")
    if not text.startswith("<"):
        return [_split(text)]
    end = next((at for at, depth in _depths(text) if depth == 0), len(text))
    inside, rest = text[1:end], _split(text[end + 1 :].removeprefix("::"))
    middle = next(
        (at for at, depth in _depths(inside) if depth == 0 and inside.startswith(" as ", at)), None
    )
    if middle is None:
        return [[*_split(inside), *rest]]
    return [[*_split(inside[:middle]), *rest], [*_split(inside[middle + 4 :]), *rest]]


def _split(path: str) -> list[str]:
    found, start = [], 0
    for at, depth in _depths(path):
        if depth == 0 and at >= start and path.startswith("::", at):
            found.append(path[start:at].replace(" ", ""))
            start = at + 2
    return [*found, path[start:].replace(" ", "")]


def _depths(text: str) -> list[tuple[int, int]]:
    """Each position, with how many brackets are open after it."""
    found, depth = [], 0
    for at, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING and text[at - 1 : at] != "-":  # the arrow of a function's type
            depth -= 1
        found.append((at, depth))
    return found
