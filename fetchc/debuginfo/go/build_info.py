"""What Go's linker writes of a program's origin: the toolchain's version, the modules.

Source: Go 1.15 to 1.27, src/debug/buildinfo, src/runtime/debug/mod.go (ParseBuildInfo),
src/cmd/link/internal/ld/data.go (buildinfo) and src/cmd/go/internal/modload/build.go.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import read_uleb
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import BuildInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.go.moduledata import Memory

__all__ = ["build_info", "build_strings"]

_LABEL = ".go.buildinfo"
_MAGIC = b"\xff Go buildinf:"
_HEADER = 32  # bytes before strings that are inline
_ALIGNMENT = 16
_INLINE = 2  # of the flags: the strings themselves follow, from 1.18 on
_LONGEST = 1 << 20  # bytes of a string: a program of 1,000 modules has 100 kB
_FRAME = 16  # bytes before and after the modules, by which the linker's input is recognized
_NO_VERSION = "(devel)"


def build_info(memory: Memory) -> BuildInfo | None:
    """The toolchain and the modules; None where the linker's note is missing or unreadable."""
    for version, modules in build_strings(memory):
        if version:
            return BuildInfo(version, tuple(_modules(modules).items()))
    return None


def build_strings(memory: Memory) -> Iterator[tuple[str, str]]:
    """The toolchain's version and the lines about modules, of each place that looks like a note."""
    for segment in sorted(memory.elf.segments, key=lambda one: not one.flags & 2):
        if not segment.file_size:
            continue
        for at in memory.elf.window(_LABEL, segment.address).find_all(_MAGIC):
            address = segment.address + at
            if address % _ALIGNMENT:
                continue
            try:
                strings = _strings(memory, address)
            except DebugInfoError:
                continue
            version, modules = [each.decode("utf-8", "replace") for each in strings]
            yield version, modules


def _strings(memory: Memory, address: int) -> tuple[bytes, bytes]:
    size, flags = memory.take(address + len(_MAGIC), 2, _LABEL)
    if flags & _INLINE:
        version, behind = _inline(memory, address + _HEADER)
        modules, _ = _inline(memory, behind)
    elif size == memory.word_bytes:
        pointers = memory.words(address + _ALIGNMENT, 2, _LABEL)
        version = _string(memory, pointers[0])
        try:
            modules = _string(memory, pointers[1])
        except DebugInfoError:  # of a program without modules: a variable that is not initialized
            modules = b""
    else:
        return b"", b""
    framed = len(modules) > 2 * _FRAME and modules[-_FRAME - 1 : -_FRAME] == b"\n"
    return version, modules[_FRAME:-_FRAME] if framed else b""


def _inline(memory: Memory, address: int) -> tuple[bytes, int]:
    # A string behind its length, and the address of what follows.
    length, taken = read_uleb(memory.take(address, 4, _LABEL) + b"\0", 0)
    text = memory.take(address + taken, min(length, _LONGEST), _LABEL)
    return text, address + taken + length


def _string(memory: Memory, address: int) -> bytes:
    start, length = memory.words(address, 2, _LABEL)
    return memory.take(start, min(length, _LONGEST), _LABEL) if length else b""


def _modules(lines: str) -> dict[str, str]:
    found: dict[str, str] = {}
    last = ""
    for line in lines.splitlines():
        kind, _, rest = line.partition("\t")
        path, _, rest = rest.partition("\t")
        version = rest.partition("\t")[0]
        if kind in ("mod", "dep"):
            last = path
            found[path] = "" if version == _NO_VERSION else version
        elif kind == "=>" and last:
            # Its code is another module's: the version is that one's, if it is the same module.
            found[last] = version if path == last and version != _NO_VERSION else ""
    return found
