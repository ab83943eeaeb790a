"""An assembly: its image and metadata, and the assemblies that it refers to."""

from __future__ import annotations

import os
from contextlib import suppress

from fetchc.debuginfo.byte_reader import decode_number, read_compressed
from fetchc.debuginfo.dotnet.metadata_signatures import SignatureReader
from fetchc.debuginfo.dotnet.metadata_tables import Token, metadata_of
from fetchc.debuginfo.dotnet.portable_executable import NotSupported, Pe, map_file
from fetchc.debuginfo.dotnet.ready_to_run import ReadyToRun, native_header
from fetchc.debuginfo.safe_open import exists, is_regular, listed, read_regular, resolved
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.metadata_signatures import MethodSignature, Signature
    from fetchc.debuginfo.dotnet.portable_executable import Bundle
    from fetchc.debuginfo.dotnet.ready_to_run import NativeCode

__all__ = [
    "CORE_LIBRARIES",
    "PARAMETER",
    "Assembly",
    "MissingAssembly",
    "Process",
    "References",
    "folders_of",
    "version_of",
]

MOST_NESTED = 64
HAS_CONSTANT = 0x40 | 0x8000  # FieldAttributes.Literal, HasDefault
FIELD, TYPE_DEF, PARAMETER = 1, 3, 4  # tags of HasCustomAttribute
TUPLE_NAMES = "System.Runtime.CompilerServices.TupleElementNamesAttribute"
NULL = b"\xff"  # no text, in the value of an attribute
MOST_NAMES = 256
INDEX_AFTER = 8  # questions for a type by name; an index costs as much as 20 of them
# How ManagedNativeHeader begins. Source: dotnet/coreclr 2.1, src/inc/corcompile.h (NGEN images).
KINDS = {b"RTR\0": "ReadyToRun", b"NGE\0": "fragile"}


class MissingAssembly(DebugInfoError):
    """An assembly that another one refers to is in no folder (FC0907)."""


class Assembly:
    """An image as its metadata describes it; ``native`` is None where it has no ReadyToRun code.

    ``kind`` is of its code: ReadyToRun, fragile (images of .NET Core 2 that fit one build of the
    runtime), or IL. Raises DebugInfoError FC0901, FC0902, FC0904.
    """

    __slots__ = (
        "_asked", "_enclosing", "_names", "_rows", "_short_names", "identity", "image", "kind",
        "metadata", "name", "native", "path", "version",
    )  # fmt: skip

    def __init__(self, path: str, image: Pe | None = None) -> None:
        self.path = path
        self.identity = ""  # of its file; empty inside of another one
        if image is None:
            data, self.identity = map_file(path)
            image = Pe(path, data, identity=self.identity)
        self.image = image
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
        """Rows of the types whose own name begins with ``short`` and continues with ``then``."""
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
        return self.metadata.last_below("TypeDef", 5, method)

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
        for _ in range(min(decode_number(value[2:6], True), MOST_NAMES)):
            length = 0
            if value[at : at + 1] == NULL:
                at += 1
            else:
                length, at = read_compressed(value, at)
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


# ------------------------------------------------------------------------------
# The assemblies that one refers to, found by name in folders, and types followed across them.

# Where the types live that signatures have codes of their own for: CoreCLR's, Mono's.
CORE_LIBRARIES = ("System.Private.CoreLib", "mscorlib")
MOST_FORWARDS = 16
MOST_FILES = 4096  # of a folder that is gone through
ENDINGS = (".dll", ".exe")


class References:
    """Assemblies by name: those of ``bundle`` and ``folders``, in their order, opened when
    asked for.
    """

    __slots__ = ("_bundle", "_loaded", "_mono", "_resolved", "folders", "path")

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
        self._loaded: dict[str, Assembly] = {first.name: first}
        self._resolved: dict[tuple[Assembly, int], tuple[Assembly, int]] = {}

    def assembly(self, name: str) -> Assembly:
        """The assembly of that name; raises DebugInfoError FC0907 where no folder has it."""
        found = self._find(name)
        if found is None:
            listed = ", ".join(self.folders)
            raise MissingAssembly(
                "FC0907",
                self.path,
                f"it needs the assembly `{name}`, which is not in: {listed}",
                help=f"name the folder of the runtime that has `{name}.dll`: `--reference DIR`",
            )
        return found

    def _find(self, name: str) -> Assembly | None:
        found = self._loaded.get(name)
        if found is None:
            entry = None if self._bundle is None else self._bundle.assembly(name)
            if self._bundle is not None and entry is not None:
                found = self._loaded[name] = Assembly(self.path, self._bundle.image(entry))
                return found
            for folder in self.folders:
                for ending in ENDINGS:
                    path = os.path.join(folder, name + ending)
                    # The name comes out of the file: it must not lead out of the folder.
                    if os.sep not in name and is_regular(path):
                        found = self._loaded[name] = Assembly(path)
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
        """The definition of a TypeDef or TypeRef token."""
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


# ------------------------------------------------------------------------------
# Which runtime an image is for, and the folders that hold the assemblies it refers to.

# Where packages install .NET, beside DOTNET_ROOT. Source: dotnet/designs, install-locations.md.
ROOTS = ("/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet")
MONO = "/usr/lib/mono/4.5"  # of Debian's packages, and of mono-project.com's
INSTALL_LOCATION = "/etc/dotnet/install_location"
# Versions of the ReadyToRun format, of core libraries whose own version is 4.0.0.0.
OLD_FORMATS = {(3, 1): (3, 1), (3, 0): (3, 0)}
CORE_FILE, MONO_CORE_FILE = "System.Private.CoreLib.dll", "mscorlib.dll"
CONFIG = ".runtimeconfig.json"
LARGEST_CONFIG = 1 << 20
LARGEST_MAPS = 1 << 26
MOST_VERSIONS = 4096  # of a framework, installed side by side


def version_of(core: Assembly) -> tuple[str, tuple[int, int]]:
    """The runtime that a core library is part of: ``coreclr`` or ``mono``, and its version.

    Raises DebugInfoError FC0905 where the core library does not say it.
    """
    if core.name == "mscorlib":
        return "mono", (6, 8)
    major = core.version[0]
    if major >= 5:
        return "coreclr", (major, core.version[1])
    if core.kind == "fragile":
        return "coreclr", (2, 1)
    native = core.native
    found = OLD_FORMATS.get(native.version) if isinstance(native, ReadyToRun) else None
    if found is None:
        what = "the core library does not say which version of .NET it belongs to"
        raise NotSupported("FC0905", core.path, what)
    return "coreclr", found


class Process(Record):
    """The process that runs a program: its folder (``/proc/42``), and its root directory as seen
    from here, empty where it is the own one.
    """

    folder: str
    root: str = ""


def folders_of(
    path: str, named: tuple[str, ...] = (), mono: bool = False, process: Process | None = None
) -> tuple[str, ...]:
    """Folders to look for assemblies in: those ``named``, the image's own, its framework's.

    The framework is what the ``process`` has mapped. What is not mapped, and all where there is no
    process: the one that the runtimeconfig.json beside the image names, or Mono's. It is installed
    in the dotnet root that the image itself is in, or where the process, or this one, finds it.
    """
    beside = os.path.dirname(path) or "."
    found = [*named, beside]
    if not mono and exists(os.path.join(beside, CORE_FILE)):
        return tuple(dict.fromkeys(found))  # a part of the framework, or a program with its own
    if process is not None:
        found += _mapped(process, MONO_CORE_FILE if mono else CORE_FILE)
    root = "" if process is None else process.root
    if mono:
        return tuple(dict.fromkeys([*found, resolved(root, MONO)]))
    home = _dotnet_root(beside)
    roots = [home] if home else []
    roots += [resolved(root, one) for one in _roots(process)]
    sdk = _sdk(beside, home)
    if sdk:
        found.append(sdk)
    for name, version in _frameworks(path, beside, sdk):
        for one in roots:
            folder = _newest(os.path.join(one, "shared", name), version)
            if folder:
                found.append(folder)
                break
    return tuple(dict.fromkeys(found))


def _mapped(process: Process, core: str) -> list[str]:
    # The folders of the assemblies that a process has mapped, that of its core library first.
    # Source: proc(5), /proc/pid/maps: the path is the last of six words.
    text = os.fsdecode(_of_process(process, "maps"))
    lines = [line.split(None, 5) for line in text.split("\n")]
    paths = {words[5]: None for words in lines if len(words) == 6 and words[5].endswith(".dll")}
    folders = []
    for path in sorted(paths, key=lambda path: os.path.basename(path) != core):
        of_here = path.startswith(process.root + "/")  # as of a chroot
        seen = path if of_here else resolved(process.root, path)
        if is_regular(seen):
            folders.append(os.path.dirname(seen))
    return folders


def _dotnet_root(beside: str) -> str:
    # The dotnet root that a folder is in: an SDK's, or that of a framework beside others.
    folder = os.path.abspath(beside)
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        if exists(os.path.join(folder, "shared", "Microsoft.NETCore.App")):
            return folder
    return ""


def _roots(process: Process | None) -> list[str]:
    # In the order in which a host looks: what DOTNET_ROOT says, what is registered, packages' own.
    stated, root = os.environ.get("DOTNET_ROOT"), ""
    if process is not None:
        stated, root = _environment(process).get("DOTNET_ROOT"), process.root
    found = [stated] if stated else []
    with suppress(OSError):  # few have it
        text = read_regular(resolved(root, INSTALL_LOCATION), 4096)
        found.append(os.fsdecode(text.split(b"\n")[0].strip()))
    return [*found, *ROOTS]


def _environment(process: Process) -> dict[str, str]:
    # As it was when the process started.
    pairs = [one.partition("=") for one in os.fsdecode(_of_process(process, "environ")).split("\0")]
    return {name: value for name, _, value in pairs}


def _of_process(process: Process, file: str) -> bytes:
    # Nothing of a process that has ended meanwhile.
    try:
        return read_regular(f"{process.folder}/{file}", LARGEST_MAPS)
    except OSError:
        return b""


def _sdk(beside: str, home: str) -> str:
    # The folder of the SDK that a folder is in.
    inside = os.path.relpath(beside, home).split(os.sep) if home else []
    return os.path.join(home, *inside[:2]) if inside[:1] == ["sdk"] and inside[1:] else ""


def _frameworks(path: str, beside: str, sdk: str) -> list[tuple[str, str]]:
    # Of app.dll in app.runtimeconfig.json; a library's is that of the one program beside it; what
    # is in an SDK runs on what the SDK's own program does.
    import json

    own = f"{os.path.splitext(path)[0]}{CONFIG}"
    if not exists(own) and sdk:
        own = os.path.join(sdk, f"dotnet{CONFIG}")
    if not exists(own):
        try:
            names = listed(beside, 2, CONFIG)
        except OSError:
            return []
        if len(names) != 1:
            return []
        own = os.path.join(beside, names[0])
    try:
        text = read_regular(own, LARGEST_CONFIG).decode("utf-8-sig")
        options = json.loads(text)["runtimeOptions"]
        if "includedFrameworks" in options:
            return []  # the program brings its own, which is beside it
        named = options.get("frameworks") or [options["framework"]]
        return [(str(one["name"]), str(one["version"])) for one in named]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DebugInfoError("FC0904", own, "it names no framework and version") from None


def _newest(folder: str, version: str) -> str:
    # The newest patch of the same release, as the host takes it.
    try:
        names = listed(folder, MOST_VERSIONS)
    except OSError:
        return ""
    release = version.split(".")[:2]
    fitting = [name for name in names if name.split(".")[:2] == release and _patch(name) >= 0]
    return os.path.join(folder, max(fitting, key=_patch)) if fitting else ""


def _patch(version: str) -> int:
    digits = version.split(".")[2].partition("-")[0] if version.count(".") >= 2 else ""
    return int(digits) if digits.isdecimal() and len(digits) < 6 else -1
