"""Code that a process compiled itself, by the names of its perf map or by address alone.

A perf map has names and sizes, no types: registers, words of the C convention (``$arg1``) and
numbers are what there is, and casts to types of another file that is named. Node, Java and LuaJIT
write such maps.

Source: tools/perf/Documentation/jit-interface.txt; V8, src/logging/log.cc (ComputeMarker); OpenJDK
17, src/hotspot/share/code/codeCache.cpp (CodeCache::write_perf_map).
"""

from __future__ import annotations

import platform
import re

from fetchc.debuginfo.without_dwarf import WithoutDwarf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Absent, Function
from fetchc.program.types import IntType
from fetchc.quantities import Address, ByteSize, DieOffset, FileOffset, TypeId
from fetchc.target.machines import architecture_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.perf_map_format import MapLine
    from fetchc.debuginfo.running_process import RunningProcess
    from fetchc.program.entities import Place, Variable
    from fetchc.program.protocol import Program
    from fetchc.program.types import Type

__all__ = ["PerfMapProgram"]

# V8 puts the kind and the tier before a name, and the script after it:
# `JS:*addUp /srv/app.js:1:15`.
_MARKED = re.compile(r"^(?:JS|Script|Eval|Function|LazyCompile|RegExp):[~^+*]*")
# HotSpot writes methods as Java declares them: `long Adder.addUp(int, long)`.
_DECLARED = re.compile(r"^\S+ ([\w.$<>]+)\(.*\)$")


class PerfMapProgram(WithoutDwarf):
    """Implements every question of :class:`~fetchc.program.protocol.Program`.

    ``types`` has the types of casts: C's and C++'s, or BTF.
    """

    __slots__ = (
        "_by_name", "_running", "_seen", "_types", "architecture", "build_id", "cpp", "in_kernel",
        "in_memory", "little_endian", "machine_flags", "path", "word_bytes",
    )  # fmt: skip

    def __init__(self, running: RunningProcess, types: Program | None = None) -> None:
        self._running = running
        self._types: Program | _OwnTypes = types or _OwnTypes()
        self.cpp = self._types.cpp
        self._by_name: dict[str, list[MapLine]] = {}
        self._seen = 0
        self.path = running.folder
        self.architecture = architecture_key(platform.machine())
        self.word_bytes = 8
        self.little_endian = True
        self.machine_flags = 0
        self.build_id: str | None = None
        self.in_kernel = False
        self.in_memory = True

    @property
    def identity(self) -> str:
        """Empty: it is no file."""
        return ""

    @property
    def has_debug_info(self) -> bool:
        """Whether a file has types for casts; of itself it has names alone."""
        return not isinstance(self._types, _OwnTypes)

    def debug_info_advice(self) -> tuple[tuple[str, ...], str]:
        """What to ask for instead."""
        return (), "fetch registers (`%di`) or words of the C convention (`$arg1`)"

    def main_language(self) -> str:
        """C, where a word is a number; C++ where the types are."""
        return "c++" if self._types.main_language() == "c++" else "c"

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """The newest code of that name: whole, or without the runtime's marks and the script."""
        self._take()
        lines = self._by_name.get(name, ())
        return (self._function(lines[-1]),) if lines else ()

    def _function(self, line: MapLine) -> Function:
        begin, language = Address(line.start), self.main_language()
        return Function(
            plain(line.symbol), line.symbol, begin, ByteSize(line.size), DieOffset(begin), language,
            compiler_of(""), True,
        )  # fmt: skip

    def _take(self) -> None:
        # What the map has by now. Bytecode has a line, too, and is in no executable memory.
        new = self._running.lines[self._seen :]
        self._seen += len(new)
        ranges = self._running.executable() if new else []
        for line in new:
            if any(start <= line.start < end for start, end in ranges):
                for name in dict.fromkeys((line.symbol, plain(line.symbol))):
                    self._by_name.setdefault(name, []).append(line)

    def function_at(self, address: Address) -> Function | None:
        """The newest code whose line has the address."""
        self._take()
        found = [
            line
            for lines in self._by_name.values()
            for line in lines
            if line.start <= address < line.start + line.size
        ]
        return self._function(found[-1]) if found else None

    def function_names(self) -> Iterator[str]:
        """All names of the map, as it has them."""
        self._take()
        return iter([name for name, lines in self._by_name.items() if lines[-1].symbol == name])

    def names_identity(self) -> str | None:
        """None: a process compiles on."""
        return None

    def compiled(self, function: Function, address: int) -> Function:
        """The function as it was compiled to ``address``, one of its :meth:`versions`."""
        found = [line for line in self._running.lines if line.start == address]
        return self._function(found[-1]) if found else function

    def versions(self, address: int) -> tuple[int, ...]:
        """Where the process has code now of the name with code at ``address``, the newest first."""
        self._running.read()
        self._take()
        for name, lines in self._by_name.items():
            if name == plain(name) and any(line.start == address for line in lines):
                return tuple(dict.fromkeys(line.start for line in reversed(lines)))
        return (address,)  # an address without a name

    def parameters(self, function: Function) -> tuple[Variable, ...]:
        """None: the map does not say."""
        return ()

    def result(self, function: Function) -> TypeId | None:
        """A word: the map does not say."""
        return self.intern(IntType("unsigned long", ByteSize(self.word_bytes), False))

    def variables(self, function: Function, address: Address) -> tuple[Variable, ...]:
        """None: the map does not say."""
        return ()

    def global_variables(
        self, name: str, function: Function | None, loosely: bool = False
    ) -> tuple[Variable, ...]:
        """None: the map does not say."""
        return ()

    def place(self, variable: Variable, function: Function | None, address: Address) -> Place:
        """Absent: there are no variables."""
        return Absent("no location", "a perf map describes no variables")

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        """Those of the types."""
        return self._types.enumerators(name, None)

    def type(self, type_id: TypeId) -> Type:
        """A type of a cast."""
        return self._types.type(type_id)

    def completed(self, type_id: TypeId) -> TypeId:
        """The definition of a type, where it is only declared."""
        return self._types.completed(type_id)

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        """Those of the types."""
        return self._types.types_named(name, None)

    def type_names(self) -> Iterator[str]:
        """Those of the types."""
        return self._types.type_names()

    def intern(self, resolved: Type) -> TypeId:
        """An id for a type of a cast."""
        return self._types.intern(resolved)

    def file_offset(self, address: Address) -> FileOffset:
        """Never: the code is in no file."""
        raise DebugInfoError(
            "FC0906",
            self.path,
            "this code was compiled at run time: a uprobe needs code of a file",
            help="trace it: `fetchc trace -p PID -f NAME`; it takes breakpoints for that",
        )

    def image_offset(self, address: Address, probe: Address) -> int:
        """Never: the code is in no file."""
        raise DebugInfoError("FC0905", self.path, "code of no file has no variables of its own")

    def code(self, address: Address, size: int) -> bytes:
        """Machine code of the process, none outside of executable memory."""
        return self._running.code(address, size)


class _OwnTypes:
    """Numbers and pointers to them, where no file has types."""

    cpp = None

    def __init__(self) -> None:
        self._interned: list[Type] = []

    def main_language(self) -> str:
        return "c"

    def enumerators(self, name: str, function: Function | None) -> tuple[tuple[int, TypeId], ...]:
        return ()

    def type(self, type_id: TypeId) -> Type:
        return self._interned[type_id]

    def completed(self, type_id: TypeId) -> TypeId:
        return type_id

    def types_named(self, name: str, function: Function | None) -> tuple[TypeId, ...]:
        return ()

    def type_names(self) -> Iterator[str]:
        return iter(())

    def intern(self, resolved: Type) -> TypeId:
        if resolved not in self._interned:
            self._interned.append(resolved)
        return TypeId(self._interned.index(resolved))


def plain(symbol: str) -> str:
    """A name as its author wrote it: ``addUp`` of ``JS:*addUp /srv/app.js:1:15``."""
    declared = _DECLARED.match(symbol)
    if declared:
        return declared[1]
    marked = _MARKED.match(symbol)
    return symbol[marked.end() :].partition(" ")[0] or symbol if marked else symbol


if TYPE_CHECKING:

    def _is_program(opened: PerfMapProgram) -> Program:
        return opened
