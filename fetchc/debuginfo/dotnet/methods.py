"""Methods of an assembly by the names that people write, and which of them have code.

Written names: ``Ns.Type.Method``, ``Type.Method``, ``Type::Method(string)``, with type arguments
in ``<>`` for one instantiation, as C#, perf maps and stack traces show them.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.instances import generic_code
from fetchc.debuginfo.dotnet.signatures import Defined, Generic, Primitive
from fetchc.debuginfo.dotnet.spelling import class_spelled, open_spelled
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.debuginfo.dotnet.assembly import Assembly
    from fetchc.debuginfo.dotnet.signatures import Signature

__all__ = ["Method", "Methods", "Written", "split_outside", "takes_context", "written"]

SPECIAL = (".ctor", ".cctor")
KNOWN_AS = {  # what people write for names of the runtime
    "String": "string", "Object": "object", "Boolean": "bool", "Char": "char", "SByte": "sbyte",
    "Byte": "byte", "Int16": "short", "UInt16": "ushort", "Int32": "int", "UInt32": "uint",
    "Int64": "long", "UInt64": "ulong", "Single": "float", "Double": "double",
    "IntPtr": "nint", "UIntPtr": "nuint",
    "int8": "sbyte", "uint8": "byte", "int16": "short", "uint16": "ushort", "int32": "int",
    "uint32": "uint", "int64": "long", "uint64": "ulong", "float32": "float", "float64": "double",
    "native int": "nint", "native uint": "nuint",
}  # fmt: skip


class Method(Record):
    """A method with code: its row, and of an instantiation the types for its parameters.

    ``name`` is without parameters, ``symbol`` with them. ``function`` is the piece of code.
    """

    row: int
    owner: int
    name: str
    symbol: str
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
    opened = name.find("(")
    if opened >= 0:
        inside = name[opened + 1 :].rpartition(")")[0]
        parameters = tuple(split_outside(inside, ",")) if inside.strip() else ()
        name = name[:opened]
    name = name.replace("::", ".").replace("+", ".")
    special = next((one for one in SPECIAL if name.endswith("." + one)), "")
    parts = split_outside(name.removesuffix("." + special) if special else name, ".")
    if special:
        parts.append(special)
    return Written(tuple(parts[:-1]), parts[-1], parameters)


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

    __slots__ = ("_assembly",)

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def types(self, parts: Sequence[str]) -> list[int]:
        """Rows of the types that a written name, or the end of a whole one, can mean."""
        if not parts:
            return []
        plain = [part.partition("<")[0].partition("`")[0] for part in parts]
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
        plain = asked.method.partition("<")[0]
        found = []
        if not asked.types:
            offsets = self._assembly.metadata.names_at(plain)
            rows = self._assembly.metadata.rows("MethodDef")
            return [number for number, row in enumerate(rows, 1) if row[3] in offsets]
        for row in self.types(asked.types):
            for method in self._assembly.methods(row):
                if self._assembly.method_name(method) == plain:
                    found.append(method)
        return found

    def named(self, name: str) -> list[Method]:
        """The methods with code that a written name can mean."""
        asked = written(name)
        found: list[Method] = []
        generic = set()
        for row in self.called(name):
            if self._is_generic(row):
                generic.add(row)
            else:
                found += self._plain(row)
        if generic:
            found += [one for one in self.instantiated() if one.row in generic]
            found = [one for one in found if _arguments_fit(one, asked)]
        if asked.parameters is not None:
            return [one for one in found if _parameters_fit(one.symbol, asked.parameters)]
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
        for owner in range(1, self._assembly.metadata.count("TypeDef") + 1):
            for row in self._assembly.methods(owner):
                index = native.entry(row)
                if index is not None:
                    yield self._made(row, owner, index, (), ())
        yield from self.instantiated()

    def instantiated(self) -> Iterator[Method]:
        """All instantiations of generic methods; of each the code, not stubs that lead to it."""
        for one in generic_code(self._assembly):
            of_type: tuple[Signature, ...] = ()
            if isinstance(one.owner, Generic):
                if not isinstance(one.owner.of, Defined) or one.owner.of.token.table != "TypeDef":
                    continue
                of_type = one.owner.arguments
            if one.unboxing or not 0 < one.method <= self._assembly.metadata.count("MethodDef"):
                continue
            owner = self._assembly.owner(one.method)
            yield self._made(one.method, owner, one.function, of_type, one.arguments)

    def _made(
        self,
        row: int,
        owner: int,
        function: int,
        of_type: tuple[Signature, ...],
        of_method: tuple[Signature, ...],
    ) -> Method:
        assembly = self._assembly
        types = [open_spelled(assembly, one, (), ()) for one in of_type]
        methods = [open_spelled(assembly, one, (), ()) for one in of_method]
        short = assembly.method_name(row)
        if methods:
            short += f"<{', '.join(methods)}>"
        holder = class_spelled(assembly.type_name(owner), types)
        name = f"{KEYWORD_CLASSES.get(holder, holder)}.{short}"
        signature = assembly.method_signature(row)
        inside = [open_spelled(assembly, one, types, methods) for one in signature.parameters]
        return Method(
            row, owner, name, f"{name}({', '.join(inside)})", function, of_type, of_method
        )


KEYWORD_CLASSES = {"string": "System.String", "object": "System.Object"}


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


def _parameters_fit(symbol: str, wanted: tuple[str, ...]) -> bool:
    # The bracket of the parameters: names of types before it have none.
    inside = symbol[symbol.index("(") + 1 : -1]
    own = split_outside(inside, ",") if inside else []
    return len(own) == len(wanted) and all(
        _canonical(mine).rstrip("&") == _canonical(theirs).rstrip("&")
        for mine, theirs in zip(own, wanted, strict=True)
    )


def _arguments_fit(method: Method, asked: Written) -> bool:
    # Where type arguments are written, they are those of the instantiation.
    name = method.symbol.partition("(")[0]
    mine = split_outside(name, ".")
    theirs = [*asked.types, asked.method]
    for own, wanted in zip(reversed(mine), reversed(theirs), strict=False):
        if "<" in wanted and _canonical(own) != _canonical(wanted):
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
