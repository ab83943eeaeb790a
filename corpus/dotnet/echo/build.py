#!/usr/bin/env python3
"""Write the images of this folder: a program and a core library as compilers of .NET would.

No compiler that precompiles .NET can be had from package registries, so that the images are put
together here, row by row. The code is a return instruction a method; nothing can run it.
``images()`` gives their bytes by name; run as a program it writes them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

from tests.support.pewriter import Column, image, metadata, native_number  # noqa: E402

OUTPUT = Path(__file__).parent / "bin"
CORE = "System.Private.CoreLib"
LINUX_X86_64 = 0x8664 ^ 0x7B79
PUBLIC, SEALED_SEQUENTIAL, ABSTRACT_METHOD, STATIC = 1, 0x109, 0x400, 0x10
# Signature codes: ECMA-335, II.23.1.16.
VOID, BOOL, BYTE, INT, LONG, STRING = b"\x01", b"\x02", b"\x05", b"\x08", b"\x0a", b"\x0e"
FIRST_ARGUMENT = b"\x13\x00"

Row = Sequence[Column]


def type_row(kind: str, number: int) -> bytes:
    """A TypeDefOrRef index of a signature."""
    return bytes([number << 2 | ("TypeDef", "TypeRef", "TypeSpec").index(kind)])


def a_class(kind: str, number: int) -> bytes:
    """The signature of a class."""
    return b"\x12" + type_row(kind, number)


def a_value(kind: str, number: int) -> bytes:
    """The signature of a structure or an enumeration."""
    return b"\x11" + type_row(kind, number)


def instance(of: bytes, *arguments: bytes) -> bytes:
    """The signature of an instantiation."""
    return b"\x15" + of + bytes([len(arguments)]) + b"".join(arguments)


def method(receives: bool, result: bytes, *parameters: bytes) -> bytes:
    """The signature of a method."""
    return bytes([0x20 * receives, len(parameters)]) + result + b"".join(parameters)


class Tables:
    """Rows of one image, types with their fields and methods in order."""

    def __init__(self, name: str) -> None:
        self.rows: dict[str, list[Row]] = {
            "Module": [(0, f"{name}.dll", 0, 0, 0)],
            "Assembly": [(0, 4, 0, 0, 0, 0, b"", name, "")],
            "TypeDef": [(0, "<Module>", "", ("TypeDef", 0), 1, 1)],
        }
        self.code = b""
        self.functions: list[tuple[int, int]] = []
        self.entries: dict[int, bytes] = {}

    def count(self, table: str) -> int:
        return len(self.rows.get(table, []))

    def add(self, table: str, *row: Column) -> int:
        self.rows.setdefault(table, []).append(row)
        return self.count(table)

    def type(self, flags: int, name: str, base: tuple[str, int]) -> int:
        namespace, _, short = name.rpartition(".")
        first = (self.count("Field") + 1, self.count("MethodDef") + 1)
        return self.add("TypeDef", flags, short, namespace, base, *first)

    def field(self, name: str, signature: bytes, flags: int = 0) -> int:
        return self.add("Field", flags, name, b"\x06" + signature)

    def method(
        self, name: str, signature: bytes, parameters: str = "", flags: int = 0, size: int = 16
    ) -> None:
        first = self.count("Param") + 1
        row = self.add("MethodDef", 0, 0, flags, name, signature, first)
        for position, one in enumerate(parameters.split(), 1):
            self.add("Param", 0, position, one)
        if size:
            start = len(self.code)
            self.code += b"\xc3".ljust(size, b"\xcc")
            self.functions.append((start, start + size))
            self.entries[row - 1] = native_number((len(self.functions) - 1) << 1)

    def image(self, machine: int) -> bytes:
        return image(metadata(self.rows), self.code, self.functions, self.entries, b"", machine)


def core(machine: int) -> bytes:
    """The types of a core library that the program needs."""
    made = Tables(CORE)
    made.type(PUBLIC, "System.Object", ("TypeDef", 0))
    made.method(".ctor", method(True, VOID))
    made.type(PUBLIC, "System.ValueType", ("TypeDef", 2))
    made.type(PUBLIC, "System.Enum", ("TypeDef", 3))
    made.type(PUBLIC, "System.String", ("TypeDef", 2))
    made.type(PUBLIC, "System.__Canon", ("TypeDef", 2))
    made.type(PUBLIC, "System.Collections.Generic.List`1", ("TypeDef", 2))
    made.field("_items", b"\x1d" + FIRST_ARGUMENT)
    made.field("_size", INT)
    made.field("_version", INT)
    made.add("GenericParam", 0, 0, ("TypeDef", 7), "T")
    made.type(SEALED_SEQUENTIAL, "System.Nullable`1", ("TypeDef", 3))
    made.field("hasValue", BOOL)
    made.field("value", FIRST_ARGUMENT)
    made.add("GenericParam", 0, 0, ("TypeDef", 8), "T")
    return made.image(machine)


def sample(machine: int) -> bytes:
    """The program of the write-up, and a request of every kind of member."""
    made = Tables("sample")
    reference = made.add("AssemblyRef", 4, 0, 0, 0, 0, b"", CORE, "", b"")
    known = {
        name.rpartition(".")[2]: made.add(
            "TypeRef", ("AssemblyRef", reference), name.rpartition(".")[2], name.rpartition(".")[0]
        )
        for name in (
            "System.Object", "System.ValueType", "System.Enum",
            "System.Collections.Generic.List`1", "System.Nullable`1",
        )
    }  # fmt: skip
    base = ("TypeRef", known["Object"])
    a_list = a_class("TypeRef", known["List`1"])
    nullable = a_value("TypeRef", known["Nullable`1"])
    point, colour, request = 2, 3, 5  # rows of the types below
    made.type(SEALED_SEQUENTIAL, "sample.Point", ("TypeRef", known["ValueType"]))
    made.field("X", INT)
    made.field("Y", INT)
    made.field("Z", BYTE)
    made.type(PUBLIC, "sample.Colour", ("TypeRef", known["Enum"]))
    made.field("value__", INT)
    for value, name in enumerate(("Red", "Green")):
        row = made.field(name, a_value("TypeDef", colour), 0x8050)
        made.add("Constant", 0x08, ("Field", row), value.to_bytes(4, "little"))
    made.type(PUBLIC, "sample.Message", base)
    made.field("<Id>k__BackingField", LONG)
    made.field("flag", BOOL)
    made.type(PUBLIC, "sample.Request", ("TypeDef", 4))
    made.field("<Name>k__BackingField", STRING)
    made.field("colour", a_value("TypeDef", colour))
    made.field("at", a_value("TypeDef", point))
    made.field("numbers", instance(a_list, INT))
    made.field("names", b"\x1d" + STRING)
    made.field("limit", instance(nullable, INT))
    made.field("next", a_class("TypeDef", request))
    made.type(PUBLIC, "sample.Providers.EchoProvider", base)
    made.method("calculateEchoValue", method(True, STRING, STRING), "echo")
    made.type(PUBLIC, "sample.Providers.FibonacciProvider", base)
    made.method("calculateFibonacciValue", method(True, INT, INT), "pos")
    made.type(PUBLIC, "sample.Server", base)
    owned = a_class("TypeDef", request)
    made.method("Handle", method(True, BOOL, owned), "request", size=48)
    made.method("Handle", method(True, BOOL, STRING, INT), "text count")
    made.method(
        "Move", method(False, a_value("TypeDef", point), owned, a_value("TypeDef", point), INT),
        "request by times", STATIC,
    )  # fmt: skip
    made.method("Receive", method(True, VOID, a_class("TypeDef", 4), b"\x1c"), "message box")
    made.method("Stop", method(True, VOID), flags=ABSTRACT_METHOD, size=0)
    made.method("Late", method(True, VOID), size=0)
    return made.image(machine)


def images(machine: int = LINUX_X86_64) -> dict[str, bytes]:
    """The bytes of every image, by file name."""
    program = sample(machine)
    return {f"{CORE}.dll": core(machine), "sample.dll": program, "alone/sample.dll": program}


if __name__ == "__main__":
    for name, content in images().items():
        (OUTPUT / name).parent.mkdir(parents=True, exist_ok=True)
        (OUTPUT / name).write_bytes(content)
