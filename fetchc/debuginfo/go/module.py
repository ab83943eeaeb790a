"""How a Go program describes itself to its run time: which Go built it, where its types are."""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.go.functable import FunctionTable
    from fetchc.debuginfo.go.memory import Memory

__all__ = ["GoVersion", "Module", "build_version", "known_version", "module"]

LABEL = "runtime.moduledata"
# Source: Go 1.15 to 1.27, src/debug/buildinfo and src/cmd/link/internal/ld/data.go (buildinfo).
_BUILD_INFO = b"\xff Go buildinf:"
_INLINE = 2  # of the flags: the version itself follows, from 1.18 on
_LONGEST_VERSION = 256
_LONGEST_TABLE = 1 << 28  # entries of a slice
_CURE = "build it with its debug information: without `-s` and `-w` in `-ldflags`"


class GoVersion(Record):
    """``text`` is what the linker wrote, ``go1.22.10``; ``minor`` its 22."""

    text: str
    minor: int


class Module(Record):
    """runtime.firstmoduledata at ``address``: what is read of it.

    The types' descriptors and names are from ``types`` to ``end``. ``listed`` are the types that
    the file lists (address, count of 4-byte offsets), ``tables`` the interface tables (address,
    count of pointers); from 1.27 on the descriptors stand one behind the other in the first
    ``described`` bytes, and the tables themselves in (address, bytes) ``itabs``.
    """

    address: int
    text: int
    types: int
    end: int
    listed: tuple[int, int]
    tables: tuple[int, int]
    described: int
    itabs: tuple[int, int]
    types_word: int


def build_version(memory: Memory) -> GoVersion | None:
    """Which Go built the program; None where the linker's note of it is missing or unreadable."""
    for segment in sorted(memory.elf.segments, key=lambda one: not one.flags & 2):
        if not segment.file_size:
            continue
        for at in memory.elf.window(LABEL, segment.address).find_all(_BUILD_INFO):
            address = segment.address + at
            found = None if address % 16 else _stated(memory, address)
            if found is not None:
                return found
    return None


def _stated(memory: Memory, address: int) -> GoVersion | None:
    label = ".go.buildinfo"
    try:
        size, flags = memory.take(address + len(_BUILD_INFO), 2, label)
        if flags & _INLINE:
            length, start = memory.number(address + 32, 1, label), address + 33
        elif size == memory.word_bytes:
            start, length = memory.words(memory.word(address + 16, label), 2, label)
        else:
            return None
        raw = memory.take(start, min(length, _LONGEST_VERSION), label)
    except DebugInfoError:
        return None
    text = raw.decode("utf-8", "replace")
    # "go1.22.10", "go1.24.1 X:noswissmap", "devel go1.23-abcdef"
    for word in text.split():
        major, _, rest = word.partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if major == "go1" and digits and len(digits) < 4:
            return GoVersion(text, int(digits))
    return None


def module(functions: FunctionTable) -> Module:
    """The description of the program with that table; DebugInfoError where it is not found."""
    memory = functions.memory
    index, mark = functions.module_mark
    for address in memory.holding(functions.address):
        try:
            if memory.word(address + index * memory.word_bytes, LABEL) == mark:
                return _read(memory, address)
        except DebugInfoError as refused:
            if refused.section != LABEL or "has no" not in refused.what:
                raise
    raise DebugInfoError(
        "FC0904", memory.elf.path, "nothing in the program refers to its table of functions", LABEL
    )


def known_version(memory: Memory) -> GoVersion:
    """Which Go built the program; DebugInfoError FC0905 where that is not one of the known."""
    facts = table("runtime/go/program")
    found = build_version(memory)
    if found is None:
        what = "the program does not say which version of Go built it"
        raise DebugInfoError("FC0905", memory.elf.path, what, help=_CURE)
    if not facts["first"] <= found.minor <= facts["last"]:
        what = f"without debug information, Go 1.{found.minor} is not read"
        raise DebugInfoError("FC0905", memory.elf.path, what, help=_CURE)
    return found


def _read(memory: Memory, address: int) -> Module:
    minor = known_version(memory).minor
    sequences = table("runtime/go/program")["module"]
    first = max(n for key in sequences if (n := int(key.removeprefix("since_"))) <= minor)
    places: dict[str, int] = {}
    count = 0
    for member in sequences[f"since_{first}"].split():
        name, _, words = member.partition(":")
        places[name] = count
        count += int(words or 1)
    words = memory.words(address, count, LABEL)

    def word(name: str) -> int:
        return words[places[name]] if name in places else 0

    def listed(name: str) -> tuple[int, int]:
        at = places.get(name)
        return (0, 0) if at is None else (words[at], words[at + 1])

    types, end = word("types"), word("etypes")
    if not types < end or not memory.elf.is_code(Address(word("text"))):
        raise memory.error("no types, or no code", LABEL, address)
    if max(listed("typelinks")[1], listed("itablinks")[1]) > _LONGEST_TABLE:
        raise memory.error("a list too long for any file", LABEL, address)
    return Module(
        address,
        word("text"),
        types,
        end,
        listed("typelinks"),
        listed("itablinks"),
        word("typedesclen"),
        (types + word("itaboffset"), word("itabsize")),
        places["types"],
    )
