"""A precompiled image of .NET as a :class:`~fetchc.program.protocol.Program`.

Metadata has names and types, no places: parameters are where the calling convention puts them.
Addresses are relative to the image. A function's ``die`` stands for its method here.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.dotnet.assembly import Assembly
from fetchc.debuginfo.dotnet.closed import ClosedTypes, Instance
from fetchc.debuginfo.dotnet.framework import folders_of, version_of
from fetchc.debuginfo.dotnet.methods import Methods, takes_context
from fetchc.debuginfo.dotnet.mono import MonoCode
from fetchc.debuginfo.dotnet.references import References
from fetchc.debuginfo.dotnet.spelling import class_spelled
from fetchc.debuginfo.dotnet.types import DotnetTypes
from fetchc.debuginfo.dotnet.writtentypes import WrittenTypes
from fetchc.debuginfo.plain import Plain
from fetchc.diag.errors import DebugInfoError
from fetchc.program.model import Function, Variable
from fetchc.program.places import Absent
from fetchc.program.types import IntType, PointerType, VoidType
from fetchc.target.dotnet import runtime
from fetchc.units import Address, ByteSize, DieOffset, FileOffset, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dotnet.bundle import Bundle
    from fetchc.debuginfo.dotnet.methods import Method
    from fetchc.debuginfo.dotnet.pe import Pe
    from fetchc.program.places import Place
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type

__all__ = ["CONTEXT", "DotnetProgram"]

LANGUAGE = "dotnet"
CONTEXT = "<type arguments>"  # the name of the hidden parameter of shared generic code
WIDE = ("x86_64", "aarch64")  # whose layouts are those of targets/runtime/dotnet
PRODUCERS = {"coreclr": ".NET", "mono": "Mono"}
CURES = {
    "IL": "compile it ahead of time: `dotnet publish -r linux-x64 -p:PublishReadyToRun=true`",
    "fragile": "take the images of .NET Core 3.0 or newer, or probe another library of this one",
    "unknown": "compile it for ReadyToRun: `dotnet publish -p:PublishReadyToRun=true`",
}
REASONS = {
    "IL": "it has intermediate language only: the runtime compiles it to memory that no probe "
    "can be set on",
    "fragile": "its code is of the fragile format of .NET Core 2, which tells nobody but one build "
    "of the runtime where methods are",
    "unknown": "its native code is of an unknown format",
}


class DotnetProgram(Plain):
    """Implements every question of :class:`~fetchc.program.protocol.Program`, lazily."""

    __slots__ = (
        "_assembly", "_bundle", "_image_path", "_methods", "_mono", "_opened", "_references",
        "_typed", "architecture", "build_id", "in_kernel", "little_endian", "machine_flags", "path",
        "word_bytes",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        references: tuple[str, ...] = (),
        bundle: Bundle | None = None,
        image: Pe | None = None,
    ) -> None:
        self._assembly = Assembly(path, image)
        self._bundle = bundle
        self._mono: MonoCode | None = None
        if self._assembly.kind == "IL" and os.path.isfile(path + ".so"):
            self._mono = MonoCode(self._assembly, path + ".so")
            self._assembly.kind, self._assembly.native = "Mono", self._mono
        self._references = references
        self._methods = Methods(self._assembly)
        self._opened: dict[DieOffset, Method] = {}
        self._typed: DotnetTypes | None = None
        self.path = path if self._mono is None else self._mono.elf.path
        self._image_path = path
        # Intermediate language alone is for any machine; none of it is probed.
        native = self._assembly.native is not None
        self.architecture = self._assembly.image.machine if native else "x86_64"
        if self._mono is not None:
            self.architecture = self._mono.elf.architecture
        self.word_bytes = 8
        self.little_endian = True
        self.in_kernel = False
        self.machine_flags = 0
        self.build_id = None if self._mono is None else self._mono.elf.build_id

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
            folders = folders_of(self._image_path, self._references, mono)
            references = References(self._assembly, folders, self._bundle, mono)
            name, version = version_of(references.core())
            self._typed = DotnetTypes(ClosedTypes(references), runtime(name, version))
        return self._typed

    def _must_have_code(self) -> None:
        kind = self._assembly.kind
        if kind == "Mono":
            return
        if kind != "ReadyToRun":
            raise DebugInfoError(
                "FC0906", self.path, f"it cannot be probed: {REASONS[kind]}", help=CURES[kind]
            )
        if self._assembly.image.system != "linux":
            what = f"its native code is for {self._assembly.image.system or 'another system'}"
            raise DebugInfoError(
                "FC0906", self.path, f"it cannot be probed: {what}", help=CURES["IL"]
            )

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """The precompiled methods that a name, as people write it, can mean."""
        self._must_have_code()
        found = self._methods.named(name)
        if not found and self._methods.called(name):
            if self._methods.named(name.partition("(")[0]):
                return ()  # no overload of these parameters
            raise self._not_compiled(name)
        exact = [one for one in found if one.symbol == name]
        return tuple([self._function(one) for one in exact or found])

    def _not_compiled(self, name: str) -> DebugInfoError:
        row = self._methods.called(name)[0]
        assembly = self._assembly
        owner = assembly.owner(row)
        flags = assembly.metadata.row("MethodDef", row)
        why = "the compiler left it to the runtime"
        if flags[2] & 0x400:
            why = "it is abstract: its implementations have code"
        elif assembly.type_parameters_of("TypeDef", owner) or assembly.type_parameters_of(
            "MethodDef", row
        ):
            why = "it is generic, and no instantiation of it is in this image"
        return DebugInfoError(
            "FC0906",
            self.path,
            f"`{class_spelled(assembly.type_name(owner), ())}.{assembly.method_name(row)}` has no "
            f"precompiled code: {why}",
            help="list what has: `fetchc functions -x IMAGE`",
        )

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
            f"{PRODUCERS[runs]} {version[0]}.{version[1]}",
            True,
        )

    def _method(self, function: Function) -> Method:
        assert function.die is not None
        return self._opened[function.die]

    def function_at(self, address: Address) -> Function | None:
        """The method whose code holds ``address``; goes through all of them."""
        self._must_have_code()
        native = self._assembly.native
        assert native is not None
        for one in self._methods.every():
            if native.begin(one.function) <= address < native.end(one.function):
                return self._function(one)
        return None

    def function_names(self) -> Iterator[str]:
        """Names of all precompiled methods, with their parameters."""
        self._must_have_code()
        return iter(dict.fromkeys(one.symbol for one in self._methods.every()))

    def _arguments(self, method: Method) -> tuple[tuple[int, ...], tuple[int, ...]]:
        # The closed type arguments of its type and of itself.
        closed = self._types.closed

        def all_closed(signatures: tuple[object, ...]) -> tuple[int, ...]:
            return tuple([closed.close(self._assembly, one) for one in signatures])  # type: ignore[arg-type]

        return all_closed(method.of_type), all_closed(method.of_method)

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """``this``, the hidden type arguments of shared generic code, declared parameters."""
        method = self._method(function)
        assembly, types = self._assembly, self._types
        of_type, of_method = self._arguments(method)
        signature = assembly.method_signature(method.row)
        names = assembly.parameter_names(method.row)
        owner = types.closed.number(Instance(assembly, method.owner, of_type))
        kind = types.closed.kind(owner)
        found: list[tuple[str, TypeId, bool]] = []
        if signature.receives:
            this = types.variable(owner)
            if kind in ("value", "enum"):
                this = self.intern(PointerType("", ByteSize(8), this, reference=True))
            found.append(("this", this, True))
        value = kind in ("value", "enum", "interface")  # a default method of an interface
        if takes_context(signature.receives, value, signature.generic > 0, method):
            found.append((CONTEXT, self.intern(IntType("nint", ByteSize(8), True)), True))
        for position, one in enumerate(signature.parameters, 1):
            closed = types.closed.close(assembly, one, of_type, of_method)
            name = names.get(position) or f"arg{position}"
            found.append((name, types.variable(closed), False))
        assert function.die is not None
        return tuple(
            [
                Variable(
                    name, kind_id, "parameter", DieOffset(function.die << 16 | at), 0, artificial
                )
                for at, (name, kind_id, artificial) in enumerate(found)
            ]
        )

    def result(self, function: Function) -> TypeId | None:
        """Type of the result, None for void."""
        method = self._method(function)
        of_type, of_method = self._arguments(method)
        signature = self._assembly.method_signature(method.row)
        closed = self._types.closed.close(self._assembly, signature.result, of_type, of_method)
        found = self._types.variable(closed)
        return None if isinstance(self._types.type(found), VoidType) else found

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """The parameters: metadata has no places of locals."""
        return self.parameters(function)

    def global_variables(self, name: str, function: Function | None) -> tuple[Variable, ...]:
        """None: static fields are where the runtime put them when it loaded the class."""
        return ()

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """Nowhere: a parameter's place is the calling convention's to say."""
        return Absent("FC0401", "nothing says where it is behind the method's first instruction")

    def type(self, type_id: TypeId) -> Type:
        """The type itself."""
        return self._types.type(type_id)

    def completed(self, type_id: TypeId) -> TypeId:
        """Itself: metadata has no declarations without definition."""
        return type_id

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Types of that name: ``Ns.Type``, ``Type``, ``List<int>``, ``int[]``."""
        return WrittenTypes(self._types, self._assembly).named(name)

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

    def intern(self, made: Type) -> TypeId:
        """An id for a type that metadata does not have (a cast's pointer)."""
        return self._types.intern(made)

    def file_offset(self, address: Address) -> FileOffset:
        """Where the byte at a relative address is in the file, by its own section."""
        if self._mono is not None:
            return self._mono.elf.file_offset(address)
        return FileOffset(self._assembly.image.start + self._assembly.image.offset(address))

    def image_offset(self, address: Address, probe: Address) -> int:
        """Never: nothing is at a fixed address."""
        raise DebugInfoError("FC0905", self.path, "nothing of .NET is at a fixed address")

    def code(self, address: Address, size: int) -> bytes:
        """Machine code at a relative address, none outside of all sections."""
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


if TYPE_CHECKING:

    def _is_program(opened: DotnetProgram) -> Program:
        return opened
