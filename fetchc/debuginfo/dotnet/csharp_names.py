"""Names of methods as people write them in C#, split into parts and compared.

``Ns.Type.Method``, ``Type.Method``, ``Type::Method(string)``, with type arguments in ``<>`` for one
instantiation, as C#, perf maps and stack traces show them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    IsClass = Callable[[str], bool]

__all__ = [
    "LOCAL_FUNCTION", "InSource", "Written", "arguments_fit", "desugared", "generated_prefix",
    "in_source", "map_line_parts", "of_map_line",
    "parameters_fit", "split_outside", "type_arguments", "without_arguments", "written",
]  # fmt: skip

SPECIAL = (".ctor", ".cctor")
KNOWN_AS = {  # what people write for names of the runtime
    "String": "string", "Object": "object", "Boolean": "bool", "Char": "char", "SByte": "sbyte",
    "Byte": "byte", "Int16": "short", "UInt16": "ushort", "Int32": "int", "UInt32": "uint",
    "Int64": "long", "UInt64": "ulong", "Single": "float", "Double": "double",
    "IntPtr": "nint", "UIntPtr": "nuint", "Decimal": "decimal",
    "int8": "sbyte", "uint8": "byte", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float", "float64": "double",
    "native int": "nint", "native uint": "nuint",
}  # fmt: skip

CANON = "__Canon"  # any class, in the name of code that all of them share
BY_REFERENCE = ("ref ", "out ", "in ")

_DEEPEST = 32  # types within each other; no program nests them so


class Written(Record):
    """A name taken apart: types from the outside in, the method, and what is in the brackets.

    ``parameters`` is None where none are written. Type arguments stay with their names.
    """

    types: tuple[str, ...]
    method: str
    parameters: tuple[str, ...] | None


def written(name: str) -> Written:
    """What a written name says."""
    name = map_line_parts(name)[1].strip()
    parameters = None
    opened = _opening(name)
    if opened < len(name):
        inside = name[opened + 1 :].rpartition(")")[0]
        parameters = tuple(split_outside(inside, ",")) if inside.strip() else ()
        name = name[:opened]
    name = name.replace("::", ".").replace("+", ".")
    special = next((one for one in SPECIAL if name.endswith("." + one)), "")
    parts = split_outside(name.removesuffix("." + special) if special else name, ".")
    if special:
        parts.append(special)
    return Written(tuple(parts[:-1]), parts[-1], parameters)


def map_line_parts(symbol: str) -> tuple[str, str]:
    """The assembly and the method of a perf map's line: ``shop`` and ``Server::Get(int)[Tier]`` of
    ``instance object[] [shop] Server::Get(int)[Tier]``. Of other strings no assembly, and all.
    """
    # What a method returns can have brackets: `int32[]`, `!0& modreq(InAttribute)`.
    before, mark, method = symbol.partition("::")
    returned, bracket, holder = before.rpartition("] ")
    if not mark or not bracket:
        return "", symbol
    return returned.rpartition("[")[2], f"{holder}::{method}"


def type_arguments(holder: str) -> tuple[str, str]:
    """A type's name in a line, and its type arguments: ``N.Pair`2`` and ``System.__Canon,N.Point``
    of ``N.Pair`2[System.__Canon,N.Point]``; none of others.
    """
    depth = 0
    for at in range(len(holder) - 1, -1, -1):
        depth += (holder[at] == "]") - (holder[at] == "[")
        if not depth:
            return (holder[:at], holder[at + 1 : -1]) if holder[at] == "[" else (holder, "")
    return holder, ""


# Of a signature in IL: what C# does not write before a type, and the number of type arguments
# after it; the numbers that C# names otherwise.
_NOT_WRITTEN = re.compile(r"\b(?:class|valuetype) |\[[^][,<>]+\](?=[\w<])|`\d+(?=<)")
_NUMBERS = re.compile(r"(?<![\w.])(?:native u?int|(?:u?int|float)\d+)(?!\w)")


@lru_cache(1 << 12)
def of_map_line(symbol: str) -> str:
    """A method as a listing has it, by its line of a perf map; another symbol as it is.

    ``Shop.Server.Handle(Shop.Order, long)`` of ``instance int32 [shop]
    Shop.Server::Handle(class Shop.Order,int64)[QuickJitted]``.
    """
    assembly, method = map_line_parts(symbol)
    if not assembly:
        return symbol
    parts = written(method)
    types = _as_in_source(", ".join(parts.parameters or ()))
    return f"{'.'.join([*parts.types, parts.method])}({types})"


def _as_in_source(types: str) -> str:
    # Types of a signature in IL.
    types = _NOT_WRITTEN.sub("", types)
    return _NUMBERS.sub(lambda found: KNOWN_AS.get(found[0], found[0]), types)


def split_outside(text: str, mark: str) -> list[str]:
    """``text`` cut at each ``mark`` that is not inside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<[({") - (letter in ">])}")
        if letter == mark and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _opening(name: str) -> int:
    # Where the parameters begin, or the end: a tuple among type arguments has parentheses too.
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter in "<[") - (letter in ">]")
        if letter == "(" and depth <= 0:
            return at
    return len(name)


def without_arguments(name: str) -> str:
    """A name without its type arguments."""
    prefix = generated_prefix(name)
    return prefix + name[len(prefix) :].partition("<")[0]


def generated_prefix(name: str) -> str:
    """The bracket at the start of a name that a compiler generated: ``<Main>`` of ``<Main>$``."""
    depth = 0
    if name.startswith("<"):
        for at, letter in enumerate(name, 1):
            depth += (letter == "<") - (letter == ">")
            if not depth or at == len(name):
                return name[:at]
    return ""


class InSource(Record):
    """What a method is in the source that a compiler took apart, with the names of the source:
    ``body of Steps.Wait``, ``lambda in Steps.Wait``, ``local function Steps.Wait.Inner``.
    """

    what: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what} {'.'.join(self.parts)}"


def in_source(types: tuple[str, ...], method: str, depth: int = 0) -> InSource | None:
    """What a method of ``types``, from the outside in, is in the source; None of ordinary ones.

    Source: dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNameKind.cs;
    mono/mono, mcs/mcs/anonymous.cs, async.cs, iterators.cs. Seen of Roslyn 4 and mcs 6.8.
    """
    if method == "MoveNext" and types and depth < _DEEPEST:
        bracket = generated_prefix(types[-1])
        kind = types[-1][len(bracket) :].partition("`")[0]
        if kind == "d" or kind.startswith(STATE_MACHINES):
            inner = in_source(types[:-1], bracket[1:-1], depth + 1)
            if inner is None:
                return _in_source("body of", types[:-1], bracket)
            what = "body of" if inner.what == LOCAL_FUNCTION else f"body of {inner.what}"
            return inner.replaced(what=what)
        return None
    bracket = generated_prefix(method)
    rest = method[len(bracket) :]
    if rest.startswith("g__") and "|" in rest:
        found = _in_source(LOCAL_FUNCTION, types, bracket)
        return found and found.replaced(parts=(*found.parts, rest[len("g__") :].partition("|")[0]))
    if not rest.startswith(("b__", "m__")):
        return None
    if bracket == "<>" and types:  # mcs: the method is in the name of the closure's type
        bracket = generated_prefix(types[-1])
    return _in_source("lambda in", types, bracket)


LOCAL_FUNCTION = "local function"
STATE_MACHINES = ("d__", "c__async", "c__Iterator")  # after the bracket of a type's name


def _in_source(what: str, types: tuple[str, ...], bracket: str) -> InSource | None:
    own = [one.partition("`")[0] for one in types if not generated_prefix(one)]
    method = {"<Main>$": "Main"}.get(bracket[1:-1], bracket[1:-1])  # of a file without a class
    return InSource(what, (*own, method)) if method else None


def parameters_fit(symbol: str, wanted: tuple[str, ...]) -> bool:
    """Whether a symbol has these parameters, however their types are spelled.

    ``ref``, ``in`` and ``out`` are the ``&`` of symbols.
    """
    # The bracket of the parameters: names of types before it have none.
    inside = symbol[_opening(symbol) + 1 : -1]
    own = split_outside(inside, ",") if inside else []
    return len(own) == len(wanted) and all(
        _canonical(mine) == _canonical(theirs) for mine, theirs in zip(own, wanted, strict=True)
    )


def _canonical(text: str) -> str:
    # A parameter's type as it can be compared: short names, no blanks.
    words = _as_in_source(text).removeprefix("params ")
    for keyword in BY_REFERENCE:
        if words.startswith(keyword):
            words = words.removeprefix(keyword) + "&"
    if words.endswith("?") and words[:-1] in ("string", "object"):
        words = words[:-1]  # of a class it says nothing about the type
    words = desugared(words)
    result = ""
    part = ""
    for letter in words.replace("+", ".") + "\0":
        if letter.isalnum() or letter in "_." or ord(letter) > 127:
            part += letter
            continue
        short = part.rpartition(".")[2]
        result += KNOWN_AS.get(short, short)
        part = ""
        if letter not in " \0":
            result += letter
    return result


def arguments_fit(symbol: str, asked: Written, is_class: IsClass | None = None) -> bool:
    """Whether a symbol has the type arguments of a written name, as far as they are written.

    ``is_class`` says of a written type whether it is a class: then the symbol may be that of code
    that all classes share, and the written parameters have to fit it, too.
    """
    whole = written(symbol[: _opening(symbol)])
    mine = [*whole.types, whole.method]
    theirs = [*asked.types, asked.method]
    for own, wanted in zip(reversed(mine), reversed(theirs), strict=False):
        if without_arguments(wanted) == wanted or _canonical(own) == _canonical(wanted):
            continue
        if is_class is None or not _all_share(_arguments(own), _arguments(wanted), is_class):
            return False
    if is_class is None or asked.parameters is None:
        return True
    return _all_share(list(written(symbol).parameters or ()), list(asked.parameters), is_class)


def _arguments(part: str) -> list[str]:
    inside = part[len(generated_prefix(part)) :].partition("<")[2].rpartition(">")[0]
    return split_outside(inside, ",") if inside else []


def _all_share(own: list[str], wanted: list[str], is_class: IsClass, depth: int = 0) -> bool:
    return len(own) == len(wanted) and all(
        _shares(mine, theirs, is_class, depth) for mine, theirs in zip(own, wanted, strict=True)
    )


def _shares(own: str, wanted: str, is_class: IsClass, depth: int) -> bool:
    # Whether code for `own`, in which any class is __Canon, is that for `wanted`.
    if depth > _DEEPEST:
        return False
    first, second = _canonical(own), _canonical(wanted)
    if first == second:
        return True
    if first == CANON:
        return is_class(wanted)
    for ending in ("&", "[]"):
        if first.endswith(ending) and second.endswith(ending):
            plain = wanted.removesuffix(ending)
            for keyword in BY_REFERENCE:
                plain = plain.removeprefix(keyword)
            return _shares(own.removesuffix(ending), plain, is_class, depth + 1)
    parts = _arguments(own), _arguments(desugared(wanted))
    same = first.partition("<")[0] == second.partition("<")[0]
    return same and bool(parts[0]) and _all_share(*parts, is_class, depth + 1)


def desugared(text: str, depth: int = 0) -> str:
    """A type without the signs that C# has for two of them: ``Nullable<int>`` of ``int?``,
    ``ValueTuple<int, string>`` of ``(int id, string name)``. As it is, nested too deeply.
    """
    text = text.strip()
    if depth > _DEEPEST:
        return text
    if text.endswith("?"):
        return f"System.Nullable<{desugared(text[:-1], depth + 1)}>"
    if text.startswith("(") and text.endswith(")"):
        parts = [_without_name(one) for one in split_outside(text[1:-1], ",")]
        inner = [desugared(one, depth + 1) for one in parts]
        return f"System.ValueTuple<{', '.join(inner)}>"
    return text


def _without_name(element: str) -> str:
    # `int id` of a tuple: the type alone.
    words = [word for word in split_outside(element, " ") if word]
    return words[0] if len(words) == 2 else element
