"""Methods of an assembly by the names that people write, and which of them have code."""

from __future__ import annotations

import os
from bisect import bisect_right

from fetchc.debuginfo.byte_reader import compressed_bytes, read_compressed
from fetchc.debuginfo.dotnet.assemblies import PARAMETER
from fetchc.debuginfo.dotnet.closed_types import Instance
from fetchc.debuginfo.dotnet.csharp_names import (
    LOCAL_FUNCTION,
    Written,
    arguments_fit,
    in_source,
    map_line_parts,
    parameters_fit,
    type_arguments,
    without_arguments,
    written,
)
from fetchc.debuginfo.dotnet.metadata_signatures import (
    Defined,
    Generic,
    Primitive,
    SignatureReader,
    class_spelled,
    holder_spelled,
    open_spelled,
)
from fetchc.debuginfo.dotnet.mono_aot import CodeByAddress
from fetchc.debuginfo.dotnet.portable_executable import map_file
from fetchc.debuginfo.dotnet.ready_to_run import function_index
from fetchc.debuginfo.perf_map_format import parse_lines
from fetchc.debuginfo.safe_open import is_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Variable
from fetchc.program.types import IntType, PointerType
from fetchc.quantities import Address, ByteSize, DieOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from mmap import mmap

    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.csharp_names import InSource
    from fetchc.debuginfo.dotnet.dotnet_types import DotnetTypes
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.quantities import TypeId

    Arguments = tuple[tuple[int, ...], tuple[int, ...]]

__all__ = [
    "CONTEXT_PARAMETER",
    "CodeByMap",
    "FragileCode",
    "GenericCode",
    "Method",
    "Methods",
    "continued_in",
    "generic_code",
    "in_no_file",
    "is_inlined",
    "map_of",
    "must_have_code",
    "not_compiled",
    "parameters",
    "why_no_code",
]

# ------------------------------------------------------------------------------
# Precompiled code of generic methods: which instantiation each entry of the table is of.
#
# Source: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md, "Instance entry points".

# Flags of an entry.
UNBOXING, INSTANTIATING, METHOD_ARGUMENTS = 1, 2, 4
MEMBER_REFERENCE, OWNER, CONTEXT = 0x10, 0x40, 0x80
LONGEST = 4096  # bytes of an entry's signature
_SEARCHES = 64  # for methods by their names; then all are read once


class GenericCode(Record):
    """An instantiation: the method's row, its type where that is not plain, type arguments.

    ``function`` is the piece of code. ``unboxing``: a stub that takes a boxed value.
    """

    method: int
    owner: Signature | None
    arguments: tuple[Signature, ...]
    function: int
    unboxing: bool


def generic_code(assembly: Assembly, rows: Collection[int] = ()) -> Iterator[GenericCode]:
    """The instantiations of methods that the assembly itself declares.

    ``rows``: of these methods alone, and then not all entries have to be read.
    """
    native, image = assembly.native, assembly.image
    entries = [] if native is None else native.instances()
    if rows and entries:
        entries = _mentioning(image.data, sorted(entries), rows)
    for start in entries:
        cursor = image.at(start - image.start, "INSTANCE_ENTRYPOINTS")
        data = bytes(cursor.data[start : min(start + LONGEST, cursor.end)])
        reader = SignatureReader(assembly.metadata, data)
        flags = reader.number()
        if flags & CONTEXT:
            reader.number()
        owner = reader.type() if flags & OWNER else None
        method = reader.number()
        if rows and method not in rows:
            continue
        count = reader.number() if flags & METHOD_ARGUMENTS else 0
        arguments = tuple([reader.type() for _ in range(min(count, LONGEST))])
        if flags & (MEMBER_REFERENCE | CONTEXT):
            continue  # a method of another assembly: its rows are not ours
        cursor.skip(reader.at)
        stub = bool(flags & (UNBOXING | INSTANTIATING))
        yield GenericCode(method, owner, arguments, function_index(cursor), stub)


def _mentioning(data: mmap | bytes, entries: list[int], rows: Collection[int]) -> list[int]:
    # The entries that have the number of one of the methods somewhere, as signatures write it.
    # The bytes can stand for something else: who reads them sees it.
    found = set[int]()
    end = min(entries[-1] + LONGEST, len(data))
    for row in rows:
        number = compressed_bytes(row)
        at = data.find(number, entries[0], end)
        while at >= 0:
            holder = entries[bisect_right(entries, at) - 1]
            if at - holder < LONGEST:
                found.add(holder)
            at = data.find(number, at + 1, end)
    return sorted(found)


_DEEPEST = 100  # namespaces and types before a method's name
ACCESSORS = ("get_", "set_", "add_", "remove_")  # of properties and events


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


class Methods:
    """The methods of one assembly."""

    __slots__ = ("_assembly", "_found", "_searches", "_spelled")

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._found: dict[str, list[Method]] = {}
        self._searches = 0
        self._spelled: dict[tuple[int, Sequence[str], Sequence[str]], str] = {}

    def types(self, parts: Sequence[str]) -> list[int]:
        """Rows of the types that a written name, or the end of a whole one, can mean."""
        if not parts:
            return []
        plain = [without_arguments(part).partition("`")[0] for part in parts]
        wanted = ".".join(plain)
        called = self._assembly.types_called(plain[-1], b"\0`")
        names = {row: holder_spelled(self._assembly.type_name(row), ()) for row in called}
        exact = [row for row, name in names.items() if name == wanted]
        return exact or [row for row, name in names.items() if name.endswith("." + wanted)]

    def called(self, name: str) -> list[int]:
        """Rows of all methods, with code or without, that a written name can mean."""
        asked = written(name)
        plain = without_arguments(asked.method)
        if not asked.types:
            offsets = self._assembly.metadata.names_at(plain)
            rows = self._assembly.metadata.rows("MethodDef")
            return [number for number, row in enumerate(rows, 1) if row[3] in offsets]
        if len(asked.types) > _DEEPEST:
            return []
        # A method that implements an interface explicitly has the interface's name in its own.
        for cut in range(len(asked.types), 0, -1):
            names = {
                method: self._assembly.method_name(method)
                for row in self.types(asked.types[:cut])
                for method in self._assembly.methods(row)
            }
            own = ".".join([*asked.types[cut:], plain])
            accessors = [prefix + own for prefix in ACCESSORS]
            found = [method for method, name in names.items() if name == own]
            found = found or [method for method, name in names.items() if name in accessors]
            found = found or [at for at, name in names.items() if name.endswith(f".{own}")]
            if found:
                return found
        return self._local_functions([*map(without_arguments, asked.types), plain])

    def _local_functions(self, wanted: list[str]) -> list[int]:
        # `Type.Method.Local`, as in the source, which a compiler calls `<Method>g__Local|4_0`.
        assembly, inside = self._assembly, f"g__{wanted[-1]}|"
        found: list[int] = []
        if not assembly.metadata.names_at(inside[:-1], b"|"):
            return found  # quickly: no name has that in it
        for row in range(1, assembly.metadata.count("MethodDef") + 1):
            if inside in assembly.method_name(row):
                one = self.in_source(row)
                if one is not None and one.what == LOCAL_FUNCTION:
                    parts = ".".join(one.parts).split(".")
                    found += [row] if parts[-len(wanted) :] == wanted else []
        return found

    def in_source(self, row: int) -> InSource | None:
        """What a method is in the source that a compiler took apart; None of others."""
        assembly = self._assembly
        owner = assembly.type_name(assembly.owner(row)).split("+")
        return in_source(tuple(owner), assembly.method_name(row))

    def named(self, name: str) -> list[Method]:
        """The methods with code that a written name can mean."""
        methods = self._found.get(name)
        if methods is None:
            self._searches += 1
            if self._searches == _SEARCHES:
                for _ in self.every():
                    pass  # after some searches, all names at once
                methods = self._found.get(name)
        if methods is None:
            methods = self._found[name] = self._named(written(name), self.called(name))
        return methods

    def _named(self, asked: Written, rows: list[int]) -> list[Method]:
        if asked.parameters is not None:
            count = len(asked.parameters)
            signature = self._assembly.method_signature
            rows = [row for row in rows if len(signature(row).parameters) == count]
        found: list[Method] = []
        generic = set()
        for row in rows:
            if self.is_generic(row):
                generic.add(row)
            else:
                found += self._plain(row)
        if generic:
            found += self.instantiated(generic)
            found = [one for one in found if arguments_fit(one.symbol, asked)]
        if asked.parameters is None:
            return found
        # `M(int)` and `M(ref int)` are two methods; which of them has code does not matter.
        exact = {row for row in rows if parameters_fit(self.symbol(row), asked.parameters)}
        exact |= {one.row for one in found if parameters_fit(one.symbol, asked.parameters)}
        if exact:
            return [one for one in found if one.row in exact]
        return [
            one for one in found if parameters_fit(one.symbol.replace("&", ""), asked.parameters)
        ]

    def shared_by(self, name: str, is_class: Callable[[str], bool]) -> list[Method]:
        """The code of all classes that a name with a class in it means."""
        asked = written(name)
        generic = {row for row in self.called(name) if self.is_generic(row)}
        found = list(self.instantiated(generic)) if generic else []
        return [one for one in found if arguments_fit(one.symbol, asked, is_class)]

    def overloads(self, name: str) -> list[int]:
        """The rows of ``called(name)`` whose parameters fit those in ``name``."""
        wanted = written(name).parameters
        return [
            row
            for row in self.called(name)
            if wanted is None or parameters_fit(self.symbol(row), wanted)
        ]

    def is_generic(self, row: int) -> bool:
        """Whether a method has type parameters, its own or its type's."""
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
        return [self._method(row, self._assembly.owner(row), index, (), ())]

    def every(self) -> Iterator[Method]:
        """All methods with code."""
        native = self._assembly.native
        if native is None:
            return
        owners = self._owners()
        found: dict[str, list[Method]] = {}
        for row, index in sorted(native.entries()):
            one = self._method(row, owners[row], index, (), ())
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

        Each with its code, not with stubs that lead to it. ``owners`` are the types of the
        methods, where the caller has them.
        """
        for one in self._instances(rows):
            of_type = one.owner.arguments if isinstance(one.owner, Generic) else ()
            owner = owners[one.method] if owners else self._assembly.owner(one.method)
            yield self._method(one.method, owner, one.function, of_type, one.arguments)
        count = self._assembly.metadata.count("MethodDef")
        yield from self._shared_code(rows or range(1, count + 1))

    def instantiated_rows(self) -> set[int]:
        """The rows of the methods that :meth:`instantiated` has."""
        count = self._assembly.metadata.count("MethodDef")
        shared = {one.row for one in self._shared_code(range(1, count + 1))}
        return shared | {one.method for one in self._instances(())}

    def _instances(self, rows: Collection[int]) -> Iterator[GenericCode]:
        # Code, not stubs, of methods and types that the assembly itself declares.
        count = self._assembly.metadata.count("MethodDef")
        for one in generic_code(self._assembly, rows):
            if isinstance(one.owner, Generic):
                of = one.owner.of
                if not isinstance(of, Defined) or of.token.table != "TypeDef":
                    continue
            if not one.unboxing and 0 < one.method <= count:
                yield one

    def _shared_code(self, rows: Iterable[int]) -> Iterator[Method]:
        # Instantiations of code that is outside of the assembly's own tables.
        native = self._assembly.native
        if isinstance(native, CodeByAddress):
            for row in rows:
                for of_type, of_method, function in native.instantiations(row):
                    owner = self._assembly.owner(row)
                    yield self._method(row, owner, function, of_type, of_method)

    def symbol(self, row: int) -> str:
        """The name of a method with its parameters, whether it has code or not."""
        return self._method(row, self._assembly.owner(row), 0, (), ()).symbol

    def _method(
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
        holder = holder_spelled(assembly.type_name(owner), types)
        name = f"{holder}.{short}"
        key = (columns[4], types, methods)  # methods that take the same share a signature
        inside = self._spelled.get(key)
        if inside is None:
            signature = assembly.method_signature(row)
            words = [open_spelled(assembly, one, types, methods) for one in signature.parameters]
            inside = self._spelled[key] = ", ".join(words)
        symbol, in_map = f"{name}({inside})", f"{holder}::{short}({inside})"
        return Method(row, owner, name, symbol, in_map, function, of_type, of_method)


# ------------------------------------------------------------------------------
# The parameters of a method's code: those that are declared, ``this``, and hidden ones.

CONTEXT_PARAMETER = "<type arguments>"  # the name of the hidden parameter of shared generic code


def parameters(
    types: DotnetTypes, assembly: Assembly, method: Method, given: Arguments, die: DieOffset
) -> tuple[Variable, ...]:
    """In the order in which they are passed.

    ``given`` are the closed type arguments of the method's type and of itself, ``die`` is what the
    method's Function has.
    """
    of_type, of_method = given
    signature = assembly.method_signature(method.row)
    names = assembly.parameter_names(method.row)
    owner = types.closed.number(Instance(assembly, method.owner, of_type))
    kind = types.closed.kind(owner)
    found: list[tuple[str, TypeId, bool]] = []
    if signature.receives:
        this = types.variable(owner)
        if kind in ("value", "enum"):
            this = types.intern(PointerType("", ByteSize(8), this, reference=True))
        found.append(("this", this, True))
    value = kind in ("value", "enum", "interface")  # a default method of an interface
    mono = assembly.kind == "Mono"  # which has a register of its own for it, r10
    if not mono and _takes_context(signature.receives, value, signature.generic > 0, method):
        found.append((CONTEXT_PARAMETER, types.intern(IntType("nint", ByteSize(8), True)), True))
    for position, one in enumerate(signature.parameters, 1):
        closed = types.closed.close(assembly, one, of_type, of_method)
        name = names.get(position) or f"arg{position}"
        row = assembly.parameter_row(method.row, position)
        tuples = assembly.tuple_names(row, PARAMETER) if row else ()
        found.append((name, types.variable_of(one, closed, tuples), False))
    return tuple(
        [
            Variable(name, kind_id, "parameter", DieOffset(die << 16 | at), 0, artificial)
            for at, (name, kind_id, artificial) in enumerate(found)
        ]
    )


def _takes_context(receives: bool, value: bool, signature_generic: bool, method: Method) -> bool:
    # Whether shared code gets its type arguments as a hidden parameter. Code that is shared by all
    # classes knows them from ``this``, unless it has none, it is a structure's, or the method has
    # type arguments of its own. Source: dotnet/runtime, docs/design/coreclr/botr/clr-abi.md,
    # "Generics".
    shared = any(_is_shared(one) for one in (*method.of_type, *method.of_method))
    return shared and (not receives or value or signature_generic)


def _is_shared(signature: Signature) -> bool:
    if isinstance(signature, Generic):
        return any(_is_shared(one) for one in signature.arguments)
    return signature == Primitive("__Canon")


# ------------------------------------------------------------------------------
# Methods whose body is that of another one: iterators and asynchronous methods.
#
# A compiler moves what such a method does to MoveNext of a type of its own, and says in an
# attribute which one. Source: dotnet/runtime, StateMachineAttribute and the attributes derived
# from it.

ATTRIBUTES = tuple(
    [
        f"System.Runtime.CompilerServices.{kind}StateMachineAttribute"
        for kind in ("Async", "Iterator", "AsyncIterator")
    ]
)
METHOD = 0  # the tag of HasCustomAttribute
PROLOG = 2  # bytes of an attribute's value before its arguments: ECMA-335, II.23.3


def continued_in(assembly: Assembly, row: int) -> str:
    """The name of the method that has the body of another one; empty if that has its own."""
    for attribute in ATTRIBUTES:
        value = assembly.attribute(row, attribute, METHOD)
        if value is not None:
            length, at = read_compressed(value, PROLOG)
            name = value[at : at + length].decode("utf-8", "surrogateescape")
            # Of a type in another assembly the name of that follows.
            return f"{class_spelled(name.partition(',')[0], ())}.MoveNext" if name else ""
    return ""


# ------------------------------------------------------------------------------
# Why an image or a method has no precompiled code, and whether callers may have it inlined.

# MethodAttributes and MethodImplAttributes: ECMA-335, II.23.1.10 and II.23.1.11; AggressiveInlining
# and AggressiveOptimization are of System.Runtime.CompilerServices.MethodImplOptions.
VIRTUAL, ABSTRACT, NATIVE_LIBRARY = 0x40, 0x400, 0x2000
CODE_TYPE, NO_INLINING, SYNCHRONIZED = 3, 8, 0x20
INLINED, OPTIMIZED, INTERNAL_CALL = 0x100, 0x200, 0x1000
# Bytes of intermediate language up to which the compiler inlines without weighing it up. Source:
# dotnet/runtime, src/coreclr/jit/inline.h, ALWAYS_INLINE_SIZE.
ALWAYS_INLINED = 16
TINY = 2  # low bits of the header of a short body: II.25.4.2
CURES = {
    "IL": "compile it ahead of time: `dotnet publish -r linux-x64 -p:PublishReadyToRun=true`",
    "fragile": "have crossgen write its map (`/CreatePerfMap`), and name the folder of it: "
    "`--reference DIR`",
    "unknown": "compile it for ReadyToRun: `dotnet publish -p:PublishReadyToRun=true`",
}
REASONS = {
    "IL": "it has intermediate language only: the runtime compiles it to memory that no probe "
    "can be set on",
    "fragile": "its code has the fragile format of .NET Core 2: only one build of the runtime "
    "knows where its methods are, and there is no map of it",
    "unknown": "its native code is of an unknown format",
}


def must_have_code(assembly: Assembly) -> None:
    """DebugInfoError FC0906 where no method of the image can be probed on this system."""
    path, kind = assembly.path, assembly.kind
    if kind == "Mono" or (kind in ("fragile", "IL") and assembly.native is not None):
        return
    if kind != "ReadyToRun":
        raise DebugInfoError(
            "FC0906", path, f"it cannot be probed: {REASONS[kind]}", help=CURES[kind]
        )
    system = assembly.image.system
    if system != "linux":
        what = f"its native code is for {system or 'another system'}"
        raise DebugInfoError("FC0906", path, f"it cannot be probed: {what}", help=CURES["IL"])


def in_no_file(path: str) -> DebugInfoError:
    """The refusal of what needs an offset in a file, for code that was compiled at run time."""
    return DebugInfoError(
        "FC0906",
        path,
        "the runtime compiled this method to memory: a uprobe needs code of a file",
        help="trace it: `fetchc trace -p PID -f METHOD`; it takes breakpoints for that",
    )


def not_compiled(
    assembly: Assembly,
    path: str,
    row: int,
    shared: Sequence[Method] = (),
    pid: int | None = None,
) -> DebugInfoError:
    """The refusal of a method without code; ``path`` is the image that is probed.

    ``shared`` is code that it may share with others: if what it is for are classes. ``pid`` is the
    process whose code is asked for, None for precompiled code.
    """
    holder = class_spelled(assembly.type_name(assembly.owner(row)), ())
    body = continued_in(assembly, row)
    if shared:
        what = f"`{holder}.{assembly.method_name(row)}` has no code for these types alone"
        help = f"all classes share code: name `{shared[0].symbol}`, or the folder of the assembly "
        help += "that has the type: `--reference DIR`"
        return DebugInfoError("FC0906", path, what, help=help)
    what, where = "has no precompiled code", "-x IMAGE"
    if pid is not None:
        what, where = "cannot be traced", f"-p {pid}"
    return DebugInfoError(
        "FC0906",
        path,
        f"`{holder}.{assembly.method_name(row)}` {what}: {why_no_code(assembly, row)}",
        help=f"its body is in `{body}`"
        if body
        else f"list what has code: `fetchc functions {where}`",
    )


def why_no_code(assembly: Assembly, row: int) -> str:
    """The reason, as far as metadata has it, of a method that the image has no code of."""
    _, how, flags = assembly.metadata.row("MethodDef", row)[:3]
    if flags & ABSTRACT:
        return "it is abstract: its implementations have code"
    if flags & NATIVE_LIBRARY:
        return "it is a function of a native library"
    if how & (INTERNAL_CALL | CODE_TYPE):
        return "it is a part of the runtime itself"
    native = assembly.native
    if isinstance(native, CodeByAddress) and (why := native.why_unknown(row)):
        return why
    if assembly.type_parameters_of("TypeDef", assembly.owner(row)) or assembly.type_parameters_of(
        "MethodDef", row
    ):
        return "it is generic, and no instantiation of it is in this image"
    if how & OPTIMIZED:
        return "it is marked AggressiveOptimization, which leaves it to the runtime"
    return "the compiler left it to the runtime"


def is_inlined(assembly: Assembly, row: int) -> bool:
    """Whether compilers put the method into its callers wherever they can."""
    address, how, flags = assembly.metadata.row("MethodDef", row)[:3]
    if how & (NO_INLINING | SYNCHRONIZED) or flags & VIRTUAL or not address:
        return False
    return bool(how & INLINED) or _body_bytes(assembly, address) <= ALWAYS_INLINED


def _body_bytes(assembly: Assembly, address: int) -> int:
    try:
        cursor = assembly.image.cursor(address, "method body")
    except DebugInfoError:
        return ALWAYS_INLINED + 1  # the body was taken out of the image
    head = cursor.u8()
    if head & 3 == TINY:
        return head >> 2
    cursor.skip(3)
    return cursor.u32()


# ------------------------------------------------------------------------------
# Fragile native images of .NET Core 2 (``NAME.ni.dll``), by the map that crossgen writes of them.
#
# Where methods are, is in structures of the runtime that no document describes. But the exception
# directory lists where each piece of code begins and ends, and ``crossgen /CreatePerfMap`` names
# them in ``NAME.ni.{MVID}.map``; the MVID is the module's own number, and each line is compared
# with the directory. Source of the directory: the PE format of Microsoft, "The .pdata
# Section"; read from the core library of .NET Core 2.1, whose code its methods' pointers lead to.

EXCEPTIONS = 3  # the data directory
STRIDE = 12  # begin, end and unwinding of a piece of code, on x86-64
LARGEST_MAP = 1 << 28


class CodeByMap(CodeByAddress):
    """A base of code that the lines of a perf map name; a method's piece goes by its address."""

    __slots__ = ("_lines", "_methods")

    def __init__(self, assembly: Assembly) -> None:
        super().__init__(assembly)
        self._methods = Methods(assembly)
        self._lines: dict[str, list[tuple[str, tuple[str, ...], int]]] = {}

    def _take(self, symbol: str, begin: int) -> None:
        # The code at an address, by the name that a line gives it. Type arguments of the method's
        # type are behind its name: ``Outer`1+Inner`1[System.__Canon,System.Int32]::M(!0)``.
        holder, mark, method = map_line_parts(symbol)[1].partition("::")
        asked = written(method)
        if mark and asked.parameters is not None:
            name, given = type_arguments(holder)
            key = ".".join([name.replace("+", "."), *asked.types, asked.method])
            self._lines.setdefault(key, []).append((given, asked.parameters, begin))

    def begins(self, method: int) -> list[int]:
        """Where the code of a method begins, by its row: of all lines that name it alone.

        None of a generic method, or a generic type's: other lines are of its instantiations.
        """
        lines = [one for one in self.lines(method) if not one[0]]
        if not lines or self._methods.is_generic(method):
            return []
        symbol = self._methods.symbol(method)
        return [begin for _, parameters, begin in lines if parameters_fit(symbol, parameters)]

    def lines(self, method: int) -> list[tuple[str, tuple[str, ...], int]]:
        """The type arguments, parameters and address of each line with the method's name."""
        assembly = self._assembly
        owner = assembly.type_name(assembly.owner(method)).replace("+", ".")
        return self._lines.get(f"{owner}.{assembly.method_name(method)}", [])


class FragileCode(CodeByMap):
    """The code of an image's methods."""

    __slots__ = ("_ends",)

    def __init__(self, assembly: Assembly, path: str) -> None:
        super().__init__(assembly)
        self._ends = _pieces(assembly)
        lines = parse_lines(path, map_file(path)[0][:LARGEST_MAP])
        matched = 0
        for line in lines:
            begin = self._begun(line.start)
            if begin is None:
                continue
            matched += 1
            self._take(line.symbol, begin)
        if matched * 2 < len(lines):
            what = f"{len(lines) - matched} of its {len(lines)} lines begin at no code of the image"
            raise DebugInfoError("FC0908", path, f"the map is of another build: {what}")

    def _begun(self, number: int) -> int | None:
        # Addresses up to 2.2, for some weeks offsets.
        if number in self._ends:
            return number
        try:
            address = int(self._assembly.image.address(number))
        except DebugInfoError:
            return None
        return address if address in self._ends else None

    def entry(self, method: int) -> int | None:
        """Where a method begins, by its row; None where the map does not name it alone."""
        found = self.begins(method)
        return found[0] if len(found) == 1 else None

    def end(self, address: int) -> Address:
        """The address after the code of a method."""
        return Address(self._ends[address])


def map_of(assembly: Assembly, folders: Sequence[str]) -> str | None:
    """The map of this very module, in the first of the folders that has one."""
    name = f"{assembly.name}.ni.{{{assembly.module_id()}}}.map"
    for folder in folders:
        path = os.path.join(folder, name)
        # The name comes out of the file: it must not lead out of the folder.
        if os.sep not in name and is_regular(path):
            return path
    return None


def _pieces(assembly: Assembly) -> dict[int, int]:
    # Begin and end of each piece of code.
    image = assembly.image
    if len(image.directories) <= EXCEPTIONS or image.machine != "x86_64":
        return {}
    address, size = image.directories[EXCEPTIONS]
    cursor = image.cursor(address, "exception directory", size)
    found = {}
    for _ in range(size // STRIDE):
        begin, end = cursor.u32(), cursor.u32()
        cursor.skip(4)
        found[begin] = end
    return found
