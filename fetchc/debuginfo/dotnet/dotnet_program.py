"""A precompiled image of .NET as a :class:`~fetchc.program.protocol.Program`.

Metadata has names and types, no places: parameters are where the calling convention puts them.
Addresses are relative to the image. A function's ``die`` encodes its method here.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.dotnet.assemblies import (
    PARAMETER,
    Assembly,
    References,
    folders_of,
    version_of,
)
from fetchc.debuginfo.dotnet.class_layout import must_fit, must_have_texts_at
from fetchc.debuginfo.dotnet.closed_types import ClosedTypes, Instance
from fetchc.debuginfo.dotnet.dotnet_types import DotnetTypes, WrittenTypes
from fetchc.debuginfo.dotnet.jit_code import JitCode
from fetchc.debuginfo.dotnet.metadata_signatures import class_spelled
from fetchc.debuginfo.dotnet.method_code import (
    Methods,
    continued_in,
    in_no_file,
    is_inlined,
    must_have_code,
    not_compiled,
    parameters,
    why_no_code,
)
from fetchc.debuginfo.dotnet.mono_aot import MonoCode
from fetchc.debuginfo.dotnet.portable_executable import bundle_of
from fetchc.debuginfo.dotnet.portable_pdb import Placed
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.safe_open import is_regular
from fetchc.debuginfo.without_dwarf import NoEvidence
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import EntryCollection, Function
from fetchc.program.types import EnumType, VoidType
from fetchc.quantities import Address, ByteSize, DieOffset, FileOffset, TypeId
from fetchc.target.dotnet_runtimes import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.assemblies import Process
    from fetchc.debuginfo.dotnet.method_code import Method
    from fetchc.debuginfo.dotnet.portable_executable import Bundle, Pe
    from fetchc.debuginfo.environment import Environment
    from fetchc.debuginfo.running_process import RunningProcess
    from fetchc.program.entities import Property, Variable
    from fetchc.program.protocol import ObjectTypes, Program
    from fetchc.program.types import Type

__all__ = ["DotnetProgram", "open_in_bundle"]

LANGUAGE = "dotnet"
WIDE = ("x86_64", "aarch64")  # whose layouts are those of targets/runtime/dotnet
_FEW_METHODS = 2000
PRODUCERS = {"coreclr": ".NET", "mono": "Mono"}


class DotnetProgram(Placed):
    """Implements every question of :class:`~fetchc.program.protocol.Program`, lazily.

    Of a ``running`` process its code is what that has compiled: addresses are the process's.
    """

    __slots__ = (
        "_bundle", "_image_path", "_methods", "_mono", "_objects",
        "_opened", "_process", "_references", "_running", "_typed", "architecture", "build_id",
        "in_kernel", "in_memory", "little_endian", "machine_flags", "path", "word_bytes",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        references: tuple[str, ...] = (),
        bundle: Bundle | None = None,
        image: Pe | None = None,
        process: Process | None = None,
        environment: Environment = DEFAULT,
        running: RunningProcess | None = None,
    ) -> None:
        self._assembly = Assembly(path, image)
        self._bundle = bundle
        self._mono: MonoCode | None = None
        if self._assembly.kind == "IL" and is_regular(path + ".so"):
            self._mono = MonoCode(self._assembly, path + ".so", environment)
            self._assembly.kind, self._assembly.native = "Mono", self._mono
        if self._assembly.kind == "fragile":
            self._take_map(references)
        self.in_memory = running is not None
        self._running = running
        if running is not None:
            defined = running.assemblies_with
            self._assembly.native = JitCode(self._assembly, running.lines, defined)
        self._references = references
        self._process = process
        self._methods = Methods(self._assembly)
        self._opened: dict[DieOffset, Method] = {}
        self._typed: DotnetTypes | None = None
        self._objects: ObjectTypes | None = None
        self._described = None
        self.path = path if self._mono is None else self._mono.elf.path
        self._image_path = path
        # Intermediate language alone is for any machine; none of it is probed.
        native = self._assembly.native is not None and self._assembly.kind != "IL"
        self.architecture = self._assembly.image.machine if native else "x86_64"
        if self._mono is not None:
            self.architecture = self._mono.elf.architecture
        if not self.architecture:
            what = "its code is for a machine that is not known"
            raise DebugInfoError("FC0905", path, what, "PE header")
        self.word_bytes = 8
        self.little_endian = True
        self.in_kernel = False
        self.machine_flags = 0
        self.build_id = None if self._mono is None else self._mono.elf.build_id

    @property
    def identity(self) -> str:
        """That of the file that has the code."""
        return self._assembly.image.identity if self._mono is None else self._mono.elf.identity

    @property
    def evidence(self) -> DotnetEvidence:
        """What its metadata says of calls."""
        return DotnetEvidence(self)

    @property
    def dotnet(self) -> DotnetMetadata:
        """What its metadata says of properties, objects and asynchronous methods."""
        return DotnetMetadata(self)

    @property
    def has_debug_info(self) -> bool:
        """True: there is always metadata."""
        return True

    @property
    def _types(self) -> DotnetTypes:
        if self._typed is None:
            if self.architecture not in WIDE:
                what = f"layouts of .NET for `{self.architecture or 'this machine'}` are not known"
                raise DebugInfoError("FC0905", self.path, what)
            mono = self._mono is not None
            folders = folders_of(self._image_path, self._references, mono, self._process)
            references = References(self._assembly, folders, self._bundle, mono)
            name, version = version_of(references.core())
            must_fit(self._assembly, references.core(), version)
            try:
                rules = runtime(name, version)
            except CompileError as unknown:
                (said,) = unknown.diagnostics
                core = references.core().path
                raise DebugInfoError(said.code, core, said.message, notes=said.notes) from None
            typed = DotnetTypes(ClosedTypes(references), rules)
            must_have_texts_at(typed, rules)
            self._typed = typed
        return self._typed

    def _take_map(self, references: tuple[str, ...]) -> None:
        from fetchc.debuginfo.dotnet.method_code import FragileCode, map_of

        path = self._assembly.path
        found = map_of(self._assembly, (os.path.dirname(path) or ".", *references))
        if found is not None:
            self._assembly.native = FragileCode(self._assembly, found)

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """The precompiled methods that a name, as people write it, can mean."""
        must_have_code(self._assembly)
        found = self._methods.named(name)
        called = [] if found else self._methods.called(name)
        if called and "<" in name:
            found = self._methods.shared_by(name, lambda one: self._is_class(one) is True)
        if called and not found:
            meant = self._methods.overloads(name)
            if not meant and self._methods.named(name.partition("(")[0]):
                return ()  # no overload of these parameters
            shared = self._methods.shared_by(name, lambda one: self._is_class(one) is None)
            pid = None if self._running is None else self._running.pid
            raise not_compiled(self._assembly, self.path, (meant or called)[0], shared, pid)
        exact = [one for one in found if one.symbol == name]
        return tuple([self._function(one) for one in exact or found])

    def _is_class(self, name: str) -> bool | None:
        # None where no type of that name is at hand: it may be a structure.
        found = {self._types.number(one) for one in self.types_named(name, None)}
        classes = {one is not None and self._types.is_reference(one) for one in found}
        return classes.pop() if len(classes) == 1 else None

    def _function(self, method: Method) -> Function:
        native = self._assembly.native
        assert native is not None
        begin, end = native.begin(method.function), native.end(method.function)
        die = DieOffset(method.function << 32 | method.row)
        self._opened[die] = method
        runs, version = version_of(self._types.closed.references.core())
        return Function(
            method.name,
            method.symbol,
            begin,
            ByteSize(end - begin),
            die,
            LANGUAGE,
            compiler_of(f"{PRODUCERS[runs]} {version[0]}.{version[1]}"),
            True,
        )

    def _method(self, function: Function) -> Method:
        assert function.die is not None
        return self._opened[function.die]

    def function_at(self, address: Address) -> Function | None:
        """The method whose code holds ``address``; goes through all of them."""
        for one, begin, end in self.precompiled():
            if begin <= address < end:
                return self._function(one)
        return None

    def function_names(self) -> Iterator[str]:
        """Names of all precompiled methods, with their parameters."""
        return iter(dict.fromkeys(one.symbol for one, _, _ in self.precompiled()))

    def names_identity(self) -> str | None:
        """What tells a file with its own native code from all others; None for other kinds.

        And where there are so few methods that listing them takes no time.
        """
        assembly = self._assembly
        if (
            assembly.kind != "ReadyToRun"
            or self.in_memory
            or assembly.metadata.count("MethodDef") < _FEW_METHODS
        ):
            return None
        return assembly.identity or None

    def precompiled(self) -> Iterator[tuple[Method, Address, Address]]:
        """All methods with code, each with the address of its first byte and after its last."""
        must_have_code(self._assembly)
        native = self._assembly.native
        assert native is not None
        for one in self._methods.every():
            yield one, native.begin(one.function), native.end(one.function)

    @property
    def is_compiled(self) -> bool:
        """Whether it has code that can be read."""
        return self._assembly.native is not None

    def compiled(self, function: Function, address: int) -> Function:
        """The method as it was compiled to ``address``, one of its :meth:`versions`."""
        native = self._assembly.native
        assert native is not None
        size = ByteSize(native.end(address) - address)
        return function.replaced(address=Address(address), size=size)

    def versions(self, address: int) -> tuple[int, ...]:
        """Where a running process has code now of the method with code at ``address``; the newest
        first. Empty for code of a file, and where that memory has other code.

        Raises DebugInfoError as :meth:`RunningProcess.read` does.
        """
        native = self._assembly.native
        if self._running is None or not isinstance(native, JitCode):
            return ()
        native.add(self._running.read())
        return tuple(native.versions(address))

    @property
    def assembly_name(self) -> str:
        """The assembly's own name, which its file should have too."""
        return self._assembly.name

    def _arguments(self, method: Method) -> tuple[tuple[int, ...], tuple[int, ...]]:
        # The closed type arguments of its type and of itself.
        closed = self._types.closed

        def all_closed(signatures: tuple[object, ...]) -> tuple[int, ...]:
            return tuple([closed.close(self._assembly, one) for one in signatures])  # type: ignore[arg-type]

        return all_closed(method.of_type), all_closed(method.of_method)

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """``this``, the hidden type arguments of shared generic code, declared parameters."""
        method = self._method(function)
        assert function.die is not None
        given = self._arguments(method)
        return parameters(self._types, self._assembly, method, given, function.die)

    def result(self, function: Function) -> TypeId | None:
        """Type of the result, None for void."""
        method = self._method(function)
        of_type, of_method = self._arguments(method)
        signature = self._assembly.method_signature(method.row)
        closed = self._types.closed.close(self._assembly, signature.result, of_type, of_method)
        row = self._assembly.parameter_row(method.row, 0)
        names = self._assembly.tuple_names(row, PARAMETER) if row else ()
        found = self._types.variable_of(signature.result, closed, names)
        return None if isinstance(self._types.type(found), VoidType) else found

    def type(self, type_id: TypeId) -> Type:
        """The type itself."""
        return self._types.type(type_id)

    def completed(self, type_id: TypeId) -> TypeId:
        """Itself: metadata has no declarations without definition."""
        return type_id

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Types of that name: ``Ns.Type``, ``Type``, ``List<int>``, ``int[]``."""
        return WrittenTypes(self._types, self._assembly, self._references).named(name)

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """The values of ``Ns.Type.Name``, each with its enumeration, of any assembly's."""
        kind, _, short = name.replace("::", ".").rpartition(".")
        found: dict[int, TypeId] = {}
        for number in self.types_named(kind, function) if kind else ():
            resolved = self.type(number)
            if isinstance(resolved, EnumType):
                for each, value in resolved.enumerators:
                    if each == short:
                        found.setdefault(value, number)
        return tuple(found.items())

    def type_names(self) -> Iterator[str]:
        """Names of the types that the image defines, but for generic ones."""
        metadata, assembly = self._assembly.metadata, self._assembly
        for row in range(2, metadata.count("TypeDef") + 1):
            name = assembly.type_name(row)
            if "`" not in name:
                yield class_spelled(name, ())

    def main_language(self) -> str:
        """The language of the whole image."""
        return LANGUAGE

    def intern(self, resolved: Type) -> TypeId:
        """An id for a type that metadata does not have (a cast's pointer)."""
        return self._types.intern(resolved)

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at a relative address is in the file, by its own section."""
        if self.in_memory:
            raise in_no_file(self.path)
        if self._mono is not None:
            return self._mono.elf.file_offset(address)
        return FileOffset(self._assembly.image.start + self._assembly.image.offset(address))

    def image_offset(self, address: Address, probe: Address) -> int:
        """Never: nothing is at a fixed address."""
        raise DebugInfoError("FC0905", self.path, "a .NET program has no fixed addresses")

    def code(self, address: Address, size: int) -> bytes:
        """Machine code at a relative address, none outside of all sections."""
        if self._running is not None:
            return self._running.code(address, size)
        if self._mono is not None:
            return self._mono.elf.code(address, size)
        image = self._assembly.image
        try:
            at = self.file_offset(address)
        except DebugInfoError:
            return b""
        section = next(s for s in image.sections if 0 <= address - s.address < s.file_size)
        left = section.file_size - (address - section.address)
        return bytes(image.view[at : at + min(size, left)])


class DotnetEvidence(NoEvidence):
    """What metadata answers as :class:`~fetchc.program.protocol.Evidence`."""

    __slots__ = ("_program",)

    def __init__(self, program: DotnetProgram) -> None:
        self._program = program

    def is_inlined(self, function: Function) -> bool:
        """Whether the method is so short, or so marked, that its callers have it inlined."""
        return is_inlined(self._program._assembly, self._program._method(function).row)


class DotnetMetadata:
    """What metadata answers as :class:`~fetchc.program.protocol.DotnetFacts`."""

    __slots__ = ("_program",)

    def __init__(self, program: DotnetProgram) -> None:
        self._program = program

    def property_of(self, type_id: TypeId, name: str) -> Property | None:
        """The property of that name of a class or structure, by the code of its getter."""
        from fetchc.debuginfo.dotnet.properties import property_of

        number = self._program._types.number(type_id)
        return (
            None
            if number is None
            else property_of(self._program._types, number, name, self._program._assembly)
        )

    def object_types(self) -> ObjectTypes | None:
        """What the headers of objects say; None for runtimes whose headers were not measured."""
        program = self._program
        if program._objects is None and program._types.header is not None:
            from fetchc.debuginfo.dotnet.closed_types import DotnetObjects

            program._objects = DotnetObjects(program._types, program._types.header)
        return program._objects

    def collection(self, type_id: TypeId) -> EntryCollection | None:
        """The members of a class that is a collection of entries, as the target's tables say."""
        types = self._program._types
        number = types.number(type_id)
        if number is None or not isinstance(types.closed.types[number], Instance):
            return None
        found = types.runtime.collections.get(types.closed.name(number))
        return None if found is None else EntryCollection(**found)

    def state_machine_method(self, function: Function) -> str:
        """The ``MoveNext`` that has the body of an iterator or an asynchronous method."""
        return continued_in(self._program._assembly, self._program._method(function).row)

    def in_source(self, function: Function) -> str:
        """What a method is that a compiler made of the source; of ordinary methods empty."""
        row = self._program._method(function).row
        return str(self._program._methods.in_source(row) or "")

    def methods_without_code(self) -> Iterator[tuple[str, str]]:
        """Names of the methods that have none, each with the reason."""
        native, assembly = self._program._assembly.native, self._program._assembly
        compiled = set() if native is None else {row for row, _ in native.entries()}
        compiled |= self._program._methods.instantiated_rows()
        for row in range(1, assembly.metadata.count("MethodDef") + 1):
            if row not in compiled:
                yield self._program._methods.symbol(row), why_no_code(assembly, row)


# ------------------------------------------------------------------------------
# An assembly inside of a single-file program, by the name that people give it.

SHOWN = 8  # names of assemblies in a message


def open_in_bundle(
    path: str, references: tuple[str, ...], process: Process | None = None
) -> DotnetProgram | None:
    """The image that ``HOST:NAME`` names; None where no such file is a bundle.

    Raises DebugInfoError FC0901 where it has no such image.
    """
    host, mark, name = path.rpartition(":")
    bundle = bundle_of(host) if mark and is_regular(host) else None
    if bundle is None:
        return None
    entry = bundle.assembly(name)
    if entry is None:
        listed = ", ".join(f"`{one}`" for one in bundle.names()[:SHOWN])
        what = f"it has no assembly `{name}`; it has {listed}"
        raise DebugInfoError("FC0901", host, what)
    return DotnetProgram(host, references, bundle, bundle.image(entry), process)


if TYPE_CHECKING:

    def _is_program(opened: DotnetProgram) -> Program:
        return opened
