"""Code that Mono compiled ahead of time: an ELF file beside the assembly, ``app.exe.so``.

Its symbols are the methods' names as Mono writes them, with ``_`` for what a symbol cannot have.
Source: mono/mono, mono/mini/aot-compiler.c (get_debug_sym), mono/metadata/debug-helpers.c
(mono_method_full_name, mono_type_get_desc).
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.signatures import Array, Defined, Generic, Pointer, Primitive
from fetchc.debuginfo.dotnet.methods.by_address import CodeByAddress
from fetchc.debuginfo.program import DwarfProgram
from fetchc.units import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature

__all__ = ["MonoCode"]

# What Mono calls types of its own code otherwise than C# does.
WORDS = {
    "ushort": "uint16", "short": "int16", "float": "single", "nint": "intptr", "nuint": "uintptr",
}  # fmt: skip
MARKS = {"pointer": "*", "byref": "&", "array": "[]"}


class MonoCode(CodeByAddress):
    """The code of an assembly's methods; a method's piece of code goes by its address."""

    __slots__ = ("_rows", "elf")

    def __init__(self, assembly: Assembly, path: str) -> None:
        super().__init__(assembly)
        self._rows: dict[str, list[int]] | None = None
        self.elf = DwarfProgram(path)

    def entry(self, method: int) -> int | None:
        """Where a method begins, by its row; None where it is not there, or not for certain."""
        symbol = self._symbol(method)
        if symbol is None:
            return None
        if self._rows is None:
            self._rows = {}
            for row in range(1, self._assembly.metadata.count("MethodDef") + 1):
                self._rows.setdefault(self._symbol(row) or "", []).append(row)
        # Methods whose names come out alike are numbered in an order that nothing tells.
        if len(self._rows[symbol]) > 1:
            return None
        found = [one for one in self.elf.functions_named(symbol) if one.symbol == symbol]
        return int(found[0].address) if len(found) == 1 and found[0].size else None

    def end(self, address: int) -> Address:
        """The address behind the code of a method."""
        found = self.elf.function_at(Address(address))
        return Address(address + (found.size or 0 if found is not None else 0))

    def _symbol(self, method: int) -> str | None:
        assembly = self._assembly
        signature = assembly.method_signature(method)
        words = [self._word(one) for one in signature.parameters]
        owner = assembly.type_name(assembly.owner(method)).replace("+", "/")
        if signature.generic or "`" in owner or None in words:
            return None
        whole = f"{owner}:{assembly.method_name(method)} ({','.join(map(str, words))})"
        return _sanitized(whole)

    def _word(self, signature: Signature) -> str | None:
        match signature:
            case Primitive(name):
                return WORDS.get(name, name)
            case Defined(token):
                return self._named(token.table, token.number)
            case Pointer(kind, target):
                inner = self._word(target)
                return None if inner is None else inner + MARKS[kind]
            case Array(element, rank):
                inner = self._word(element)
                return None if inner is None else f"{inner}[{',' * (rank - 1)}]"
            case Generic(Defined(token), arguments):
                generic = self._named(token.table, token.number)
                words = [self._word(one) for one in arguments]
                if generic is None or None in words:
                    return None
                return f"{generic}<{', '.join(map(str, words))}>"
            case _:
                return None

    def _named(self, table: str, row: int) -> str | None:
        assembly = self._assembly
        if table == "TypeDef":
            return assembly.type_name(row).replace("+", "/")
        _, name, namespace = assembly.metadata.row("TypeRef", row)
        short, space = assembly.metadata.text(name), assembly.metadata.text(namespace)
        return f"{space}.{short}" if space else None  # of a nested one the outer type is not here


def _sanitized(name: str) -> str:
    made, at = "_" if name[:1].isdigit() else "", 0
    while at < len(name):
        letter = name[at]
        if letter.isascii() and letter.isalnum():
            made += letter
        elif name.startswith(" ()", at):
            at += 2
        elif name.startswith(", ", at):
            made += "_"
            at += 1
        elif letter not in "()>":
            made += "_" * len(letter.encode())
        at += 1
    return made
