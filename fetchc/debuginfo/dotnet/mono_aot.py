"""Code that Mono compiled ahead of time: an ELF file beside the assembly, ``app.exe.so``.

Its symbols are the methods' names as Mono writes them, with ``_`` for what a symbol cannot have.
Source: mono/mono, mono/mini/aot-compiler.c (get_debug_sym), mono/metadata/debug-helpers.c
(mono_method_full_name, mono_type_get_desc).
"""

from __future__ import annotations

from collections import Counter

from fetchc.debuginfo.dotnet.metadata_signatures import (
    Array,
    Defined,
    Generic,
    Parameter,
    Pointer,
    Primitive,
)
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.debuginfo.environment import Environment

    Arguments = tuple[Signature, ...]

__all__ = ["CANON", "CodeByAddress", "MonoCode"]

CANON = Primitive("__Canon")  # all classes, which share code

# ------------------------------------------------------------------------------
# Native code that is outside of an assembly's own tables: a piece of it goes by its address.


class CodeByAddress:
    """A base of what knows where a method begins (``entry``) and where its code ends (``end``)."""

    __slots__ = ("_assembly",)

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    if TYPE_CHECKING:

        def entry(self, method: int) -> int | None:
            """Where a method begins, by its row."""

    def begin(self, address: int) -> Address:
        """The address itself."""
        return Address(address)

    def entries(self) -> Iterator[tuple[int, int]]:
        """The rows of all methods with code in the image, each with its address."""
        for row in range(1, self._assembly.metadata.count("MethodDef") + 1):
            address = self.entry(row)
            if address is not None:
                yield row, address

    def instances(self) -> list[int]:
        """None: there is no table of them."""
        return []

    def instantiations(self, method: int) -> Iterator[tuple[Arguments, Arguments, int]]:
        """Code of a generic method, by its row: the type arguments of its type and its own, and
        where the code begins. Only those of which that is known for certain.
        """
        return iter(())

    def why_unknown(self, method: int) -> str:
        """Why it does not know of code of a method, by its row; empty where metadata says it."""
        return ""


# What Mono calls types of its own code otherwise than C# does.
WORDS = {
    "ushort": "uint16", "short": "int16", "float": "single", "nint": "intptr", "nuint": "uintptr",
}  # fmt: skip
MARKS = {"pointer": "*", "byref": "&", "array": "[]"}
# After a type parameter's name, in code that all classes share. Source: mono/mini/
# mini-generic-sharing.c (get_shared_gparam_name).
SHARED = "_REF"


class MonoCode(CodeByAddress):
    """The code of an assembly's methods; a method's piece of code goes by its address."""

    __slots__ = ("_ends", "_symbols", "elf")

    def __init__(self, assembly: Assembly, path: str, environment: Environment) -> None:
        super().__init__(assembly)
        self._symbols: Counter[str] | None = None
        self._ends: dict[int, Address] = {}
        self.elf = DwarfProgram(path, environment=environment)

    def entry(self, method: int) -> int | None:
        """Where a method begins, by its row; None where it is not there, or not for certain."""
        symbol = self._symbol(method)
        if symbol is None:
            return None
        # Methods with the same symbol name are numbered, in an order that the image does not give.
        if self._symbol_counts().get(symbol) != 1:
            return None
        found = [one for one in self.elf.functions_named(symbol) if one.symbol == symbol]
        if len(found) != 1 or not found[0].size:
            return None
        address = int(found[0].address)
        self._ends[address] = Address(address + found[0].size)
        return address

    def why_unknown(self, method: int) -> str:
        """That another method, which is not generic either, has the same symbol name."""
        symbol = self._symbol(method)
        if symbol is None or self._parameters(method) or self._symbol_counts()[symbol] == 1:
            return ""
        return "Mono's symbols do not distinguish it from another method"

    def _symbol_counts(self) -> Counter[str]:
        # How many methods have each symbol.
        if self._symbols is None:
            rows = range(1, self._assembly.metadata.count("MethodDef") + 1)
            self._symbols = Counter([one for row in rows if (one := self._symbol(row))])
        return self._symbols

    def entries(self) -> Iterator[tuple[int, int]]:
        """The rows of methods that are not generic, each with its address."""
        return (one for one in super().entries() if not self._parameters(one[0]))

    def instantiations(self, method: int) -> Iterator[tuple[Arguments, Arguments, int]]:
        """The code that all classes share: the symbols say of no other one what it is."""
        names = self._parameters(method)
        begin = None if names is None else self.entry(method)
        if names is not None and begin is not None:
            of_type, of_method = [(CANON,) * len(each) for each in names]
            yield of_type, of_method, begin

    def _parameters(self, method: int) -> tuple[list[str], list[str]] | None:
        # Names of the type parameters of a generic method's type, and its own.
        names = self._assembly.type_parameters_of
        of_type = names("TypeDef", self._assembly.owner(method))
        of_method = names("MethodDef", method)
        return (of_type, of_method) if of_type or of_method else None

    def end(self, address: int) -> Address:
        """The end address of the code of the method for which ``entry`` returned ``address``."""
        return self._ends[address]

    def _symbol(self, method: int) -> str | None:
        assembly = self._assembly
        signature = assembly.method_signature(method)
        of_type, of_method = self._parameters(method) or ([], [])
        words = [self._word(one, of_type, of_method) for one in signature.parameters]
        if None in words:
            return None
        owner = assembly.type_name(assembly.owner(method)).replace("+", "/") + _shared(of_type)
        name = assembly.method_name(method) + _shared(of_method)
        return _sanitized(f"{owner}:{name} ({','.join(map(str, words))})")

    def _word(self, signature: Signature, *given: list[str]) -> str | None:
        # ``given``: names of the type parameters of the type, and of the method.
        match signature:
            case Parameter(index, of_method):
                names = given[of_method]
                return names[index] + SHARED if index < len(names) else None
            case Primitive(name):
                return WORDS.get(name, name)
            case Defined(token):
                return self._named(token.table, token.number)
            case Pointer(kind, target):
                inner = self._word(target, *given)
                return None if inner is None else inner + MARKS[kind]
            case Array(element, rank):
                inner = self._word(element, *given)
                return None if inner is None else f"{inner}[{',' * (rank - 1)}]"
            case Generic(Defined(token), arguments):
                generic = self._named(token.table, token.number)
                words = [self._word(one, *given) for one in arguments]
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


def _shared(names: list[str]) -> str:
    return f"<{', '.join(name + SHARED for name in names)}>" if names else ""


def _sanitized(name: str) -> str:
    mangled, at = "_" if name[:1].isdigit() else "", 0
    while at < len(name):
        letter = name[at]
        if letter.isascii() and letter.isalnum():
            mangled += letter
        elif name.startswith(" ()", at):
            at += 2
        elif name.startswith(", ", at):
            mangled += "_"
            at += 1
        elif letter not in "()>":
            mangled += "_" * len(letter.encode("utf-8", "surrogateescape"))
        at += 1
    return mangled
