"""The .NET runtimes that .ci/setup brings, and a small core library to break."""

from __future__ import annotations

from pathlib import Path

from tests.support.pewriter import Column, core_tables, image, metadata, native_number

__all__ = ["NET9", "NETCORE21", "NETCORE31", "core_image", "framework", "host", "missing"]

TOOLS = Path(__file__).parents[2] / ".toolchains"
_SHARED = "dotnetcore2/bin/shared/Microsoft.NETCore.App"
NETCORE21 = TOOLS / "dotnet-2.1.23" / _SHARED / "2.1.30"
NETCORE31 = TOOLS / "dotnet-3.1.23" / _SHARED / "3.1.23"
NET9 = TOOLS / "dotnet-9.0.1" / "package"


def missing(folder: Path) -> str | None:
    """Why the runtime of ``folder`` is not here, None where it is."""
    if (folder / "System.Private.CoreLib.dll").exists():
        return None
    option = " --dotnet-9" if folder == NET9 else ""
    return f"no .NET in {folder.relative_to(TOOLS)}: .ci/setup{option} brings it"


def framework(folder: Path, name: str = "System.Private.CoreLib") -> str:
    """The path of an assembly of a runtime."""
    return str(folder / f"{name}.dll")


def host(folder: Path) -> str:
    """The program that runs assemblies on a runtime of PyPI's package."""
    return str(folder.parents[2] / "dotnet")


def core_image() -> bytes:
    """A precompiled core library of a few types, with a bit of everything that is read."""
    made: dict[str, list[tuple[Column, ...]]] = {
        name: [tuple(row) for row in rows] for name, rows in core_tables().items()
    }
    made["TypeDef"] = [
        *made["TypeDef"],
        (1, "Base", "N", ("TypeDef", 2), 1, 1),
        (1, "Derived`1", "N", ("TypeDef", 6), 3, 2),
        (0x109, "Point", "N", ("TypeDef", 3), 6, 3),
        (2, "Inner", "", ("TypeDef", 6), 8, 3),
        (0x111, "Union", "N", ("TypeDef", 3), 9, 3),
    ]
    made["Field"] = [
        (0, "small", b"\x06\x05"),
        (0, "text", b"\x06\x0e"),
        (0, "place", b"\x06\x11" + bytes([8 << 2])),
        (0x10, "shared", b"\x06\x08"),
        (0, "many", b"\x06\x1d\x14\x08\x02\x00\x00"),
        (0, "X", b"\x06\x08"),
        (0, "Y", b"\x06\x08"),
        (0, "link", b"\x06\x12" + bytes([6 << 2])),
        (0, "a", b"\x06\x08"),
        (0, "b", b"\x06\x0b"),
    ]
    made["FieldLayout"] = [(0, 9), (4, 10)]
    made["MethodDef"] = [
        (0, 0, 0x10, "plain", b"\x00\x00\x01", 1),
        (0, 0, 0, "method", b"\x20\x02\x0e\x0e\x11" + bytes([8 << 2]), 1),
    ]
    made["Param"] = [(0, 1, "text"), (0, 2, "point")]
    made["ClassLayout"] = [(1, 16, 8)]
    made["NestedClass"] = [(9, 6)]
    made["CustomAttribute"] = [(("TypeDef", 8), ("MethodDef", 1), b"\x01\x00\x04\x00\x00\x00")]
    entries = {0: native_number(0), 1: native_number(1 << 2 | 1)}
    # One bucket of one entry, whose payload lies two bytes behind the entry's distance.
    instances = b"\x00\x02\x04\x07" + native_number(2) + b"\x00\x00"
    return image(metadata(made), b"\x55\xc3\x90\xc3", [(0, 2), (2, 4)], entries, instances)
