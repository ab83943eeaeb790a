"""Which function of a C++ program a person means by a name.

Compilers know ``AddressBook::AddContact(std::__cxx11::basic_string<char, std::char_traits<char>,
std::allocator<char> > const&, int)``. People leave out the parameters, the namespaces, the
arguments of templates, those that have defaults; they write ``std::string`` and put ``const``
where they like.
"""

from __future__ import annotations

from fetchc.program.cpp_names import (
    BRACKETS,
    CLOSING,
    INLINE,
    OPENING,
    SHORT,
    arguments,
    canonical,
    is_instance,
)
from fetchc.program.demangle import demangled, is_mangled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["counted", "meant", "names", "overload", "parameter_count", "parts", "shortened"]

_EXACT = 2  # as is_instance says it
_NO_BRACKET = ("->", "<<", ">>", "<=", ">=", "<", ">", "()", "[]")  # after `operator`
_ROUND = str.maketrans("[{]}", "(())")  # brackets but `<>`, which are operators, too
_BEHIND = (" const", " volatile", " &&", " &", "&&", "&", " noexcept")
# Functions that compilers add, which are called after others.
_ADDED = (
    "non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to ",
    "TLS init function for ", "TLS wrapper function for ", "guard variable for ",
    "transaction clone for ", "non-transaction clone for ",
)  # fmt: skip


def meant(wanted: str, symbols: Iterable[str]) -> list[str]:
    """Those of the ``symbols`` that ``wanted`` can mean, of the best kind that there is.

    First those with that whole name, then those whose last parts it is; with parameters, those
    that take them, and of two that differ in the object's ``const`` or ``&`` the one written.
    Template arguments count where they are written; the last ones, which may have defaults, can be
    left out. A clone is meant where there is nothing else, what was split
    off as cold never. With a mark (``f [clone .cold]``), as listings show it, only that one is.
    """
    added, rest = _added(wanted)
    name, parameters, behind = parts(rest)
    marked = _mark(behind)
    plain = _plain(name)
    last = plain[-1]
    if not last:
        return []
    object_is = _qualifiers(behind)
    kinds: dict[tuple[bool, ...], list[str]] = {}
    key = _without_arguments(last).removeprefix("~")
    for symbol in symbols:
        # The words of a name are in its mangled form, but for operators.
        if not is_mangled(symbol) or not (key in symbol or key.startswith("operator")):
            continue
        shown = demangled(symbol)
        if shown is None or ("[clone .cold" in shown and not marked):
            continue
        what, shown = _added(shown)
        its_name, its_parameters, its_behind = parts(shown)
        if marked and _mark(its_behind) != marked:
            continue
        its_plain = _plain(its_name)
        alike = _ends(its_plain, plain) if what == added else 0
        if not alike:
            continue
        if parameters is not None and _listed(parameters) != _listed(its_parameters or ""):
            continue
        other = parameters is not None and _qualifiers(its_behind) != object_is
        kind = "[clone " in shown, len(its_plain) != len(plain), alike < _EXACT, other
        kinds.setdefault(kind, []).append(symbol)
    return sorted(kinds[min(kinds)]) if kinds else []


def overload(wanted: str, named: Callable[[str], list[str]]) -> list[str]:
    """The symbols that ``wanted`` means by its parameters, of those that have its plain name."""
    name, parameters, _ = parts(wanted)
    if parameters is None:
        return []
    last = _plain(name)[-1]
    return meant(last + wanted.strip()[len(name) :], named(name))


def _added(shown: str) -> tuple[str, str]:
    prefix = next((one for one in _ADDED if shown.startswith(one)), "")
    return prefix, shown[len(prefix) :]


def parameter_count(symbol: str) -> int | None:
    """How many parameters the symbol of a C++ function names; None where it says nothing."""
    shown = demangled(symbol)
    parameters = None if shown is None else parts(shown)[1]
    return None if parameters is None else counted(parameters)


def counted(parameters: str) -> int:
    """The number of parameters in the text between the parentheses."""
    return len(_listed(parameters))


def _mark(behind: str) -> str:
    # `.isra.0.cold` of ` const [clone .isra.0] [clone .cold]`; demanglers differ in the brackets.
    _, *clones = behind.split("[clone ")
    return "".join([clone.partition("]")[0] for clone in clones])


def _qualifiers(behind: str) -> set[str]:
    # `const` and `&` of ` const & [clone .isra.0]`.
    marks = behind.partition("[clone")[0].replace("&&", " rvalue ").replace("&", " & ")
    return set(marks.split()) - {"noexcept"}


def parts(text: str) -> tuple[str, str | None, str]:
    """``void ns::f<int>(int) const`` in name, parameters, and the rest.

    Parameters are None where none are written. What a template's function returns is left out.
    """
    text = text.strip()
    behind = ""
    cut = text
    cut, clone, rest = cut.partition(" [clone")
    behind = clone + rest
    stripped = True
    while stripped:
        stripped = False
        for mark in _BEHIND:
            if cut.endswith(mark) and ")" in cut:
                cut, behind, stripped = cut[: -len(mark)], mark + behind, True
                break
    parameters = None
    if cut.endswith(")") and not cut.endswith("operator()"):
        start = _opened(cut)
        if start > 0:
            parameters, cut = cut[start + 1 : -1], cut[:start]
    return _without_result(cut), parameters, behind


def shortened(shown: str) -> str:
    """A demangled name as people write it: ``std::string``, nothing that has a default."""
    added, shown = _added(shown)
    name, parameters, behind = parts(shown)
    for hidden in INLINE:
        name = name.replace(hidden, "")
    if name.startswith("std::basic_") and "operator" not in name:
        name = canonical(name)
    if parameters is None:
        return added + name + behind
    listed = ", ".join(_listed(parameters)).replace("(anonymousnamespace)", "(anonymous namespace)")
    return f"{added}{name}({listed}){behind}"


def names(shown: str) -> tuple[str, str]:
    """What a demangled function is called, with its parameters and without: not what it returns."""
    added, rest = _added(shown)
    name = parts(rest)[0]
    if not name:  # of a type: `typeinfo for A (int)`
        return shown, shown
    return added + name + rest.partition(name)[2], name


def _opened(text: str) -> int:
    # Where the bracket opens that the text's last character closes.
    text = text.translate(_ROUND)
    depth, end = 0, len(text)
    while (at := text.rfind("(", 0, end)) >= 0:
        depth += text.count(")", at, end) - 1
        if depth == 0:
            return at
        end = at
    return -1


def _without_result(name: str) -> str:
    # `void f<int>` and `std::vector<int> g<int>`: blanks outside of brackets, before `operator`.
    stop = name.find("operator")
    head = name if stop < 0 else name[:stop]
    if " " not in head:
        return name
    depth, start, at = 0, 0, 0
    *pieces, _ = head.translate(BRACKETS).split(" ")
    for piece in pieces:
        at += len(piece) + 1
        depth += piece.count("<") - piece.count(">")
        if depth == 0:
            start = at
    return name[start:]


def _plain(name: str) -> list[str]:
    # The name in its parts, without the namespaces that the standard libraries hide.
    for hidden in INLINE:
        name = name.replace(hidden, "")
    name = name.replace("(anonymous namespace)::", "").removeprefix("::")
    found, depth, start, at = [], 0, 0, 0
    while at < len(name):
        if name.startswith("operator", at) and depth == 0:
            break
        if name[at] in OPENING:
            depth += 1
        elif name[at] in CLOSING:
            depth -= 1
        elif depth == 0 and name.startswith("::", at):
            found.append(name[start:at])
            start = at = at + 2
            continue
        at += 1
    return [*found, name[start:]]


def _ends(whole: list[str], wanted: list[str]) -> int:
    # 0 where ``wanted`` is not its end, less than _EXACT where defaults were left out.
    if len(wanted) > len(whole):
        return 0
    return min(map(_same, whole[-len(wanted) :], wanted))


def _same(part: str, wanted: str) -> int:
    if part == wanted:
        return _EXACT
    if part.startswith("operator ") and wanted.startswith("operator "):
        return _EXACT * (canonical(part[9:]) == canonical(wanted[9:]))
    if "<" in wanted:
        return is_instance(part, wanted)
    short = SHORT.get(f"std::{canonical(part)}", "").rpartition("::")[2]
    return _EXACT * (wanted in (short, _without_arguments(part)))


def _without_arguments(part: str) -> str:
    part = part.partition("[abi:")[0]
    if part.startswith("operator"):
        sign = part[len("operator") :].lstrip()
        return part if sign.startswith(_NO_BRACKET) else part.partition("<")[0]
    if part.endswith(")"):
        part = part[: max(_opened(part), 0)] or part  # the function that a lambda is in
    return part.partition("<")[0]


def _listed(parameters: str) -> list[str]:
    found = [canonical(one) for one in arguments(parameters)]
    return [] if found in (["void"], [""]) else found
