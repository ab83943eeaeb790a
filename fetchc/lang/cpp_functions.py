"""Which function of a C++ program a person means by a name.

Compilers know ``AddressBook::AddContact(std::__cxx11::basic_string<char, std::char_traits<char>,
std::allocator<char> > const&, int)``. People leave out the parameters, the namespaces, the
arguments of templates, those that have defaults; they write ``std::string`` and put ``const``
where they like.
"""

from __future__ import annotations

from fetchc.program.demangle import demangled, is_mangled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["meant", "parts", "shortened"]

# Arguments of the standard's templates that are seldom written, by the template they are made of.
_DEFAULTS = frozenset(
    f"std::{name}"
    for name in ("allocator", "char_traits", "default_delete", "equal_to", "hash", "less")
)
_INLINE = ("__cxx11::", "__1::", "__ndk1::", "__debug::")  # namespaces that nobody writes
_SHORT = {
    "std::basic_string<char>": "std::string",
    "std::basic_string<wchar_t>": "std::wstring",
    "std::basic_string_view<char>": "std::string_view",
    "std::basic_ostream<char>": "std::ostream",
    "std::basic_istream<char>": "std::istream",
}
_WORDS = {
    "unsigned": "unsigned int",
    "long int": "long",
    "long unsigned int": "unsigned long",
    "unsigned long int": "unsigned long",
    "short int": "short",
    "short unsigned int": "unsigned short",
    "long long int": "long long",
    "long long unsigned int": "unsigned long long",
}
_OPENING, _CLOSING = "<([{", ">)]}"
_NO_BRACKET = ("->", "<<", ">>", "<=", ">=", "<", ">", "()", "[]")  # behind `operator`
_BEHIND = (" const", " volatile", " &&", " &", "&&", "&", " noexcept")
_KEYS = frozenset({"struct", "class", "union", "enum", "typename"})


def meant(wanted: str, known: Iterable[str]) -> list[str]:
    """The symbols of ``known`` that ``wanted`` can stand for, of the best kind that there is.

    First those with that whole name, then those whose last parts it is; with parameters, those
    that take them. Template arguments count where they are written.
    """
    name, parameters, _ = parts(wanted)
    plain = _plain(name)
    last = plain[-1]
    if not last:
        return []
    kinds: tuple[list[str], list[str]] = ([], [])
    key = _without_arguments(last).removeprefix("~")
    for symbol in known:
        # The words of a name are in its mangled form, but for operators.
        if not is_mangled(symbol) or not (key in symbol or key.startswith("operator")):
            continue
        shown = demangled(symbol)
        if shown is None or "[clone " in shown:
            continue
        its_name, its_parameters, _ = parts(shown)
        its_plain = _plain(its_name)
        if not _ends(its_plain, plain):
            continue
        if parameters is not None and _listed(parameters) != _listed(its_parameters or ""):
            continue
        kinds[len(its_plain) != len(plain)].append(symbol)
    return sorted(next(filter(None, kinds), []))


def parts(text: str) -> tuple[str, str | None, str]:
    """``void ns::f<int>(int) const`` in name, parameters, and what stands behind.

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
    name, parameters, behind = parts(shown)
    for hidden in _INLINE:
        name = name.replace(hidden, "")
    if parameters is None:
        return name + behind
    return f"{name}({', '.join(_listed(parameters))}){behind}"


def _opened(text: str) -> int:
    # Where the bracket opens that the text's last character closes.
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] in ")]}":
            depth += 1
        elif text[at] in "([{":
            depth -= 1
            if depth == 0:
                return at
    return -1


def _without_result(name: str) -> str:
    # `void f<int>` and `std::vector<int> g<int>`: blanks outside of brackets, before `operator`.
    stop = name.find("operator")
    depth, start = 0, 0
    for at, character in enumerate(name if stop < 0 else name[:stop]):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == " " and depth == 0:
            start = at + 1
    return name[start:]


def _plain(name: str) -> list[str]:
    # The name in its parts, without the namespaces that the standard libraries hide.
    for hidden in _INLINE:
        name = name.replace(hidden, "")
    name = name.replace("(anonymous namespace)::", "").removeprefix("::")
    found, depth, start, at = [], 0, 0, 0
    while at < len(name):
        if name.startswith("operator", at) and depth == 0:
            break
        if name[at] in _OPENING:
            depth += 1
        elif name[at] in _CLOSING:
            depth -= 1
        elif depth == 0 and name.startswith("::", at):
            found.append(name[start:at])
            start = at = at + 2
            continue
        at += 1
    return [*found, name[start:]]


def _ends(whole: list[str], wanted: list[str]) -> bool:
    if len(wanted) > len(whole):
        return False
    return all(map(_same, whole[-len(wanted) :], wanted))


def _same(part: str, wanted: str) -> bool:
    if part == wanted:
        return True
    if "<" in wanted:
        return _canonical(part) == _canonical(wanted)
    short = _SHORT.get(f"std::{_canonical(part)}", "").rpartition("::")[2]
    return wanted in (short, _without_arguments(part))


def _without_arguments(part: str) -> str:
    part = part.partition("[abi:")[0]
    if part.startswith("operator"):
        sign = part[len("operator") :].lstrip()
        return part if sign.startswith(_NO_BRACKET) else part.partition("<")[0]
    return part.partition("<")[0]


def _listed(parameters: str) -> list[str]:
    found = [_canonical(one) for one in _split(parameters)]
    return [] if found in (["void"], [""]) else found


def _split(text: str) -> list[str]:
    found, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]


def _canonical(text: str) -> str:
    # A type as it is compared: `const` behind, nothing that has a default, no inner blanks.
    for hidden in _INLINE:
        text = text.replace(hidden, "")
    end = next((at for at, one in enumerate(text) if one in "<*&(["), len(text))
    words = [word for word in text[:end].split() if word not in _KEYS]
    constant = "const" in words
    base = " ".join(word for word in words if word != "const")
    base = _WORDS.get(base, base)
    rest = text[end:].strip()
    if rest.startswith("<"):
        close = _closed(rest)
        inner = [_canonical(one) for one in _split(rest[1:close])]
        kept = [one for one in inner if one.partition("<")[0] not in _DEFAULTS]
        base = f"{base}<{','.join(kept)}>"
        base = _SHORT.get(base, base)
        rest = rest[close + 1 :].strip()
        if rest.startswith("::"):
            return f"{base}::{_canonical(rest[2:])}" + (" const" if constant else "")
    # The rest is a declarator: `const` directly behind the base belongs to it.
    while rest.startswith("const") and not rest[5:6].isalnum():
        constant, rest = True, rest[5:].strip()
    rest = "".join(rest.split())
    return base + (" const" if constant else "") + rest


def _closed(text: str) -> int:
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if depth == 0:
            return at
    return len(text)
