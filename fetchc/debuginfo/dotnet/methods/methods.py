"""Methods of an assembly by the names that people write, and which of them have code.

Written names: ``Ns.Type.Method``, ``Type.Method``, ``Type::Method(string)``, with type arguments
in ``<>`` for one instantiation, as C#, perf maps and stack traces show them.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.signatures import Defined, Generic, Primitive
from fetchc.debuginfo.dotnet.metadata.spelling import class_spelled, open_spelled
from fetchc.debuginfo.dotnet.methods.instances import generic_code
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature

__all__ = [
    "Method", "Methods", "Written", "parameters_fit", "split_outside", "takes_context", "written",
]  # fmt: skip

SPECIAL = (".ctor", ".cctor")
ACCESSORS = ("get_", "set_", "add_", "remove_")  # of properties and events
KNOWN_AS = {  # what people write for names of the runtime
    "String": "string", "Object": "object", "Boolean": "bool", "Char": "char", "SByte": "sbyte",
    "Byte": "byte", "Int16": "short", "UInt16": "ushort", "Int32": "int", "UInt32": "uint",
    "Int64": "long", "UInt64": "ulong", "Single": "float", "Double": "double",
    "IntPtr": "nint", "UIntPtr": "nuint", "Decimal": "decimal",
    "int8": "sbyte", "uint8": "byte", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float", "float64": "double",
    "native int": "nint", "native uint": "nuint",
}  # fmt: skip


class Method(Record):
    """A method with code: its row, and of an instantiation the types for its parameters.

    ``name`` is without parameters, ``symbol`` with them, as maps have it ``in_map``.
    ``function`` is the piece of code.
    """

    row: int
    owner: int
    name: str
    symbol: str
    in_map: str
    function: int
    of_type: tuple[Signature, ...] = ()
    of_method: tuple[Signature, ...] = ()


class Written(Record):
    """A name taken apart: types from the outside in, the method, and what is in the brackets.

    ``parameters`` is None where none are written. Type arguments stay with their names.
    """

    types: tuple[str, ...]
    method: str
    parameters: tuple[str, ...] | None


def written(name: str) -> Written:
    """What a written name says."""
    # A line of a perf map: `instance void [assembly] Ns.Type::Method(args)[Tier]`.
    if "::" in name and "] " in name.partition("(")[0]:
        name = name.partition("] ")[2]
    name = name.strip()
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


def _opening(name: str) -> int:
    # Where the parameters begin, or the end: a tuple among type arguments has parentheses too.
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter in "<[") - (letter in ">]")
        if letter == "(" and depth <= 0:
            return at
    return len(name)


def split_outside(text: str, mark: str) -> list[str]:
    """``text`` cut at each ``mark`` that is not inside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<[({") - (letter in ">])}")
        if letter == mark and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


class Methods:
    """The methods of one assembly."""

    __slots__ = ("_assembly", "_found", "_spelled")

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._found: dict[str, list[Method]] = {}
        self._spelled: dict[tuple[int, Sequence[str], Sequence[str]], str] = {}

    def types(self, parts: Sequence[str]) -> list[int]:
        """Rows of the types that a written name, or the end of a whole one, can mean."""
        if not parts:
            return []
        plain = [_plain(part).partition("`")[0] for part in parts]
        wanted = ".".join(plain)
        found = []
        for row in self._assembly.types_called(plain[-1], b"\0`"):
            name = class_spelled(self._assembly.type_name(row), ())
            if name in KEYWORD_CLASSES:
                name = KEYWORD_CLASSES[name]
            name = _bare(name)
            if name == wanted or name.endswith("." + wanted):
                found.append(row)
        exact = [row for row in found if _bare_name(self._assembly, row) == wanted]
        return exact or found

    def called(self, name: str) -> list[int]:
        """Rows of all methods, with code or without, that a written name can mean."""
        asked = written(name)
        plain = _plain(asked.method)
        if not asked.types:
            offsets = self._assembly.metadata.names_at(plain)
            rows = self._assembly.metadata.rows("MethodDef")
            return [number for number, row in enumerate(rows, 1) if row[3] in offsets]
        # A method that implements an interface explicitly has the interface's name in its own.
        for cut in range(len(asked.types), 0, -1):
            known = {
                method: self._assembly.method_name(method)
                for row in self.types(asked.types[:cut])
                for method in self._assembly.methods(row)
            }
            own = ".".join([*asked.types[cut:], plain])
            accessors = [prefix + own for prefix in ACCESSORS]
            found = [method for method, name in known.items() if name == own]
            found = found or [method for method, name in known.items() if name in accessors]
            found = found or [at for at, name in known.items() if name.endswith(f".{own}")]
            if found:
                return found
        return []

    def named(self, name: str) -> list[Method]:
        """The methods with code that a written name can mean."""
        known = self._found.get(name)
        if known is None:
            known = self._found[name] = self._named(written(name), self.called(name))
        return known

    def _named(self, asked: Written, rows: list[int]) -> list[Method]:
        if asked.parameters is not None:
            count = len(asked.parameters)
            signature = self._assembly.method_signature
            rows = [row for row in rows if len(signature(row).parameters) == count]
        found: list[Method] = []
        generic = set()
        for row in rows:
            if self._is_generic(row):
                generic.add(row)
            else:
                found += self._plain(row)
        if generic:
            found += self.instantiated(generic)
            found = [one for one in found if _arguments_fit(one, asked)]
        if asked.parameters is not None:
            return [one for one in found if parameters_fit(one.symbol, asked.parameters)]
        return found

    def _is_generic(self, row: int) -> bool:
        assembly = self._assembly
        owner = assembly.owner(row)
        return bool(
            assembly.type_parameters_of("TypeDef", owner)
            or assembly.type_parameters_of("MethodDef", row)
        )

    def _plain(self, row: int) -> list[Method]:
        native = self._assembly.native
        index = None if native is None else native.entry(row)
        if index is None:
            return []
        return [self._made(row, self._assembly.owner(row), index, (), ())]

    def every(self) -> Iterator[Method]:
        """All methods with code."""
        native = self._assembly.native
        if native is None:
            return
        owners = self._owners()
        found: dict[str, list[Method]] = {}
        for row, index in sorted(native.entries()):
            one = self._made(row, owners[row], index, (), ())
            found.setdefault(one.symbol, []).append(one)
            yield one
        for one in self.instantiated(owners=owners):
            found.setdefault(one.symbol, []).append(one)
            yield one
        self._found |= found  # who goes through all asks for many of them by name

    def _owners(self) -> list[int]:
        # The type of each method, by its row.
        assembly, found = self._assembly, [0] * (self._assembly.metadata.count("MethodDef") + 1)
        for owner in range(1, assembly.metadata.count("TypeDef") + 1):
            for row in assembly.methods(owner):
                found[row] = owner
        return found

    def instantiated(
        self, rows: Collection[int] = (), owners: Sequence[int] = ()
    ) -> Iterator[Method]:
        """The instantiations of generic methods, of all or of these ``rows``.

        Of each the code, not stubs that lead to it. ``owners`` are types of methods, if known.
        """
        count = self._assembly.metadata.count("MethodDef")
        for one in generic_code(self._assembly, rows):
            of_type: tuple[Signature, ...] = ()
            if isinstance(one.owner, Generic):
                if not isinstance(one.owner.of, Defined) or one.owner.of.token.table != "TypeDef":
                    continue
                of_type = one.owner.arguments
            if one.unboxing or not 0 < one.method <= count:
                continue
            owner = owners[one.method] if owners else self._assembly.owner(one.method)
            yield self._made(one.method, owner, one.function, of_type, one.arguments)

    def symbol(self, row: int) -> str:
        """The name of a method with its parameters, whether it has code or not."""
        return self._made(row, self._assembly.owner(row), 0, (), ()).symbol

    def _made(
        self,
        row: int,
        owner: int,
        function: int,
        of_type: tuple[Signature, ...],
        of_method: tuple[Signature, ...],
    ) -> Method:
        assembly = self._assembly
        types = tuple([open_spelled(assembly, one, (), ()) for one in of_type])
        methods = tuple([open_spelled(assembly, one, (), ()) for one in of_method])
        columns = assembly.metadata.row("MethodDef", row)
        short = assembly.metadata.text(columns[3])
        if methods:
            short += f"<{', '.join(methods)}>"
        holder = class_spelled(assembly.type_name(owner), types)
        holder = KEYWORD_CLASSES.get(holder, holder)
        name = f"{holder}.{short}"
        key = (columns[4], types, methods)  # methods that take the same share a signature
        inside = self._spelled.get(key)
        if inside is None:
            signature = assembly.method_signature(row)
            words = [open_spelled(assembly, one, types, methods) for one in signature.parameters]
            inside = self._spelled[key] = ", ".join(words)
        symbol, in_map = f"{name}({inside})", f"{holder}::{short}({inside})"
        return Method(row, owner, name, symbol, in_map, function, of_type, of_method)


KEYWORD_CLASSES = {"string": "System.String", "object": "System.Object"}


def _plain(name: str) -> str:
    # Without type arguments. `<Main>$` is a name, which a compiler made.
    behind = depth = 0
    if name.startswith("<"):
        for at, letter in enumerate(name, 1):
            depth += (letter == "<") - (letter == ">")
            if not depth or at == len(name):
                behind = at
                break
    return name[:behind] + name[behind:].partition("<")[0]


def _bare(name: str) -> str:
    # Without arities of generic types.
    return ".".join(part.partition("`")[0] for part in name.split("."))


def _bare_name(assembly: Assembly, row: int) -> str:
    return _bare(assembly.type_name(row).replace("+", "."))


def _canonical(text: str) -> str:
    # A parameter's type as it can be compared: short names, no blanks.
    words = text
    for keyword in ("class ", "valuetype ", "ref ", "out ", "in "):
        words = words.removeprefix(keyword)
    made = ""
    part = ""
    for letter in words.replace("+", ".") + "\0":
        if letter.isalnum() or letter in "_." or ord(letter) > 127:
            part += letter
            continue
        short = part.rpartition(".")[2]
        made += KNOWN_AS.get(short, short)
        part = ""
        if letter not in " \0":
            made += letter
    return made


def parameters_fit(symbol: str, wanted: tuple[str, ...]) -> bool:
    """Whether a symbol has these parameters, however their types are spelled."""
    # The bracket of the parameters: names of types before it have none.
    inside = symbol[_opening(symbol) + 1 : -1]
    own = split_outside(inside, ",") if inside else []
    return len(own) == len(wanted) and all(
        _canonical(mine).rstrip("&") == _canonical(theirs).rstrip("&")
        for mine, theirs in zip(own, wanted, strict=True)
    )


def _arguments_fit(method: Method, asked: Written) -> bool:
    # Where type arguments are written, they are those of the instantiation.
    name = method.symbol[: _opening(method.symbol)]
    whole = written(name)
    mine = [*whole.types, whole.method]
    theirs = [*asked.types, asked.method]
    for own, wanted in zip(reversed(mine), reversed(theirs), strict=False):
        if _plain(wanted) != wanted and _canonical(own) != _canonical(wanted):
            return False
    return True


def takes_context(receives: bool, value: bool, signature_generic: bool, method: Method) -> bool:
    """Whether shared code gets its type arguments as a hidden parameter.

    Code that is shared by all classes knows them from ``this``, unless it has none, it is a
    structure's, or the method has type arguments of its own. Source: dotnet/runtime,
    docs/design/coreclr/botr/clr-abi.md, "Generics".
    """
    shared = any(_is_shared(one) for one in (*method.of_type, *method.of_method))
    return shared and (not receives or value or signature_generic)


def _is_shared(signature: Signature) -> bool:
    if isinstance(signature, Generic):
        return any(_is_shared(one) for one in signature.arguments)
    return signature == Primitive("__Canon")
