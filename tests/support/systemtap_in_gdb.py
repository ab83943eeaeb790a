"""Run by gdb: a script of SystemTap on a program, each probe by a breakpoint, as its rules say.

``FETCHC_STAP`` names a folder with ``script.stp``; what the script prints is written to ``output``
there. The expressions that fetchc writes mean the same in Python, but for the width of numbers.
Rules: systemtap, tapset/uconversions.stp (functions that end in _error raise an error where memory
cannot be read, user_string_n takes N bytes up to a NUL), the language's reference, chapters 2 and 8
(numbers have 64 bits and a sign).
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import gdb  # type: ignore[import-untyped]

FOLDER = os.environ["FETCHC_STAP"]
PROBE = re.compile(
    r'probe process\("([^"]+)"\)\.statement\((0x[0-9a-f]+)\)\n\{\n(.*?)\n\}', re.DOTALL
)
READ = re.compile(r'    try \{ (v\d+) = (.*) \} catch \{ \1 = "\(fault\)" \}  // .*')
LONGEST = 511  # bytes of a string: MAXSTRINGLEN with its NUL


def signed(value: int, bits: int = 64) -> int:
    """The number that the low bits are in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def memory(address: int, size: int) -> bytes:
    """Bytes of the stopped program; raises gdb.MemoryError where there are none."""
    return bytes(gdb.selected_inferior().read_memory(address & (1 << 64) - 1, size))


def user_string_n(address: int, count: int) -> str:
    """What the tapset's function of that name returns."""
    found = b""
    while len(found) < min(max(count, 0), LONGEST - 1):
        byte = memory(address + len(found), 1)
        if byte == b"\0":
            break
        found += byte
    return found.decode("utf-8", "surrogateescape")


def sprintf(format: str, *values: object) -> str:
    """The conversions that fetchc writes; a string ends after as many bytes as one has."""
    parts = iter(values)

    def one(found: "re.Match[str]") -> str:
        value: Any = next(parts)
        if found[1] == "s":
            return str(value)
        value = signed(value) if found[1] == "d" else value & (1 << 64) - 1
        return f"{value:x}" if found[1] == "x" else str(value)

    whole = re.sub("%([sdux])", one, format).encode("utf-8", "surrogateescape")
    return whole[:LONGEST].decode("utf-8", "surrogateescape")


NAMES: dict[str, object] = {
    "register": lambda name: signed(int(gdb.selected_frame().read_register(name))),
    "user_string": lambda address: user_string_n(address, LONGEST),
    "user_string_n": user_string_n,
    "sprintf": sprintf,
    "execname": lambda: os.path.basename(gdb.current_progspace().filename)[:15],
    "tid": lambda: gdb.selected_thread().ptid[1],
}
for bits in (8, 16, 32, 64):
    NAMES[f"user_uint{bits}_error"] = lambda address, bits=bits: signed(
        int.from_bytes(memory(address, bits // 8), "little")
    )
    NAMES[f"user_int{bits}_error"] = lambda address, bits=bits: signed(
        int.from_bytes(memory(address, bits // 8), "little"), bits
    )


class Probe(gdb.Breakpoint):  # type: ignore[misc]
    """A statement probe: each hit prints a line, and the program goes on."""

    def __init__(self, address: int, body: str, lines: list[str]) -> None:
        super().__init__(f"*{address:#x}", internal=True)
        *reads, shown = body.split("\n")
        found = [READ.fullmatch(line) for line in reads]
        assert all(found), body
        self.reads = [(one[1], compile(one[2], one[2], "eval")) for one in found if one]
        printed = re.fullmatch(r"    printf\((.*)\)", shown)
        assert printed, shown
        self.printed = compile(f"printf({printed[1]})", shown, "eval")
        self.lines = lines

    def stop(self) -> bool:
        """Evaluate the body; never stop for somebody."""
        values: dict[str, object] = {}
        for name, expression in self.reads:
            try:
                values[name] = eval(expression, NAMES)
            except gdb.MemoryError:
                values[name] = "(fault)"

        def printf(format: str, *shown: object) -> None:
            texts = iter(shown)
            self.lines.append(re.sub("%[sd]", lambda _: str(next(texts)), format))

        eval(self.printed, {**NAMES, **values, "printf": printf})
        return False


def load_bias(path: str) -> int:
    """What is added to an address of the file in the process."""
    with open(path, "rb") as file:
        if file.read(18)[16] == 2:  # ET_EXEC
            return 0
    pid = gdb.selected_inferior().pid
    with open(f"/proc/{pid}/maps") as maps:
        starts = [int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(path)]
    return min(starts)


def probes(text: str, lines: list[str]) -> Iterator[Probe]:
    """The probes of a script."""
    for path, address, body in PROBE.findall(text):
        yield Probe(int(address, 16) + load_bias(path), body, lines)


def main() -> None:
    """Run the program to its end with the probes."""
    for setting in ("pagination off", "confirm off", "width 0", "debuginfod enabled off"):
        gdb.execute(f"set {setting}", to_string=True)
    # A signal while gdb steps over a breakpoint makes it hit again: Go sends itself none then.
    gdb.execute("set environment GODEBUG asyncpreemptoff=1", to_string=True)
    gdb.execute("set environment GOMAXPROCS 1", to_string=True)
    gdb.execute("starti >printed", to_string=True)
    lines: list[str] = []
    with open(
        os.path.join(FOLDER, "script.stp"), encoding="utf-8", errors="surrogateescape"
    ) as file:
        own = list(probes(file.read(), lines))
    assert own
    gdb.execute("continue", to_string=True)
    with open(
        os.path.join(FOLDER, "output"), "w", encoding="utf-8", errors="surrogateescape"
    ) as out:
        out.writelines(lines)


main()
