"""The Go program of some structures: it fills objects, tells every value, calls the probes.

Everything that a walk can reach lies in one variable, ``all``, whose bytes the program prints;
headers of maps and channels and what interfaces hold are printed on their own.
"""

from __future__ import annotations

from random import Random

from fetchc.conformance.go.functions import function_lines
from fetchc.conformance.go.types import (
    DYNAMIC,
    EMPTY,
    FLOATS,
    GENERIC,
    NAMED,
    NUMBERS,
    GoProbe,
    GoTypes,
)

__all__ = ["go_source"]

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
    used = [made for probe in probes for _, made in probe.variables]
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
        declared = [f"type {name} {made}" for name, made in NAMED.items()]
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
        self._room += [f"kept{probe.tag}{name} {made}" for name, made in probe.captured]
        for name, made in probe.captured + probe.parameters:
            if name == "p":
                passed.append(f"&all.{_plain(made[1:])}[1]")
                continue
            self._room.append(f"arg{probe.tag}{name} {made}")
            self._fill(made, f"all.arg{probe.tag}{name}")
            passed.append(f"all.arg{probe.tag}{name}")
        return passed

    def _returned(self, probe: GoProbe) -> list[str]:
        returned = []
        for number, (name, made) in enumerate(probe.results):
            room = f"ret{probe.tag}{name}"
            if probe.generic and not number:
                room = f"arg{probe.tag}{probe.parameters[0][0]}"
            else:
                self._room.append(f"{room} {made}")
                self._fill(made, f"all.{room}")
            returned.append(f"all.{room}")
        return returned

    def _fill(self, made: str, path: str) -> None:
        number = self._random.randrange(1, 999)
        made = self._types.under(made)
        if made in EMPTY:
            return
        if made in NUMBERS or made in FLOATS or made.startswith("complex"):
            self._setup.append(f"fill(unsafe.Pointer(&{path}), unsafe.Sizeof({path}))")
        elif made == "bool":
            self._setup.append(f"{path} = {'true' if number % 2 else 'false'}")
        elif made == "string":
            self._setup.append(
                f"*(*string)(unsafe.Pointer(&{path})) = text({number % 40}, {5 + number % 60})"
            )
        elif made == "interface{}":
            self._setup.append(f"{path} = &all.ints[{number % 8}]")
        elif made == "error":
            self._setup.append(f"{path} = fmt.Errorf(`e`)")
        elif made in DYNAMIC:
            self._dynamic(DYNAMIC[made], path)
        elif made.startswith("map"):
            self._setup.append(f"{path} = {made}{{`a`: 1, `b{number}`: 2}}")
            self._header(path)
        elif made.startswith("chan"):
            self._setup += [f"{path} = make(chan int16, {number})", f"{path} <- 1"]
            self._header(path)
        elif made.startswith("*"):
            self._setup.append(f"{path} = {self._target(made[1:])}")
        elif made.startswith("[]"):
            self._numbers += 1
            store, element = f"all.slice{self._numbers}", made[2:]
            self._room.append(f"slice{self._numbers} [4]{element}")
            self._setup.append(f"{path} = {store}[:3]")
            for index in range(4):
                self._fill(element, f"{store}[{index}]")
        elif made.startswith("["):
            count, _, element = made[1:].partition("]")
            for index in range(int(count)):
                self._fill(element, f"{path}[{index}]")
        else:
            for field in self._types.structs[made]:
                if field.name != "_":
                    self._fill(field.type, f"{path}.{field.name}")

    def _dynamic(self, made: str, path: str) -> None:
        if made[0] == "*":
            self._setup.append(f"{path} = {self._target(made[1:])}")
            return
        self._numbers += 1
        held = f"all.held{self._numbers}"
        self._room.append(f"held{self._numbers} {made}")
        self._fill(made, held)
        copy = f"(*[2]unsafe.Pointer)(unsafe.Pointer(&{path}))[1]"
        self._setup += [f"{path} = {held}", f"region({copy}, unsafe.Sizeof({held}))"]

    def _header(self, path: str) -> None:
        self._setup.append(f"region(*(*unsafe.Pointer)(unsafe.Pointer(&{path})), 32)")

    def _target(self, made: str) -> str:
        index = self._random.randrange(3)
        blocks = {"int32": "ints", "string": "strings", "[]byte": "bytes", "float64": "floats"}
        return f"&all.{blocks.get(made, _plain(made))}[{index}]"


def _methods(interface: str) -> str:
    return "Measure() int" if interface.startswith("Measured") else ""


def _plain(name: str) -> str:
    # The room of Pair[[]byte] needs a name of letters.
    return "".join({"[": "_", "]": "_", ",": "_"}.get(letter, letter) for letter in name)
