"""A kernel, read from its BTF, as a :class:`~fetchc.program.protocol.Program`.

BTF has types and prototypes, no places and no addresses: parameters are where the calling
convention puts them, and a probe names its function. A function's ``address`` is 0 here, its
``die`` the id of its BTF entry.
"""

from __future__ import annotations

import mmap
import os
import sys

from fetchc.debuginfo.btf.btf_format import AGGREGATES, MAGIC, WORD, Btf, BtfTypes
from fetchc.debuginfo.byte_reader import encode_number
from fetchc.debuginfo.c_type_names import base_spelling, unqualified
from fetchc.debuginfo.cache import CachedFile
from fetchc.debuginfo.elf.headers import build_id_in
from fetchc.debuginfo.environment import DEFAULT
from fetchc.debuginfo.safe_open import open_regular, read_regular
from fetchc.debuginfo.without_dwarf import WithoutDwarf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Absent, Function, Variable
from fetchc.program.types import DeclaredType, EnumType, FloatType, IntType, StructType
from fetchc.quantities import Address, ByteSize, DieOffset, TypeId
from fetchc.target.machines import architecture, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.btf.btf_format import Entry
    from fetchc.debuginfo.elf.headers import Buffer
    from fetchc.debuginfo.environment import CacheFolder, Environment
    from fetchc.program.entities import Place
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type
    from fetchc.quantities import FileOffset

__all__ = ["BtfProgram", "open_file", "open_running", "running_btf"]

STUBS = ("__probestub_", "__traceiter_")  # of a tracepoint: the former from 6.5 on
ORDINARY = ("INT", "TYPEDEF", "FLOAT")
TAGGED = ("STRUCT", "UNION", "ENUM", "ENUM64")
OF_KEYWORD = {"struct": ("STRUCT",), "union": ("UNION",), "enum": ("ENUM", "ENUM64")}
KEYWORDS = {**AGGREGATES, "ENUM": "enum", "ENUM64": "enum"}


class BtfProgram(WithoutDwarf):
    """Implements every question of :class:`~fetchc.program.protocol.Program`, lazily."""

    __slots__ = (
        "_btf", "_events", "_functions", "_types", "architecture", "build_id", "in_kernel",
        "little_endian", "machine_flags", "path", "running", "word_bytes",
    )  # fmt: skip

    def __init__(
        self, path: str, btf: Btf, architecture: str, word_bytes: int, running: bool = False
    ) -> None:
        self._btf = btf
        self._events: dict[DieOffset, tuple[tuple[Variable, Place], ...]] = {}
        self._functions: dict[str, tuple[Function, ...]] = {}  # the last that was asked for
        self.running = running
        self._types = BtfTypes(btf, word_bytes)
        self.path = path
        self.architecture = architecture
        self.word_bytes = word_bytes
        self.little_endian = btf.little_endian
        self.build_id: str | None = None
        self.in_kernel = True
        self.machine_flags: int = table("kernel/linux")["machine_flags"].get(architecture, 0)

    @property
    def identity(self) -> str:
        """Empty: no probe is set in a file."""
        return ""

    @property
    def has_debug_info(self) -> bool:
        """True: there would be no BTF otherwise."""
        return True

    @property
    def kernel(self) -> BtfEvents:
        """Its tracepoints and events."""
        return BtfEvents(self)

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """The functions of exactly that name."""
        if name not in self._functions:
            found = self._btf.named(name, ("FUNC",))
            self._functions = {name: tuple([self._function(each) for each in found])}
        return self._functions[name]

    def _function(self, number: int) -> Function:
        entry = self._btf.entry(number)
        name = self._btf.text(entry.name)
        external = entry.count != 0  # BTF_FUNC_STATIC is 0
        return Function(
            name, name, Address(0), None, DieOffset(number), "c", compiler_of(""), external
        )

    def function_at(self, address: Address) -> Function | None:
        """None: BTF has no addresses."""
        return None

    def function_names(self) -> Iterator[str]:
        """Names of all functions, each once."""
        return iter(dict.fromkeys(name for _, name in self._btf.all_named(("FUNC",))))

    def names_identity(self) -> str | None:
        """None: listing a kernel's functions takes little, and modules come and go."""
        return None

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """Declared parameters in order; of an event its fields."""
        assert function.die is not None
        if function.die in self._events:
            return tuple([variable for variable, _ in self._events[function.die]])
        words = self._prototype(function).words
        if function.name != self._name(function.die):
            words = words[2:]  # of a tracepoint: the first is the kernel's own
        users = table("kernel/user")["parameters"].get(function.name, ())
        found = []
        for at in range(0, len(words), 2):
            if not words[at] and not words[at + 1]:
                break  # the three dots
            own = DieOffset(function.die << 16 | at)  # tells it from the others
            name = self._btf.text(words[at])
            target = TypeId(words[at + 1])
            if name in users:
                target = self._types.of_user(target)
            found.append(Variable(name, target, "parameter", own, 0))
        return tuple(found)

    def words_passed(self, function: Function) -> int | None:
        """How many words are passed to a function; None where a parameter may be several."""
        words = self._prototype(function).words
        passed = [self._types.bare(type_id) for type_id in words[1::2]]
        for one in passed:  # three dots are a parameter without a type
            if one is None or one.kind in ("STRUCT", "UNION"):
                return None
            if one.kind in ("INT", "FLOAT") and one.value > self.word_bytes:
                return None
        return len(passed)

    def offset_of(self, type_id: TypeId, name: str, *inside: str) -> int | None:
        """The offset of a member in a structure, in bytes; None: there is none of that name.

        ``inside`` are names of a member of that member, and so on. Structures without a name are
        looked through: CONFIG_RANDSTRUCT has members in them.
        """
        aggregate = self.type(type_id)
        for member in aggregate.members if isinstance(aggregate, StructType) else ():
            names = inside if member.name == name else (name, *inside) if member.embedded else None
            if names == ():
                return member.offset
            if names and (inner := self.offset_of(member.type, *names)) is not None:
                return member.offset + inner
        return None

    def _name(self, number: int) -> str:
        return self._btf.text(self._btf.entry(number).name)

    def _prototype(self, function: Function) -> Entry:
        assert function.die is not None
        entry = self._btf.entry(self._btf.entry(function.die).value)
        if entry.kind != "FUNC_PROTO":
            what = f"the function `{function.name}` has a {entry.kind} for its prototype"
            raise DebugInfoError("FC0904", self.path, what, ".BTF")
        return entry

    def result(self, function: Function) -> TypeId | None:
        """Type of the result, None for void."""
        if function.die in self._events:
            return None
        return TypeId(self._prototype(function).value) or None

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """The parameters: BTF has no locals."""
        return self.parameters(function)

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """Variables of that name: per-CPU variables, and those of the table ``kernel/symbols``."""
        found = [
            Variable(name, TypeId(self._btf.entry(each).value), "global", DieOffset(each), 0)
            for each in self._btf.named(name, ("VAR",))
        ]
        if not found:
            from fetchc.debuginfo.btf.btf_format import symbol_type

            type_id = symbol_type(self, name)
            found = [] if type_id is None else [Variable(name, type_id, "global", DieOffset(0), 0)]
        return tuple(found)

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """The values that enumerators of that name have, each with its enumeration."""
        found: dict[int, TypeId] = {}
        for number in self._btf.enumerations_with(name):
            resolved = self._types.type(TypeId(number))
            if isinstance(resolved, EnumType):
                for each, value in resolved.enumerators:
                    if each == name:
                        found.setdefault(value, TypeId(number))
        return tuple(found.items())

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """The place of an event's field or a variable; the calling convention places parameters."""
        if variable.kind == "global":
            from fetchc.debuginfo.btf.btf_format import place_of_symbol

            # BTF has entries of per-CPU variables alone.
            return place_of_symbol(variable.name, self.running, per_cpu=bool(variable.die))
        if function is not None and function.die in self._events:
            return dict(self._events[function.die])[variable]
        return Absent("no location", "BTF has no locations of variables")

    def type(self, type_id: TypeId) -> Type:
        """The type itself; typedefs and qualifiers are types of their own."""
        return self._types.type(type_id)

    def completed(self, type_id: TypeId) -> TypeId:
        """The definition of a declaration where there is exactly one; else ``type_id``."""
        declared = self._types.type(type_id)
        if not isinstance(declared, DeclaredType):
            return type_id
        found = self._btf.named(declared.name, OF_KEYWORD[declared.kind])
        return TypeId(found[0]) if len(found) == 1 else type_id

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Definitions of that name: ``struct s``, ``s``, ``int``."""
        base = base_spelling(name)
        if base is not None:
            for spelling in base.names:
                found = self._btf.named(spelling, ORDINARY)
                if found:
                    return (TypeId(found[0]),)
            if base.size is None:
                return ()
            size = ByteSize(base.size or self.word_bytes)
            if base.signed is None:
                return (self.intern(FloatType(base.names[0], size)),)
            return (self.intern(IntType(base.names[0], size, base.signed)),)
        words = unqualified(name)
        if len(words) > 1 and words[0] in OF_KEYWORD:
            return self._all(" ".join(words[1:]), OF_KEYWORD[words[0]])
        plain = " ".join(words)
        return self._all(plain, ORDINARY) or self._all(plain, TAGGED)

    def _all(self, name: str, kinds: tuple[str, ...]) -> tuple[TypeId, ...]:
        # Unlike types of one name are all handed back; BTF holds like ones once.
        return tuple([TypeId(each) for each in self._btf.named(name, kinds)])

    def type_names(self) -> Iterator[str]:
        """Names of all types, each once, with their keyword."""
        seen = set()
        for number, name in self._btf.all_named((*ORDINARY, *TAGGED)):
            keyword = KEYWORDS.get(self._btf.kind(number))
            whole = f"{keyword} {name}" if keyword else name
            if whole not in seen:
                seen.add(whole)
                yield whole

    def main_language(self) -> str:
        """C."""
        return "c"

    def intern(self, resolved: Type) -> TypeId:
        """An id for a type that BTF does not have (a cast's pointer)."""
        return self._types.intern(resolved)

    def file_offset(self, address: Address) -> FileOffset:
        """Never: a kernel's probes name functions."""
        raise DebugInfoError("FC0905", self.path, "BTF has no code, so there are no file offsets")

    def image_offset(self, address: Address, probe: Address) -> int:
        """Never: a kernel's probes name functions."""
        raise DebugInfoError("FC0905", self.path, "BTF has no addresses of variables")

    def code(self, address: Address, size: int) -> bytes:
        """None: BTF has no code."""
        return b""


class BtfEvents:
    """What BTF and a running kernel answer as :class:`~fetchc.program.protocol.KernelFacts`."""

    __slots__ = ("_program",)

    def __init__(self, program: BtfProgram) -> None:
        self._program = program

    def tracepoints(self) -> Iterator[str]:
        """By the functions that the kernel calls there."""
        for _, name in self._program._btf.all_named(("FUNC",)):
            if name.startswith(STUBS[-1]):
                yield name.removeprefix(STUBS[-1])

    def events(self) -> Iterator[str]:
        """The events of the running kernel; empty for another one, whose BTF names no groups."""
        from fetchc.debuginfo.btf.event_formats import running_events

        return running_events() if self._program.running else iter(())

    def tracepoint(self, name: str) -> Function | None:
        """The tracepoint of that name, by the function that the kernel calls there."""
        for stub in STUBS:
            found = self._program._btf.named(stub + name, ("FUNC",))
            if found:
                die = DieOffset(found[0])
                return Function(name, name, Address(0), None, die, "c", compiler_of(""), True)
        return None

    def event(self, group: str, name: str) -> Function | None:
        """The event of that name, with its fields as parameters."""
        from fetchc.debuginfo.btf.event_formats import fields_by_format, fields_by_types

        fields = fields_by_format(self._program, group, name) if self._program.running else None
        if fields is None:
            fields = fields_by_types(self._program, name)
        if fields is None:
            return None
        die = DieOffset(-1 - len(self._program._events))
        self._program._events[die] = fields
        return Function(name, f"{group}.{name}", Address(0), None, die, "c", compiler_of(""), True)


# ------------------------------------------------------------------------------
# Where the types of the running kernel begin, cached: finding them takes half of a request.
#
# Known by the kernel's build-id, a hash of all that it was linked from, its BTF included. Source:
# ld's --build-id; Documentation/ABI/stable/sysfs-kernel-notes of Linux.

NOTES = "/sys/kernel/notes"


def running_btf(name: str, data: Buffer | mmap.mmap, cache: CacheFolder | None) -> Btf:
    """The types of the running kernel, whose BTF is ``data``."""
    build_id = None if cache is None else _build_id()
    if cache is None or build_id is None:
        return Btf(name, data)
    file = CachedFile(cache, build_id, f"btf {sys.byteorder} {len(data)}", ".btf")
    cached = file.upto(file.have) if file.have and file.have % WORD == 0 else None
    if cached is not None:
        return Btf(name, data, starts=cached.cast("I"))
    btf = Btf(name, data)
    file.write(btf.starts.tobytes())
    return btf


def _build_id() -> str | None:
    try:
        with open(NOTES, "rb") as file:
            notes = file.read()
    except OSError:
        return None
    return build_id_in(notes, sys.byteorder == "little", 0, len(notes)) or None


# ------------------------------------------------------------------------------
# Opening a kernel: the running one, one of its modules, a file of BTF, the image of a kernel.

RUNNING = "/sys/kernel/btf"
LOADED = "/sys/module"  # of what is built in, too, where that has parameters or a version
MODULES = "/proc/modules"  # there where a kernel loads modules
# What uname says -> key of targets/arch.
MACHINES = {
    "x86_64": "x86_64",
    "aarch64": "aarch64",
    "riscv64": "riscv64",
    "s390x": "s390x",
    "ppc64le": "ppc64le",
    "armv7l": "arm",
    "i686": "i386",
}
NARROW = ("arm", "i386")
LARGEST = 1 << 28  # bytes of a file; images of kernels have up to 70 MB, disks far more


def open_running(name: str, root: str = RUNNING, environment: Environment = DEFAULT) -> BtfProgram:
    """The running kernel (``kernel``) or a module of it (``kernel:MODULE``)."""
    _, colon, module = name.partition(":")
    if colon and not module:
        help = f"name one, `kernel:MODULE` (those there are: `ls {root}`), or leave the colon out"
        raise DebugInfoError("FC0901", name, "no module name after the colon", help=help)
    data = _mapped(f"{root}/vmlinux") or _read(name, f"{root}/vmlinux")
    base = running_btf(name, data, environment.cache) if root == RUNNING else Btf(name, data)
    btf = base
    if module:
        path = f"{root}/{module}"
        if "/" in module or not os.path.exists(path):
            raise _no_module(name, module, root)
        btf = Btf(name, _read(name, path), base)
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        what = f"kernels for `{os.uname().machine}` are not known"
        raise DebugInfoError("FC0905", name, what)
    return BtfProgram(name, btf, machine, 4 if machine in NARROW else 8, running=root == RUNNING)


def _no_module(name: str, module: str, root: str) -> DebugInfoError:
    """It is built in, or not loaded, or came without BTF, as all modules before Linux 5.11 did."""
    what = f"the running kernel has no BTF of a module `{module}`"
    loaded = os.path.exists(f"{LOADED}/{module}/initstate")
    if root == RUNNING and not loaded:
        notes: tuple[str, ...] = ()
        if not os.path.exists(MODULES):
            notes = ("it loads no modules: all that it has is built in",)
        elif os.path.exists(f"{LOADED}/{module}"):
            notes = ("it is built in",)
        if notes:
            return DebugInfoError("FC0901", name, what, help="write `-x kernel`", notes=notes)
    if root == RUNNING and loaded:
        notes = ("it is loaded, and came without one",)
        help = "boot a kernel with CONFIG_DEBUG_INFO_BTF_MODULES=y: Linux 5.11 or later"
        return DebugInfoError("FC0901", name, what, help=help, notes=notes)
    help = f"load it: `modprobe {module}`; those with BTF: `ls {root}`"
    return DebugInfoError("FC0901", name, what, help=help)


def _mapped(path: str) -> mmap.mmap | None:
    """The kernel's own file without a copy of it, from Linux 6.16 on; None where it does not so.

    Source: btf_sysfs_vmlinux_mmap, kernel/bpf/sysfs_btf.c: private and read-only.
    """
    try:
        handle, _ = open_regular(path)
        with open(handle, "rb") as file:
            return mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    except (OSError, ValueError):
        return None  # the caller reads it, and reports it where that fails too


def _read(name: str, path: str) -> bytes:
    try:
        return read_regular(path, LARGEST)
    except FileNotFoundError:
        raise DebugInfoError(
            "FC0903",
            name,
            f"the running kernel has no BTF ({path})",
            help="it was built without CONFIG_DEBUG_INFO_BTF: name a BTF file with -x",
        ) from None
    except OSError as refused:
        raise DebugInfoError.of(path, refused) from None


def open_file(
    path: str, machine: str | None = None, of_btf: str | None = None
) -> BtfProgram | None:
    """The kernel whose BTF the file is or holds; None where it holds none.

    BTF does not name its machine: where neither ``machine`` nor the image around it does, it is
    ``of_btf``, by default the running one's.
    """
    try:
        handle, status = open_regular(path)
        with os.fdopen(handle, "rb") as file:
            if status.st_size > LARGEST:
                return None
            data = file.read(LARGEST)
    except OSError as refused:
        raise DebugInfoError.of(path, refused) from None
    if data[:2] not in (encode_number(MAGIC, 2, True), encode_number(MAGIC, 2, False)):
        from fetchc.debuginfo.btf.kernel_image import btf_of_image

        found = btf_of_image(path, data)
        if found is None:
            return None
        data, of_image = found
        machine = machine or of_image
    machine = machine or of_btf or MACHINES.get(os.uname().machine, "x86_64")
    program = BtfProgram(path, Btf(path, data), machine, 4 if machine in NARROW else 8)
    (word, *_), given = program.types_named("unsigned long", None), program.word_bytes
    size = getattr(program.type(word), "size", given)
    if size != given:
        what = f"its `unsigned long` has {size} bytes, that of {machine} {given}"
        raise DebugInfoError("FC0905", path, what, help="name its machine: --arch arm64")
    if architecture(machine).little_endian != program.little_endian:
        what = f"its numbers are not in the byte order of {machine}"
        other = "arm64" if program.little_endian else "s390x"
        raise DebugInfoError("FC0905", path, what, help=f"name its machine: --arch {other}")
    return program


if TYPE_CHECKING:

    def _is_program(opened: BtfProgram) -> Program:
        return opened
