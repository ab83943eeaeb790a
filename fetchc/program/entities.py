"""Functions, variables and where they are.

Who is asked for them is a ``Program``: :mod:`fetchc.program.protocol`.
"""

from __future__ import annotations

from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from fetchc.program.compiler import Compiler
    from fetchc.program.types import Member
    from fetchc.quantities import DieOffset, TypeId

    Absence = Literal[
        "no location",
        "vector register",
        "thread-local",
        "in pieces",
        "no address",
        "computed",
        "contradicted",
        "at return",
        "not for this probe",
    ]

__all__ = [
    "NO_LOCATION",
    "Absent",
    "Arithmetic",
    "AtAddress",
    "AtSymbol",
    "BuildInfo",
    "Caller",
    "Callers",
    "Constant",
    "EntryCollection",
    "Extent",
    "FrameRelative",
    "Function",
    "InMemory",
    "InRegister",
    "Indirect",
    "Instance",
    "Named",
    "ObjectHeader",
    "OnEntry",
    "Piece",
    "Pieces",
    "Place",
    "PointerTo",
    "Property",
    "RuntimeType",
    "StaticProbe",
    "ThreadLocal",
    "Uses",
    "Variable",
    "is_frame_relative",
    "is_on_entry",
]


class Function(Record):
    """A function with code in the file.

    ``name`` is qualified as the source does (``main.(*server).handleRequest``,
    ``ns::f``); ``symbol`` is the symbol table's name at ``address`` and may carry a
    suffix (``.isra.0``, ``.abi0``). ``die`` is its concrete DW_TAG_subprogram, None
    without debug information; then ``language`` is empty and ``compiler`` is of an empty string.
    ``external``: other files may call it. ``changed``: the compiler says that it is called in
    another way than its type tells (DW_CC_nocall); ``foreign``: that it is called by another
    convention than most.
    """

    name: str
    symbol: str
    address: Address
    size: ByteSize | None
    die: DieOffset | None
    language: str
    compiler: Compiler
    external: bool
    changed: bool = False
    foreign: bool = False


class Variable(Record):
    """A name and its declaration. ``kind``: parameter, result, local or global.

    ``die`` is the entry that has the location (the concrete one where there are two).
    ``line`` is the declaration's, 0 where unknown. ``artificial`` variables
    (``this``, Go's ``.dict``) were not written by the programmer. ``captured`` is where in a
    Go closure the variable is, in bytes; None of others, and up to Go 1.22. ``called`` is, of a
    parameter of an inlined call, the first instruction of the call's code. ``outermost``: a
    variable that a Go function has in no block of its own, as those are that it captured, and
    what a using-declaration names in no inner block of a C++ function. ``code_unknown``: it is
    declared in a block, and whether that is around the address is unknown: the debug information
    has no code of the block.
    ``elsewhere``: declared for a function of Go's assembly by the wrapper around it: ``die`` says
    where the wrapper has it, and nothing of this function's code.
    """

    name: str
    type: TypeId
    kind: str
    die: DieOffset
    line: int
    artificial: bool = False
    captured: int | None = None
    called: Address | None = None
    outermost: bool = False
    elsewhere: bool = False
    code_unknown: bool = False


class BuildInfo(Record):
    """What Go's linker wrote of a program: ``go version -m`` prints it.

    ``version`` is the toolchain's, ``go1.22.10``. ``modules`` are the main module and all that it
    needs, each with its version, which is empty where there is none: ``(devel)``, or a module that
    another one replaces.
    """

    version: str
    modules: tuple[tuple[str, str], ...]


class Instance(Record):
    """A copy of a function's body in another function, ``function``, which has called it.

    ``name`` is the copied function's, ``address`` where the copy is entered, ``die`` its
    DW_TAG_inlined_subroutine, ``call`` the line that calls (``file.c:17``), None where unknown.
    """

    name: str
    function: Function
    address: Address
    die: DieOffset
    call: str | None


class RuntimeType(Record):
    """A type as Go's run time knows it, by the descriptor that interfaces point to.

    ``name`` is what ``%T`` prints (``*dns.Msg``), ``offset`` where the descriptor is, in bytes
    from the beginning of all of them. ``direct``: an interface has the value itself in its data
    word, not the address of a copy.
    """

    name: str
    offset: int
    direct: bool


class Property(Record):
    """A property: the members that lead from the object to its value, and in ``why`` what is
    against taking that for the property. ``getter`` is the function that tells it, ``others`` are
    classes at hand that have another one.
    """

    path: tuple[Member, ...]
    why: str
    getter: str
    others: tuple[str, ...] = ()


class EntryCollection(Record):
    """The members of a .NET collection whose elements are entries of an array, ``entries``.

    The first ``used`` of them were in use; ``count`` are. ``version`` counts the changes. An entry
    has the ``key`` of a map and the ``value``; with an empty one it is the value itself. It is free
    where the number ``free``, with ``free_added`` added, is negative; empty: none is.

    With ``next`` there is no array: ``entries`` leads to the first entry, ``next`` of an entry to
    the next one. ``count`` and ``version`` are empty where the collection has neither.
    """

    entries: str
    used: str = ""
    count: str = ""
    version: str = ""
    next: str = ""
    key: str = ""
    value: str = ""
    free: str = ""
    free_added: int = 0


class ObjectHeader(Record):
    """Where the header of a .NET object says its type.

    Ways of pointers, each word at so many bytes from where the one before leads to: from a
    reference to the description of its type (``type``), from there to the name of the assembly
    (``assembly``) and to the description of an array's elements (``element``). ``row``: offset,
    bytes and lowest bit of the type's number there, of 24 bits at most and 0 of arrays. ``rank``:
    offset and bytes of a number that is ``vector`` of arrays of one dimension from 0 on, of
    others ``ranks`` and ``each_rank`` for each dimension.
    """

    type: tuple[int, ...]
    assembly: tuple[int, ...]
    element: tuple[int, ...]
    row: tuple[int, int, int]
    rank: tuple[int, int]
    vector: int
    ranks: int
    each_rank: int


class StaticProbe(Record):
    """A place that the program's author marked to be probed (USDT).

    ``address`` is the probed instruction. ``semaphore`` is the counter by which the program
    knows that somebody looks: without one, None, the probe is always passed. ``arguments`` are
    what the assembler wrote of them (``-4@%edi 8@-8(%rbp)``).
    """

    provider: str
    name: str
    address: Address
    semaphore: Address | None
    arguments: str

    @property
    def whole_name(self) -> str:
        """``provider:name``."""
        return f"{self.provider}:{self.name}"


class Callers(Record):
    """The calls of a function that the debug information lists, for a probe within it.

    ``return_address`` is the place of the address that the function returns to. ``reason`` says
    why there are none, and completes "because ...".
    """

    return_address: Place
    calls: tuple[Caller, ...]
    reason: str


class Caller(Record):
    """A call: its return address, and the places of what it passes in registers.

    The places hold at the probed instruction. What is :class:`~fetchc.program.entities.OnEntry`
    there was passed to the caller itself, of which ``outer`` knows the calls.
    """

    returns_to: Address
    values: tuple[tuple[DwarfRegister, Place], ...]
    outer: Callers | None


class Uses(Record):
    """How the file that has a function uses it.

    ``calls`` are the addresses after its direct calls that are described, which they are where
    the code is ``optimized``. ``stored``: its address may be taken other than by a call.
    """

    calls: tuple[Address, ...]
    stored: bool
    optimized: bool


class Extent(Record):
    """A place and the half-open range of addresses in which it holds."""

    start: Address
    end: Address
    place: Place


# ------------------------------------------------------------------------------
# Where a value is when the probe fires, as data; nothing here touches a process.


class InRegister(Record):
    """The value is the register's content (its low bytes, if it is smaller)."""

    register: DwarfRegister


class InMemory(Record):
    """The object starts ``offset`` bytes from the address in ``register``."""

    register: DwarfRegister
    offset: ByteOffset


class FrameRelative(Record):
    """The object starts ``offset`` bytes from the canonical frame address (CFA)."""

    offset: ByteOffset


class AtAddress(Record):
    """The object is at a fixed address of the file (before the load bias)."""

    address: Address


class ThreadLocal(Record):
    """The object starts ``offset`` bytes from the thread pointer: each thread has one of its own.

    ``word`` is of a shared library the address in the file of a number, which the loader writes
    there, to add to ``offset``; None of an executable.
    """

    offset: ByteOffset
    word: Address | None = None


class AtSymbol(Record):
    """The object is where the running kernel has its symbol of that name.

    ``verified``: its symbol table has been read and lists exactly one. It is False for an image
    that may be of another kernel. ``per_cpu``: each processor has its own object, as far from the
    symbol as its part of the per-CPU area.
    """

    symbol: str
    verified: bool = True
    per_cpu: bool = False


class Named(Record):
    """The value is a word that the kernel gives by a name of its own: ``$arg2``, ``$prev_pid``.

    ``rule`` is its key among the bases of ``targets/kernel``. ``text``: the value is a string.
    """

    rule: str
    name: str
    text: bool = False


class Indirect(Record):
    """The object starts ``offset`` bytes from the address that the word at ``pointer`` contains."""

    pointer: Place
    offset: ByteOffset


class Constant(Record):
    """The value is a constant, not in memory. ``size`` is in bytes, None where its type says it."""

    value: int
    size: ByteSize | None = None


class Piece(Record):
    """Part of a value: bytes [offset, offset+size) of the object are at ``place``."""

    offset: ByteOffset
    size: ByteSize
    place: Place


class Pieces(Record):
    """A value spread over several places, or a part of one whole register."""

    pieces: tuple[Piece, ...]


class PointerTo(Record):
    """The value is the address ``offset`` bytes into ``target``; the value is not in memory.

    ``target`` may be in no memory either: then there is no address, but a fetch of the
    pointer's target is possible.
    """

    target: Place
    offset: ByteOffset


class Arithmetic(Record):
    """The value is what an operation of DWARF gives for words; it is not in memory.

    ``operation`` is the name after ``DW_OP_``: ``and``, ``div``, ``shl``. The operands are in the
    order in which they came onto the stack; of ``deref_size`` the first one is the word that is
    there. The value is a word, of which a smaller variable has the low bytes. Source: DWARF 5,
    sections 2.5.1.3 and 2.5.1.4.
    """

    operation: str
    operands: tuple[Place, ...]


class OnEntry(Record):
    """The value is what the register contained at the function's entry and no longer contains.

    No place in the function has it; its callers may (``Program.callers``).
    """

    register: DwarfRegister


# Why a value cannot be fetched, and the code of the diagnostic that says so.
ABSENCES: dict[Absence, str] = {
    "no location": "FC0401",
    "vector register": "FC0402",
    "thread-local": "FC0403",
    "in pieces": "FC0404",
    "no address": "FC0405",
    "computed": "FC0406",
    "contradicted": "FC0407",
    "at return": "FC0410",
    "not for this probe": "FC0507",
}


class Absent(Record):
    """The value cannot be fetched here. ``kind`` says why, ``reason`` in words.

    ``reason`` completes "because ...".
    """

    kind: Absence
    reason: str

    @property
    def code(self) -> str:
        """The code of the diagnostic that refuses it."""
        return ABSENCES[self.kind]


NO_LOCATION = Absent("no location", "the compiler gives it no location (it was optimized out)")

Place = (
    InRegister
    | InMemory
    | FrameRelative
    | AtAddress
    | ThreadLocal
    | AtSymbol
    | Named
    | Indirect
    | Constant
    | Pieces
    | PointerTo
    | Arithmetic
    | OnEntry
    | Absent
)


def is_frame_relative(place: Place) -> bool:
    """Whether a part of the place counts from the canonical frame address."""
    match place:
        case FrameRelative():
            return True
        case Indirect(pointer):
            return is_frame_relative(pointer)
        case PointerTo(target):
            return is_frame_relative(target)
        case Arithmetic(_, operands):
            return any(is_frame_relative(operand) for operand in operands)
        case Pieces(pieces):
            return any(is_frame_relative(piece.place) for piece in pieces)
        case _:
            return False


def is_on_entry(place: Place) -> bool:
    """Whether a part of the place is what a register contained on entry."""
    match place:
        case OnEntry():
            return True
        case Indirect(pointer):
            return is_on_entry(pointer)
        case PointerTo(target):
            return is_on_entry(target)
        case Arithmetic(_, operands):
            return any(is_on_entry(operand) for operand in operands)
        case Pieces(pieces):
            return any(is_on_entry(piece.place) for piece in pieces)
        case _:
            return False
