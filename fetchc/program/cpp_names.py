"""Compares names of C++ types, which users and compilers spell differently."""

from __future__ import annotations

__all__ = [
    "BRACKETS",
    "CLOSING",
    "INLINE",
    "OPENING",
    "SHORT",
    "arguments",
    "bracketed",
    "canonical",
    "is_instance",
    "short_types",
    "spelling_key",
]

# Last arguments of the standard's templates that are seldom written, by their templates.
_DEFAULTS = frozenset(
    f"std::{name}"
    for name in ("allocator", "char_traits", "default_delete", "equal_to", "hash", "less")
)
DEEPEST = 100  # templates within each other
INLINE = ("__cxx11::", "__1::", "__ndk1::", "__debug::")  # namespaces that nobody writes
SHORT = {
    "std::basic_string<char>": "std::string",
    "std::basic_string<wchar_t>": "std::wstring",
    "std::basic_string_view<char>": "std::string_view",
    "std::basic_ostream<char>": "std::ostream",
    "std::basic_istream<char>": "std::istream",
}
_SHORTEST = frozenset(SHORT.values())
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
OPENING, CLOSING = "<([{", ">)]}"
BRACKETS = str.maketrans("([{)]}", "<<<>>>")  # all kinds as one
_DECLARATORS = str.maketrans("*&([", "<<<<")  # what may be after the base of a type
_known: dict[str, str] = {}  # what is canonical: a listing names few types often
_MOST_KNOWN = 1 << 16
_KEYS = frozenset({"struct", "class", "union", "enum", "typename"})


def is_instance(found: str, wanted: str) -> int:
    """How well the template instance ``wanted`` names ``found``: 2 in all its arguments, 1 in the
    first ones (the others may have defaults), 0 not at all.
    """
    spelled, asked = canonical(found), _wanted(wanted)
    if spelled == asked:
        return 2
    base, opened, rest = spelled.partition("<")
    if not opened or not rest.endswith(">") or asked.partition("<")[0] != base:
        return 0
    have = arguments(rest[:-1])
    want = arguments(asked.partition("<")[2][:-1])
    return int(have[: len(want)] == want)


_last = ("", "")  # what one question compares with thousands of names


def _wanted(text: str) -> str:
    global _last
    last_text, result = _last
    if last_text != text:
        result = canonical(text)
        _last = text, result
    return result


def arguments(text: str) -> list[str]:
    """The strings between commas; commas within brackets do not count."""
    if "," not in text:
        return [text.strip()]
    found, depth, start, at = [], 0, 0, 0
    for piece in bracketed(text).split(","):
        at += len(piece)
        depth += piece.count("<") - piece.count(">")
        if depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
        at += 1
    if depth:
        found.append(text[start:].strip())
    return found


def bracketed(text: str) -> str:
    """As long as ``text``, each opening bracket written ``<``, each closing one ``>``.

    Those in literals (``Foo<'>'>``) are blank, and so are their commas: they open and part nothing.
    """
    return _without_literals(text).translate(BRACKETS)


def canonical(text: str, depth: int = 0) -> str:
    """A type as it is compared: `const` last, nothing that has a default, no inner blanks.

    ``depth`` counts the templates around it; what is deeper than :data:`DEEPEST` stays as it is.
    """
    if text.count("<") + depth > DEEPEST:
        return text if depth > DEEPEST else _canonical(text, depth)
    found = _known.get(text)
    if found is None:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        found = _known[text] = _canonical(text, depth)
    return found


def _canonical(text: str, depth: int) -> str:
    for hidden in INLINE:
        text = text.replace(hidden, "")
    end = text.translate(_DECLARATORS).find("<")
    end = len(text) if end < 0 else end
    words = [word for word in text[:end].split() if word not in _KEYS]
    constant = "const" in words
    base = " ".join(word for word in words if word != "const")
    base = _WORDS.get(base, base)
    if base[:1].isdigit():
        base = base.rstrip("uUlL")  # clang writes `3UL` where gcc writes `3`
    rest = text[end:].strip()
    if rest.startswith("<"):
        close = _closed(rest)
        inner = [canonical(one, depth + 1) for one in arguments(rest[1:close])]
        base = f"{base}<{','.join(_written(inner))}>"
        base = SHORT.get(base, base)
        rest = rest[close + 1 :].strip()
        if rest.startswith("::"):
            behind = canonical(rest[2:], depth + 1)
            return f"{base}::{behind}" + (" const" if constant else "")
    # The rest is a declarator: `const` directly after the base belongs to it.
    while rest.startswith("const") and not rest[5:6].isalnum():
        constant, rest = True, rest[5:].strip()
    rest = "".join(rest.split())
    return base + (" const" if constant else "") + rest


def _written(inner: list[str]) -> list[str]:
    # Without those at the end that the standard's containers have where nothing is written: of
    # the first argument, or an allocator of a map's pairs. `Pool<std::allocator<char>>` is itself.
    arguments = list(inner)
    while len(arguments) > 1 and arguments[-1].partition("<")[0] in _DEFAULTS:
        of = arguments[-1].partition("<")[2][:-1]
        pair = f"std::pair<{canonical(arguments[0] + ' const')},{arguments[1]}>"
        if of not in (arguments[0], pair):
            break
        arguments.pop()
    return arguments


def spelling_key(text: str) -> object:
    """Equal for what two compilers make of one type (`long`, `long int`), unlike for all others:
    two libraries' types of one name, or `struct s` and a typedef `s`.
    """
    words = text.replace("<", " ").replace(",", " ").split()
    hidden = tuple([one for one in INLINE if one in text])
    return canonical(text), tuple(sorted(_KEYS.intersection(words))), hidden


def short_types(text: str, depth: int = 0) -> str:
    """A string with the types of C++'s library in it as people write them.

    ``std::map<std::string, Order>``: without the arguments that are defaults, without inline
    namespaces, with the short names of strings and streams. All else stays as it is.
    """
    if "std::" not in text or depth > DEEPEST:
        return text
    for hidden in INLINE:
        text = text.replace(f"std::{hidden}", "std::")
    parts, at = [], 0
    while (start := text.find("std::", at)) >= 0:
        end = start + 5
        while text[end : end + 1].isalnum() or text[end : end + 1] in ("_", ":"):
            end += 1
        close = end + _closed(text[end:]) if text[end : end + 1] == "<" else len(text)
        if close == len(text):  # no template, or a part of one
            parts.append(text[at:end])
            at = end
            continue
        inner = [short_types(one, depth + 1) for one in arguments(text[end + 1 : close])]
        kept = inner[: len(_written([canonical(one) for one in inner]))]
        name = f"{text[start:end]}<{', '.join(kept)}>"
        short = canonical(name)
        parts += [text[at:start], short if short in _SHORTEST else name]
        at = close + 1
    return "".join(parts) + text[at:]


def _closed(text: str) -> int:
    # Where the `<` closes that the text begins with.
    text = _without_literals(text)
    depth, start = 0, 0
    while (at := text.find(">", start)) >= 0:
        depth += text.count("<", start, at) - 1
        if depth == 0:
            return at
        start = at + 1
    return len(text)


def _without_literals(text: str) -> str:
    # As long, with the brackets and commas of `Foo<'>'>` blanked: they open and part nothing.
    if "'" not in text:
        return text
    found, at = "", 0
    while (start := text.find("'", at)) >= 0:
        end = text.find("'", start + 2 + text.startswith("\\", start + 1))
        if end < 0:
            break
        found += text[at:start] + " " * (end + 1 - start)
        at = end + 1
    return found + text[at:]
