"""The assemblies that one refers to, found by name in folders, and types followed across them."""

from __future__ import annotations

import os

from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
from fetchc.debuginfo.safe_open import is_regular, listed
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.image.bundle import Bundle
    from fetchc.debuginfo.dotnet.metadata.tables import Token

__all__ = ["CORE_LIBRARIES", "References"]

# Where the types live that signatures have codes of their own for: CoreCLR's, Mono's.
CORE_LIBRARIES = ("System.Private.CoreLib", "mscorlib")
MOST_FORWARDS = 16
MOST_FILES = 4096  # of a folder that is gone through
ENDINGS = (".dll", ".exe")
MOST_NESTED = 64


class References:
    """Assemblies by name: those of ``bundle`` and ``folders``, in their order, opened when
    asked for.
    """

    __slots__ = ("_bundle", "_known", "_mono", "_resolved", "folders", "path")

    def __init__(
        self,
        first: Assembly,
        folders: tuple[str, ...],
        bundle: Bundle | None = None,
        mono: bool = False,
    ) -> None:
        self._mono = mono
        self.path = first.path
        self._bundle = bundle
        self.folders = folders
        self._known: dict[str, Assembly] = {first.name: first}
        self._resolved: dict[tuple[Assembly, int], tuple[Assembly, int]] = {}

    def assembly(self, name: str) -> Assembly:
        """The assembly of that name; raises DebugInfoError FC0907 where no folder has it."""
        found = self._find(name)
        if found is None:
            listed = ", ".join(self.folders)
            raise DebugInfoError(
                "FC0907",
                self.path,
                f"it needs the assembly `{name}`, which is in none of: {listed}",
                help=f"name the folder of the runtime that has `{name}.dll`: `--reference DIR`",
            )
        return found

    def _find(self, name: str) -> Assembly | None:
        found = self._known.get(name)
        if found is None:
            entry = None if self._bundle is None else self._bundle.assembly(name)
            if self._bundle is not None and entry is not None:
                found = self._known[name] = Assembly(self.path, self._bundle.image(entry))
                return found
            for folder in self.folders:
                for ending in ENDINGS:
                    path = os.path.join(folder, name + ending)
                    # The name comes out of the file: it must not lead out of the folder.
                    if os.sep not in name and is_regular(path):
                        found = self._known[name] = Assembly(path)
                        return found
        return found

    def referred(self, assembly: Assembly) -> Iterator[Assembly]:
        """The assemblies that one refers to, of those that are in one of the folders."""
        for row in range(1, assembly.metadata.count("AssemblyRef") + 1):
            found = self._find(assembly.reference(row))
            if found is not None:
                yield found

    def within(self, folders: tuple[str, ...]) -> Iterator[Assembly]:
        """All assemblies in folders, by their names; what is none is passed over."""
        for folder in folders:
            try:
                names = listed(folder, MOST_FILES)
            except OSError:
                continue
            for file in names:
                name, ending = os.path.splitext(file)
                try:
                    found = self._find(name) if ending in ENDINGS else None
                except (DebugInfoError, OSError):
                    continue  # a library of native code, or a broken one that nobody asked for
                if found is not None:
                    yield found

    def core(self) -> Assembly:
        """The library of the run time's own types."""
        return self.assembly(CORE_LIBRARIES[self._mono])

    def type_named(self, assembly: str, name: str) -> tuple[Assembly, int]:
        """The assembly that defines a type, and its row; forwards are followed.

        Raises DebugInfoError FC0904 where the type is in none of them.
        """
        for _ in range(MOST_FORWARDS):
            found = self.assembly(assembly)
            row = found.type_named(name)
            if row:
                return found, row
            assembly = found.forwarded(name)
            if not assembly:
                raise found.broken(f"it has no type `{name}`, which others refer to")
        raise DebugInfoError("FC0904", self.path, f"`{name}` is forwarded without an end")

    def resolve(self, assembly: Assembly, token: Token) -> tuple[Assembly, int]:
        """The definition behind a TypeDef or TypeRef token."""
        if token.table == "TypeDef":
            return assembly, token.number
        if token.table != "TypeRef":
            raise assembly.broken(f"a {token.table} where a class is expected")
        key = (assembly, token.number)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolved[key] = self._reference(assembly, token.number)
        return found

    def _reference(self, assembly: Assembly, row: int) -> tuple[Assembly, int]:
        name = ""
        metadata = assembly.metadata
        for _ in range(MOST_NESTED):
            scope, short, namespace = metadata.row("TypeRef", row)
            own = metadata.text(short)
            if namespace:
                own = f"{metadata.text(namespace)}.{own}"
            name = f"{own}+{name}" if name else own
            where = metadata.coded("ResolutionScope", scope)
            if where.table == "TypeRef":
                row = where.number
            elif where.table == "AssemblyRef":
                return self.type_named(assembly.reference(where.number), name)
            elif where.table == "Module":
                return self.type_named(assembly.name, name)
            else:
                raise assembly.broken(f"the type `{name}` is in a module of its own")
        raise assembly.broken(f"types nested more than {MOST_NESTED} deep")
