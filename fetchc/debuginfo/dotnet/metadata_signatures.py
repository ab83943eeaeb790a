"""ECMA-335 signatures: the types of fields and of methods' parameters.

Source: ECMA-335, partition II, section 23.2; the codes from 0x3d to 0x3f are of ReadyToRun images
(dotnet/runtime, readytorun-format.md).
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import read_compressed
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.metadata_tables import Metadata, Token

__all__ = [
    "PRIMITIVES",
    "SUFFIXES",
    "Array",
    "Defined",
    "Foreign",
    "Generic",
    "MethodSignature",
    "Parameter",
    "Pointer",
    "Primitive",
    "Signature",
    "SignatureReader",
    "class_spelled",
    "holder_spelled",
    "open_spelled",
    "token_name",
]

PRIMITIVES = {
    0x01: "void", 0x02: "bool", 0x03: "char", 0x04: "sbyte", 0x05: "byte", 0x06: "short",
    0x07: "ushort", 0x08: "int", 0x09: "uint", 0x0A: "long", 0x0B: "ulong", 0x0C: "float",
    0x0D: "double", 0x0E: "string", 0x16: "typedref", 0x18: "nint", 0x19: "nuint",
    0x1C: "object", 0x3E: "__Canon",
}  # fmt: skip
POINTERS = {0x0F: "pointer", 0x10: "byref", 0x1D: "array"}
TRANSPARENT = (0x3D, 0x45)  # a native value type, a pinned local
DEEPEST = 64


class Primitive(Record):
    """A type that has a code of its own, by its C# name."""

    name: str


OF_CODES = {code: Primitive(name) for code, name in PRIMITIVES.items()}


class Defined(Record):
    """A class or a structure (``value``) by its token."""

    token: Token
    value: bool


class Pointer(Record):
    """``kind``: pointer, byref, or array (of one dimension, from 0)."""

    kind: str
    target: Signature


class Array(Record):
    """An array of several dimensions, or one that does not begin at 0."""

    element: Signature
    rank: int


class Generic(Record):
    """An instantiation."""

    of: Defined | Foreign
    arguments: tuple[Signature, ...]


class Parameter(Record):
    """A type parameter: of the method, or of its type."""

    index: int
    of_method: bool


class Foreign(Record):
    """A type by the token of another module of the same image's list of references."""

    module: int
    inner: Signature


class MethodSignature(Record):
    """``receives`` says that there is a ``this``; ``generic`` counts type parameters."""

    receives: bool
    generic: int
    result: Signature
    parameters: tuple[Signature, ...]


class Function(Record):
    """A pointer to a method."""

    signature: MethodSignature


Signature = Primitive | Defined | Pointer | Array | Generic | Parameter | Foreign | Function


class SignatureReader:
    """Reads the bytes of one blob from ``at`` on; raises DebugInfoError FC0904."""

    __slots__ = ("_data", "_metadata", "at")

    def __init__(self, metadata: Metadata, data: bytes, at: int = 0) -> None:
        self._metadata = metadata
        self._data = data
        self.at = at

    def _broken(self, what: str) -> DebugInfoError:
        return DebugInfoError("FC0904", self._metadata.path, what, "signature", self.at)

    def number(self) -> int:
        """A compressed number."""
        value, self.at = read_compressed(self._data, self.at)
        if self.at > len(self._data):
            raise self._broken("a signature that breaks off")
        return value

    def byte(self) -> int:
        """One byte."""
        if self.at >= len(self._data):
            raise self._broken("a signature that breaks off")
        self.at += 1
        return self._data[self.at - 1]

    def type(self, depth: int = 0) -> Signature:
        """One type, its modifiers dropped."""
        if depth > DEEPEST:
            raise self._broken("a type nested too deeply")
        code = self.byte()
        while code in (0x1F, 0x20, *TRANSPARENT):  # modreq, modopt
            if code in (0x1F, 0x20):
                self.number()
            code = self.byte()
        if code in PRIMITIVES:
            return OF_CODES[code]
        if code in POINTERS:
            return Pointer(POINTERS[code], self.type(depth + 1))
        match code:
            case 0x11 | 0x12:
                token = self._metadata.coded("TypeDefOrRef", self.number())
                return Defined(token, code == 0x11)
            case 0x13 | 0x1E:
                return Parameter(self.number(), code == 0x1E)
            case 0x14:
                return self._array(depth)
            case 0x15:
                of = self.type(depth + 1)
                if not isinstance(of, Defined | Foreign):
                    raise self._broken("an instantiation of something that is no class")
                count = self.number()
                return Generic(of, tuple([self.type(depth + 1) for _ in range(self._fits(count))]))
            case 0x1B:
                return Function(self.method(depth + 1))
            case 0x3F:
                return Foreign(self.number(), self.type(depth + 1))
            case _:
                raise self._broken(f"the unknown type code {code:#x}")

    def _fits(self, count: int) -> int:
        if count > len(self._data) - self.at:
            raise self._broken(f"{count} types in {len(self._data) - self.at} bytes")
        return count

    def _array(self, depth: int) -> Array:
        element, rank = self.type(depth + 1), self.number()
        for _ in range(2):  # sizes, lower bounds
            for _ in range(self._fits(self.number())):
                self.number()
        return Array(element, rank)

    def field(self) -> Signature:
        """The type of a field."""
        if self.byte() & 0x0F != 6:
            raise self._broken("this is no field's signature")
        return self.type()

    def locals(self) -> tuple[Signature, ...]:
        """The types of a method's locals."""
        if self.byte() != 7:
            raise self._broken("this is no signature of locals")
        return tuple([self.type() for _ in range(self._fits(self.number()))])

    def method(self, depth: int = 0) -> MethodSignature:
        """The signature of a method."""
        flags = self.byte()
        generic = self.number() if flags & 0x10 else 0
        count = self.number()
        result = self.type(depth + 1)
        parameters = []
        for _ in range(self._fits(count)):
            if self._data[self.at : self.at + 1] == b"\x41":  # the sentinel of __arglist
                self.at += 1
            parameters.append(self.type(depth + 1))
        return MethodSignature(bool(flags & 0x20), generic, result, tuple(parameters))


# ------------------------------------------------------------------------------
# Types and methods as C# writes them.

SUFFIXES = {"pointer": "*", "byref": "&", "array": "[]"}
KEYWORDS = {"System.String": "string", "System.Object": "object"}


def class_spelled(name: str, arguments: Sequence[str]) -> str:
    """A class by its keyword in C#, where it has one, else as :func:`holder_spelled`."""
    return KEYWORDS.get(name) or holder_spelled(name, arguments)


def holder_spelled(name: str, arguments: Sequence[str]) -> str:
    """``System.Collections.Generic.List<int>.Enumerator`` of metadata's spelling.

    Arguments go to the types that take them; those that are left over are left out.
    """
    if not arguments and "`" not in name:
        return name.replace("+", ".")
    parts, given = [], list(arguments)
    for part in name.split("+"):
        plain, mark, digits = part.rpartition("`")
        count = int(digits) if mark and digits.isdecimal() and len(digits) < 4 else 0
        own, given = given[:count], given[count:]
        plain = plain if mark else part
        parts.append(f"{plain}<{', '.join(own)}>" if own else plain)
    return ".".join(parts)


def open_spelled(
    assembly: Assembly, signature: Signature, of_type: Sequence[str], of_method: Sequence[str]
) -> str:
    """A type of a signature, its parameters by their names; no other assembly is opened."""

    def inner(one: Signature) -> str:
        return open_spelled(assembly, one, of_type, of_method)

    match signature:
        case Primitive(name):
            return name
        case Defined(token):
            return class_spelled(token_name(assembly, token.table, token.number), ())
        case Generic(of, arguments):
            named = of.inner if isinstance(of, Foreign) else of
            name = ""
            if isinstance(named, Defined):
                name = token_name(assembly, named.token.table, named.token.number)
            return class_spelled(name, [inner(one) for one in arguments])
        case Parameter(index, in_method):
            type_arguments = of_method if in_method else of_type
            return type_arguments[index] if index < len(type_arguments) else f"!{index}"
        case Pointer(kind, target):
            return inner(target) + SUFFIXES[kind]
        case Array(element, rank):
            return f"{inner(element)}[{',' * (rank - 1)}]"
        case Function():
            return "delegate*"
        case Foreign(_, one):
            return inner(one)
        case _:
            assert_never(signature)


def token_name(assembly: Assembly, table: str, row: int) -> str:
    """The whole name of a type that is defined or referred to, as metadata has it."""
    metadata = assembly.metadata
    if table == "TypeDef":
        return assembly.type_name(row)
    if table != "TypeRef":
        raise assembly.broken(f"a {table} where a class is expected")
    parts = []
    for _ in range(64):
        scope, name, namespace = metadata.row("TypeRef", row)
        own = metadata.text(name)
        parts.append(f"{metadata.text(namespace)}.{own}" if namespace else own)
        where = metadata.coded("ResolutionScope", scope)
        if where.table != "TypeRef":
            return "+".join(reversed(parts))
        row = where.number
    raise assembly.broken("types nested more than 64 deep")
