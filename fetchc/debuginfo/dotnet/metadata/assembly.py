"""One assembly: an image with its metadata, and what is asked of both together."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.image.pe import Pe, map_file
from fetchc.debuginfo.dotnet.image.ready_to_run import ReadyToRun, native_header
from fetchc.debuginfo.dotnet.metadata.signatures import SignatureReader
from fetchc.debuginfo.dotnet.metadata.tables import Token, compressed, metadata_of
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.image.native_code import NativeCode
    from fetchc.debuginfo.dotnet.metadata.signatures import MethodSignature, Signature

__all__ = ["PARAMETER", "Assembly"]

MOST_NESTED = 64
HAS_CONSTANT = 0x40 | 0x8000  # FieldAttributes.Literal, HasDefault
FIELD, TYPE_DEF, PARAMETER = 1, 3, 4  # tags of HasCustomAttribute
TUPLE_NAMES = "System.Runtime.CompilerServices.TupleElementNamesAttribute"
NULL = b"\xff"  # no text, in the value of an attribute
MOST_NAMES = 256
INDEX_AFTER = 8  # questions for a type by name; an index costs as much as 20 of them
# How ManagedNativeHeader begins. Source: dotnet/coreclr 2.1, src/inc/corcompile.h (NGEN images).
KINDS = {b"RTR\0": "ReadyToRun", b"NGE\0": "fragile"}


class Assembly:
    """An image as its metadata describes it; ``native`` is None where it has no ReadyToRun code.

    ``kind`` is of its code: ReadyToRun, fragile (images of .NET Core 2 that fit one build of the
    runtime), or IL. Raises DebugInfoError FC0901, FC0902, FC0904.
    """

    __slots__ = (
        "_asked", "_enclosing", "_names", "_rows", "_short_names", "image", "kind", "metadata",
        "name", "native", "path", "version",
    )  # fmt: skip

    def __init__(self, path: str, image: Pe | None = None) -> None:
        self.path = path
        self.image = Pe(path, map_file(path)) if image is None else image
        self.metadata = metadata_of(self.image)
        found = native_header(self.image)
        self.kind = "IL" if found is None else KINDS.get(found[0], "unknown")
        self.native: NativeCode | None = None
        if self.kind == "ReadyToRun":
            self.native = ReadyToRun(self.image, self.metadata.count("MethodDef"))
        self.name = ""
        self.version: tuple[int, ...] = (0, 0, 0, 0)
        if self.metadata.count("Assembly"):
            row = self.metadata.row("Assembly", 1)
            self.name, self.version = self.metadata.text(row[7]), row[1:5]
        self._names: dict[int, str] = {}
        self._asked = 0
        self._short_names: list[int] | None = None  # where each type's own name is
        self._rows: dict[str, int] = {}  # by whole names: those asked for, in the end all
        self._enclosing: dict[int, int] | None = None

    def module_id(self) -> str:
        """The number of this very compilation (MVID), as people write it: ``01234567-89ab-...``."""
        raw = self.metadata.guid(self.metadata.row("Module", 1)[2])
        first = "-".join([raw[3::-1].hex(), raw[5:3:-1].hex(), raw[7:5:-1].hex()])
        return f"{first}-{raw[8:10].hex()}-{raw[10:].hex()}"

    def broken(self, what: str) -> DebugInfoError:
        """A located FC0904 for ``raise``."""
        return DebugInfoError("FC0904", self.path, what, "metadata")

    # --- types

    def enclosing(self, row: int) -> int:
        """The type that a nested one is declared in; 0 of others."""
        if self._enclosing is None:
            rows = self.metadata.rows("NestedClass")
            self._enclosing = {inner: outer for inner, outer in rows}  # noqa: C416 - of two columns
        return self._enclosing.get(row, 0)

    def type_name(self, row: int) -> str:
        """``System.Collections.Generic.List`1+Enumerator``."""
        found = self._names.get(row)
        if found is None:
            found = self._names[row] = self._type_name(row)
        return found

    def _type_name(self, row: int) -> str:
        parts: list[str] = []
        for _ in range(MOST_NESTED):
            columns = self.metadata.row("TypeDef", row)
            outer = self.enclosing(row)
            name = self.metadata.text(columns[1])
            if not outer:
                namespace = self.metadata.text(columns[2])
                return "+".join([f"{namespace}.{name}" if namespace else name, *parts])
            parts.insert(0, name)
            row = outer
        raise self.broken(f"types nested more than {MOST_NESTED} deep")

    def type_named(self, name: str) -> int:
        """The row of the type of that whole name (with ``+`` of nested ones); 0 if none."""
        found = self._rows.get(name)
        if found is not None or self._asked > INDEX_AFTER:
            return found or 0
        self._asked += 1
        if self._asked > INDEX_AFTER:
            every = range(1, self.metadata.count("TypeDef") + 1)
            self._rows = {self.type_name(row): row for row in reversed(every)}
            return self._rows.get(name, 0)
        short = name.rpartition("+")[2] if "+" in name else name.rpartition(".")[2]
        rows = self.types_called(short)
        self._rows[name] = next((row for row in rows if self.type_name(row) == name), 0)
        return self._rows[name]

    def types_called(self, short: str, then: bytes = b"\0") -> list[int]:
        """Rows of the types whose own name begins with ``short`` and goes on with ``then``."""
        if self._short_names is None:
            self._short_names = [row[1] for row in self.metadata.rows("TypeDef")]
        offsets = self.metadata.names_at(short, then)
        return [row for row, offset in enumerate(self._short_names, 1) if offset in offsets]

    def forwarded(self, name: str) -> str:
        """The assembly that a type was moved to, by its whole name; empty if none was."""
        outermost = name.partition("+")[0]
        namespace, _, short = outermost.rpartition(".")
        offsets = self.metadata.names_at(short)
        for row in self.metadata.rows("ExportedType"):
            if row[2] in offsets and self.metadata.text(row[3]) == namespace:
                token = self.metadata.coded("Implementation", row[4])
                if token.table == "AssemblyRef":
                    return self.reference(token.number)
        return ""

    def reference(self, row: int) -> str:
        """The name of a referenced assembly."""
        return self.metadata.text(self.metadata.row("AssemblyRef", row)[6])

    def type_parameters(self, row: int) -> int:
        """How many type parameters a type has; those of its enclosing types are counted in."""
        _, mark, digits = self.metadata.text(self.metadata.row("TypeDef", row)[1]).rpartition("`")
        own = int(digits) if mark and digits.isdecimal() and len(digits) < 4 else 0
        outer = self.enclosing(row)
        return own + (self.type_parameters(outer) if outer else 0)

    def class_layout(self, row: int) -> tuple[int, int]:
        """The packing and size that a type states; 0 where it does not."""
        rows = self.metadata.rows_of("ClassLayout", 2, row)
        return next(((pack, size) for pack, size, _ in rows), (0, 0))

    # --- fields

    def fields(self, row: int) -> list[int]:
        """Rows of the instance fields of a type, in the order of their declaration."""
        span = self.metadata.span("TypeDef", row, 4, "Field")
        return [each for each in span if not self.metadata.row("Field", each)[0] & 0x10]

    def field_name(self, row: int) -> str:
        """The name of a field."""
        return self.metadata.text(self.metadata.row("Field", row)[1])

    def field_type(self, row: int) -> Signature:
        """The type of a field."""
        return SignatureReader(
            self.metadata, self.metadata.blob(self.metadata.row("Field", row)[2])
        ).field()

    def field_offset(self, row: int) -> int:
        """The offset that a field of explicit layout states."""
        for offset, _ in self.metadata.rows_of("FieldLayout", 1, row):
            return offset
        raise self.broken(f"field {row} of an explicit layout has no offset")

    def constants(self, row: int) -> list[tuple[str, bytes]]:
        """The constants that a type declares, each with its value as it is stored."""
        found = []
        for field in self.metadata.span("TypeDef", row, 4, "Field"):
            if self.metadata.row("Field", field)[0] & HAS_CONSTANT:
                for _, _, value in self.metadata.rows_of("Constant", 1, field << 2):
                    found.append((self.field_name(field), self.metadata.blob(value)))
        return found

    # --- methods

    def methods(self, row: int) -> range:
        """Rows of the methods of a type."""
        return self.metadata.span("TypeDef", row, 5, "MethodDef")

    def method_name(self, row: int) -> str:
        """The name of a method."""
        return self.metadata.text(self.metadata.row("MethodDef", row)[3])

    def method_signature(self, row: int) -> MethodSignature:
        """The signature of a method."""
        blob = self.metadata.blob(self.metadata.row("MethodDef", row)[4])
        return SignatureReader(self.metadata, blob).method()

    def parameter_names(self, row: int) -> dict[int, str]:
        """Names of a method's parameters by their position, from 1; some may be missing."""
        span = self.metadata.span("MethodDef", row, 5, "Param")
        rows = [self.metadata.row("Param", each) for each in span]
        return {sequence: self.metadata.text(name) for _, sequence, name in rows}

    def parameter_row(self, method: int, position: int) -> int:
        """The row of a method's parameter, from 1; 0 where it has none."""
        for each in self.metadata.span("MethodDef", method, 5, "Param"):
            if self.metadata.row("Param", each)[1] == position:
                return each
        return 0

    def owner(self, method: int) -> int:
        """The type that declares a method."""
        low, high = 1, self.metadata.count("TypeDef")
        while low < high:
            middle = (low + high + 1) // 2
            if self.metadata.row("TypeDef", middle)[5] <= method:
                low = middle
            else:
                high = middle - 1
        return low

    def type_parameters_of(self, table: str, row: int) -> list[str]:
        """Names of the type parameters of a TypeDef or a MethodDef, in order."""
        owner = row << 1 | (table == "MethodDef")
        found = sorted((one[0], one[3]) for one in self.metadata.rows_of("GenericParam", 2, owner))
        return [self.metadata.text(name) for _, name in found]

    # --- attributes

    def tuple_names(self, row: int, tag: int = FIELD) -> tuple[str, ...]:
        """What the source calls the elements of the tuple that a field (or a parameter, by its
        tag) holds, outer ones first; empty where it says nothing, as are names of single ones.
        """
        value = self.attribute(row, TUPLE_NAMES, tag)
        if value is None:
            return ()
        names, at = [], 6
        for _ in range(min(int.from_bytes(value[2:6], "little"), MOST_NAMES)):
            length = 0
            if value[at : at + 1] == NULL:
                at += 1
            else:
                length, at = compressed(value, at)
            names.append(value[at : at + length].decode("utf-8", "surrogateescape"))
            at += length
        return tuple(names)

    def attribute(self, row: int, name: str, tag: int = TYPE_DEF) -> bytes | None:
        """The value of the first attribute of that whole name on a type, or on what else ``tag``
        says; None if none.
        """
        for _, kind, value in self.metadata.rows_of("CustomAttribute", 0, row << 5 | tag):
            constructor = self.metadata.coded("CustomAttributeType", kind)
            if self._constructed(constructor) == name:
                return self.metadata.blob(value)
        return None

    def _constructed(self, constructor: Token) -> str:
        if constructor.table == "MethodDef":
            return self.type_name(self.owner(constructor.number))
        parent = self.metadata.row("MemberRef", constructor.number)[0]
        token = self.metadata.coded("MemberRefParent", parent)
        if token.table != "TypeRef":
            return ""
        _, name, namespace = self.metadata.row("TypeRef", token.number)
        return f"{self.metadata.text(namespace)}.{self.metadata.text(name)}"
