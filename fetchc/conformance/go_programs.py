"""The Go program of some structures: it fills objects, prints every value, calls the probes.

Everything that a walk can reach lies in one variable, ``all``, whose bytes the program prints;
headers of maps and channels and what interfaces hold are printed on their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Literal

import fetchc
from fetchc.conformance.child_processes import Stop, call, refused, run_with_stops, unbuilt
from fetchc.conformance.go_drawing import (
    DYNAMIC,
    EMPTY,
    FLOATS,
    GENERIC,
    NAMED,
    NUMBERS,
    GoProbe,
    GoTypes,
    function_lines,
)
from fetchc.conformance.machine import REGISTERS, WORD, Machine, Memory
from fetchc.record import Record

__all__ = [
    "HERE",
    "KERNEL",
    "GoBuild",
    "GoRun",
    "Host",
    "Seen",
    "Site",
    "build_go",
    "go_source",
    "printed_of",
]

HEADER = """package main

import (
    "fmt"
    "math"
    "runtime"
    "unsafe"
)

func init() { runtime.LockOSThread() } // main runs on the first thread, which is traced

type Level int8
type Weight uint32
type Ratio float64
type Edge struct { e0 int32; e1 string; e2 uint16 }
func (e Edge) Measure() int { return len(e.e1) }

var sink int
var seed uint32 = 777

func fill(p unsafe.Pointer, size uintptr) {
    for i := uintptr(0); i < size; i++ {
        seed = seed*1664525 + 1013904223
        *(*byte)(unsafe.Pointer(uintptr(p) + i)) = byte(seed >> 24)
    }
}
func text(start, size int) (s string) {
    words := (*[2]uintptr)(unsafe.Pointer(&s))
    words[0], words[1] = uintptr(unsafe.Pointer(&all.texts[start])), uintptr(size)
    return
}
func region(p unsafe.Pointer, size uintptr) {
    fmt.Printf("region %x ", uintptr(p))
    for i := uintptr(0); i < size; i++ {
        fmt.Printf("%02x", *(*byte)(unsafe.Pointer(uintptr(p) + i)))
    }
    fmt.Println()
}
func truth(b bool) int { if b { return 1 }; return 0 }
func words(p unsafe.Pointer, n int) {
    for _, word := range (*[3]uintptr)(p)[:n] { fmt.Printf(" %d", word) }
}
var _ = math.Pi
"""


def go_source(types: GoTypes, probes: list[GoProbe], salt: int = 0) -> str:
    """The program; ``salt`` fills it with other bytes."""
    used = [go_type for probe in probes for _, go_type in probe.variables]
    return _Emission(types, types.reached(used), salt).source(probes)


class _Emission:
    def __init__(self, types: GoTypes, structs: list[str], salt: int) -> None:
        self._types = types
        self._random = Random(salt)
        self._salt = salt
        self._structs = structs
        self._numbers = 0
        self._room: list[str] = []
        self._setup: list[str] = []

    def source(self, probes: list[GoProbe]) -> str:
        declared = [f"type {name} {go_type}" for name, go_type in NAMED.items()]
        declared += [f"type {name} interface {{ {_methods(name)} }}" for name in DYNAMIC]
        for name in self._structs:
            if name not in self._types.given:
                declared.append(f"type {name} struct {{ {self._fields(name)} }}")
            self._room.append(f"{_plain(name)} [3]{name}")
        if self._types.generics:
            declared += [f"type {it}" for it in GENERIC]
        for name in self._structs:
            for index in range(3):
                self._fill(name, f"all.{_plain(name)}[{index}]")
        functions, calls = [], []
        for probe in probes:
            functions += function_lines(probe)
            passed = self._passed(probe) + self._returned(probe)
            calls.append(f"tell{probe.tag}({', '.join(passed)})")
        room = ["before [64]byte", "texts [512]byte", "ints [8]int32", "strings [3]string"]
        room += ["bytes [3][]byte", "floats [3]float64", *self._room, "after [512]byte"]
        setup = [f"seed += {self._salt}"]
        setup += ["fill(unsafe.Pointer(&all.texts), 512)", "fill(unsafe.Pointer(&all.ints), 32)"]
        setup += ["fill(unsafe.Pointer(&all.floats), 24)"]
        setup += ["for i := range all.strings { all.strings[i] = text(i, 7 + i) }"]
        setup += ["for i := range all.bytes { all.bytes[i] = all.texts[i:9 + i:90] }"]
        parts = [HEADER, *declared, "var all struct {", *room, "}", *functions]
        parts += ["func main() {", *setup, *self._setup, *calls]
        return "\n".join([*parts, "region(unsafe.Pointer(&all), unsafe.Sizeof(all))", "}", ""])

    def _fields(self, name: str) -> str:
        fields = self._types.structs[name]
        return "; ".join(it.type if it.embedded else f"{it.name} {it.type}" for it in fields)

    def _passed(self, probe: GoProbe) -> list[str]:
        passed = []
        self._room += [f"kept{probe.tag}{name} {go_type}" for name, go_type in probe.captured]
        for name, go_type in probe.captured + probe.parameters:
            if name == "p":
                passed.append(f"&all.{_plain(go_type[1:])}[1]")
                continue
            self._room.append(f"arg{probe.tag}{name} {go_type}")
            self._fill(go_type, f"all.arg{probe.tag}{name}")
            passed.append(f"all.arg{probe.tag}{name}")
        return passed

    def _returned(self, probe: GoProbe) -> list[str]:
        returned = []
        for number, (name, go_type) in enumerate(probe.results):
            room = f"ret{probe.tag}{name}"
            if probe.generic and not number:
                room = f"arg{probe.tag}{probe.parameters[0][0]}"
            else:
                self._room.append(f"{room} {go_type}")
                self._fill(go_type, f"all.{room}")
            returned.append(f"all.{room}")
        return returned

    def _fill(self, go_type: str, path: str) -> None:
        number = self._random.randrange(1, 999)
        go_type = self._types.under(go_type)
        if go_type in EMPTY:
            return
        if go_type in NUMBERS or go_type in FLOATS or go_type.startswith("complex"):
            self._setup.append(f"fill(unsafe.Pointer(&{path}), unsafe.Sizeof({path}))")
        elif go_type == "bool":
            self._setup.append(f"{path} = {'true' if number % 2 else 'false'}")
        elif go_type == "string":
            self._setup.append(
                f"*(*string)(unsafe.Pointer(&{path})) = text({number % 40}, {5 + number % 60})"
            )
        elif go_type == "interface{}":
            self._setup.append(f"{path} = &all.ints[{number % 8}]")
        elif go_type == "error":
            self._setup.append(f"{path} = fmt.Errorf(`e`)")
        elif go_type in DYNAMIC:
            self._dynamic(DYNAMIC[go_type], path)
        elif go_type.startswith("map"):
            self._setup.append(f"{path} = {go_type}{{`a`: 1, `b{number}`: 2}}")
            self._header(path)
        elif go_type.startswith("chan"):
            self._setup += [f"{path} = make(chan int16, {number})", f"{path} <- 1"]
            self._header(path)
        elif go_type.startswith("*"):
            self._setup.append(f"{path} = {self._target(go_type[1:])}")
        elif go_type.startswith("[]"):
            self._numbers += 1
            store, element = f"all.slice{self._numbers}", go_type[2:]
            self._room.append(f"slice{self._numbers} [4]{element}")
            self._setup.append(f"{path} = {store}[:3]")
            for index in range(4):
                self._fill(element, f"{store}[{index}]")
        elif go_type.startswith("["):
            count, _, element = go_type[1:].partition("]")
            for index in range(int(count)):
                self._fill(element, f"{path}[{index}]")
        else:
            for field in self._types.structs[go_type]:
                if field.name != "_":
                    self._fill(field.type, f"{path}.{field.name}")

    def _dynamic(self, go_type: str, path: str) -> None:
        if go_type[0] == "*":
            self._setup.append(f"{path} = {self._target(go_type[1:])}")
            return
        self._numbers += 1
        value = f"all.held{self._numbers}"
        self._room.append(f"held{self._numbers} {go_type}")
        self._fill(go_type, value)
        copy = f"(*[2]unsafe.Pointer)(unsafe.Pointer(&{path}))[1]"
        self._setup += [f"{path} = {value}", f"region({copy}, unsafe.Sizeof({value}))"]

    def _header(self, path: str) -> None:
        self._setup.append(f"region(*(*unsafe.Pointer)(unsafe.Pointer(&{path})), 32)")

    def _target(self, go_type: str) -> str:
        index = self._random.randrange(3)
        blocks = {"int32": "ints", "string": "strings", "[]byte": "bytes", "float64": "floats"}
        return f"&all.{blocks.get(go_type, _plain(go_type))}[{index}]"


def _methods(interface: str) -> str:
    return "Measure() int" if interface.startswith("Measured") else ""


def _plain(name: str) -> str:
    # The room of Pair[[]byte] needs a name of letters.
    return "".join({"[": "_", "]": "_", ",": "_"}.get(letter, letter) for letter in name)


# ------------------------------------------------------------------------------
# Building and running a drawn Go program, and what it prints.
#
# It prints ``region ADDRESS HEX`` of memory and ``value TAG N ITEM...`` as Go evaluates it; its
# registers and stack at the probes are read by ptrace.

KERNEL = "6.12"
_BUILD_SECONDS, _RUN_SECONDS = 300, 60
# The kernel's names by DWARF number: System V ABI, AMD64 supplement, figure 3.36.
_NAMES = dict(enumerate(["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"]))
_NAMES |= {number: f"r{number}" for number in range(8, 16)}


class GoBuild(Record):
    """A Go toolchain and options of ``go build``; ``version`` is that of the toolchain."""

    command: str
    version: tuple[int, int]
    options: tuple[str, ...]
    environment: Mapping[str, str]

    def __str__(self) -> str:
        return " ".join([f"go{self.version[0]}.{self.version[1]}", *self.options])

    @property
    def generics(self) -> bool:
        """Whether the language has type parameters."""
        return self.version >= (1, 18)

    def line(self, file: Path | str, binary: Path | str) -> tuple[str, ...]:
        """The command that builds ``binary`` from the source ``file``."""
        return (
            *(self.command, "build", "-trimpath"),
            *(*self.options, "-o", str(binary), str(file)),
        )


def build_go(source: str, build: GoBuild, folder: Path) -> Path:
    """Build a program in ``folder``; raises ConformanceError where Go does not take it (FC0802)."""
    file, binary = folder / "drawn.go", folder / "drawn"
    file.write_text(source)
    binary.unlink(missing_ok=True)
    line = build.line(file, binary)
    done = call(line, folder, _BUILD_SECONDS, build.environment)
    if done.status or not binary.exists():
        lines = [it for it in done.errors.splitlines() if it.strip() and it[0] != "#"]
        help = "build a Go program by hand with these options, or name another toolchain"
        raise unbuilt(build, done, help, (lines or ["it said nothing"])[0])
    return binary


class Seen(Record):
    """A stopped thread: registers by the kernel's names, and the stack from its pointer on.

    ``vectors`` are empty where nothing shows them.
    """

    registers: Mapping[str, int]
    vectors: tuple[bytes, ...]
    stack: bytes


class Host(Record):
    """Where drawn programs run: what stops them at addresses, and the kernel's words there."""

    run: Callable[[Path, Iterable[int]], tuple[str, dict[int, Seen]]]
    kernel: str = KERNEL
    names: frozenset[str] = REGISTERS
    word: int = WORD
    order: Literal["little", "big"] = "little"
    stack: str = "sp"
    result: str = "ax"
    returns: bool = True  # whether fetchc finds a function's returns there


class Site(Record):
    """A probe point, and the thread that stopped there."""

    point: fetchc.Probe
    machine: Machine
    vectors: tuple[bytes, ...]


class GoRun:
    """One program that was built and stopped at every probe, and what it printed."""

    def __init__(
        self, source: str, probes: list[GoProbe], build: GoBuild, folder: Path, host: Host
    ) -> None:
        binary = build_go(source, build, folder)
        program = fetchc.open(str(binary))
        self._host = host
        self._points: dict[tuple[str, str], list[fetchc.Probe]] = {}
        for it in probes:
            entry = program.probe(it.function, kernel=host.kernel)
            self._points[it.tag, "entry"] = [entry]
            if it.results and host.returns:
                left = program.probe(it.function, returns=True, kernel=host.kernel)
                self._points[it.tag, "leave"] = [each for each, _ in left.each()]
        self._binary = binary
        self.run()

    def run(self) -> None:
        """Run it, once more perhaps: its values are those of the last run."""
        addresses = [each.address for found in self._points.values() for each in found]
        printed, self._seen = self._host.run(self._binary, addresses)
        self._regions, self.values = printed_of(printed)

    def printed_values(self) -> dict[tuple[str, int], list[int | bytes]]:
        """The values of a run that nothing stops.

        Raises ConformanceError FC0805 where it does not run to its end.
        """
        done = call([str(self._binary)], self._binary.parent, _RUN_SECONDS, built="go")
        if done.status:
            raise refused(
                "FC0805",
                f"a program built by Go {done.ending}",
                "run a program of this toolchain by hand",
                *([f"it said: {done.complaint}"] if done.complaint else []),
            )
        return printed_of(done.output)[1]

    def sites(self, probe: GoProbe) -> dict[str, Site]:
        """Where the program stopped for the probe, by stage: its entry, and where it left."""
        found = {}
        for (tag, stage), points in self._points.items():
            if tag == probe.tag:
                (point,) = [each for each in points if each.address in self._seen]
                found[stage] = self._site(point)
        return found

    def _site(self, point: fetchc.Probe) -> Site:
        # Go's programs are where their files say.
        host, seen = self._host, self._seen[point.address]
        machine = Machine(
            seen.registers,
            Memory(self._regions | {seen.registers[host.stack]: seen.stack}),
            point.address - point.offset,
            word=host.word,
            order=host.order,
            names=host.names,
            stack=host.stack,
            result=host.result,
        )
        return Site(point, machine, seen.vectors)


def printed_of(
    printed: str,
) -> tuple[dict[int, bytes], dict[tuple[str, int], list[int | bytes]]]:
    """What a run printed: memory by its first address, the values by tag and number."""
    regions, values = {}, {}
    for line in printed.splitlines():
        word, name, rest, *items = line.split(" ")
        if word == "region":
            regions[int(name, 16)] = bytes.fromhex(rest)
        else:
            read = [bytes.fromhex(it[1:]) if it[:1] == "t" else int(it) for it in items]
            values[name, int(rest)] = read
    return regions, values


def _stopped(binary: Path, addresses: Iterable[int]) -> tuple[str, dict[int, Seen]]:
    printed, stops = run_with_stops(binary, addresses)
    return printed, {address: _seen(stop) for address, stop in stops.items()}


def _seen(stop: Stop) -> Seen:
    registers = {
        name: int.from_bytes(stop.registers[number][:8], "little")
        for number, name in _NAMES.items()
    }
    vectors = tuple(stop.registers[17 + number] for number in range(16))
    return Seen(registers, vectors, stop.stack)


HERE = Host(_stopped)  # Linux on x86-64, by ptrace
