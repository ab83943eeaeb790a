"""The .NET runtimes that .ci/setup brings, and a small core library to break."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.dotnet_bundle import with_program
from tests.support.pewriter import Column, core_tables, image, metadata, native_number

__all__ = [
    "BUNDLES",
    "NET8",
    "NET9",
    "NET10",
    "NETCORE21",
    "NETCORE31",
    "ahead_of_time",
    "bundled",
    "compiled",
    "core_image",
    "framework",
    "host",
    "missing",
    "require_mono",
]

TOOLS = Path(__file__).parents[2] / ".toolchains"
_SHARED = "dotnetcore2/bin/shared/Microsoft.NETCore.App"
NETCORE21 = TOOLS / "dotnet-2.1.23" / _SHARED / "2.1.30"
NETCORE31 = TOOLS / "dotnet-3.1.23" / _SHARED / "3.1.23"
NET8 = TOOLS / "dotnet-8.0.30" / "libraries"
NET9 = TOOLS / "dotnet-9.0.1" / "package"
NET10 = TOOLS / "dotnet-10.0.9"
_OPTIONS = {NET8: " --dotnet-8", NET9: " --dotnet-9", NET10: " --dotnet-10"}
BUNDLES = {NET8: NET8.parent / "Sarif.Multitool", NET10: NET10 / "azmcp"}
"""The programs of one file that have a runtime within them."""


def missing(folder: Path) -> str | None:
    """Why the runtime of ``folder`` is not here, None where it is."""
    core = folder / "System.Private.CoreLib.dll"
    if (BUNDLES[folder] if folder == NET10 else core).exists():
        return None
    option = _OPTIONS.get(folder, "")
    return f"no .NET in {folder.relative_to(TOOLS)}: .ci/setup{option} brings it"


def framework(folder: Path, name: str = "System.Private.CoreLib") -> str:
    """The path of an assembly of a runtime."""
    return str(folder / f"{name}.dll")


def compiled(source: Path, output: Path) -> Path:
    """An assembly, compiled against the library of 2.1, which newer runtimes have too.

    Skips the test where the compiler or the library is not there.
    """
    if shutil.which("mcs") is None:
        pytest.skip("no mcs: .ci/setup installs it")
    if reason := missing(NETCORE21):
        pytest.skip(reason)
    references = [f"-r:{path}" for path in sorted(NETCORE21.glob("System*.dll"))]
    command = ["mcs", "-nostdlib", "-noconfig", f"-out:{output}", *references, str(source)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return output


def require_mono() -> None:
    """Skip the test where Mono cannot compile ahead of time."""
    for tool in ("mcs", "mono", "as", "ld"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}: .ci/setup installs it")


def ahead_of_time(source: Path, assembly: Path) -> Path:
    """An assembly, with its code by Mono's compiler beside it; skips the test without a tool."""
    require_mono()
    compiler = ["mcs", "-debug", "-langversion:latest", f"-out:{assembly}", str(source)]
    ahead = ["mono", "--debug", f"--aot=dwarfdebug,outfile={assembly}.so", str(assembly)]
    for command in (compiler, ahead):
        subprocess.run(command, check=True, timeout=120, capture_output=True)
    return assembly


def bundled(program: Path, runtime: Path = NET8) -> Path:
    """The assembly as a program in one file, with its runtime; the file is beside it."""
    bundle = BUNDLES[runtime]
    if not bundle.exists():
        where = bundle.relative_to(TOOLS)
        pytest.skip(f"there is no {where}: .ci/setup{_OPTIONS[runtime]} brings it")
    made = program.with_suffix("")
    if not made.exists():
        content = with_program(bundle.read_bytes(), f"{bundle.name}.dll", program.read_bytes())
        made.write_bytes(content)
        made.chmod(0o755)
    return made


def host(folder: Path, scratch: Path) -> str:
    """The program that runs assemblies on a runtime; what has to be made for it is in ``scratch``.

    .NET 9 comes inside of another program: its files are linked to where a host looks for them,
    with the part of that program's list of files that is the framework's.
    """
    if folder != NET9:
        return str(folder.parents[2] / "dotnet")
    shared = scratch / "dotnet/shared/Microsoft.NETCore.App/9.0.1"
    program = scratch / "dotnet/dotnet"
    if program.exists():
        return str(program)
    resolver = scratch / "dotnet/host/fxr/9.0.1"
    for made in (shared, resolver):
        made.mkdir(parents=True)
    (resolver / "libhostfxr.so").symlink_to(folder / "libhostfxr.so")
    listed = json.loads((folder / "azmcp.deps.json").read_text())
    target = listed["runtimeTarget"]["name"]
    packs = listed["targets"][target]
    name = next(one for one in packs if one.startswith("runtimepack.Microsoft.NETCore.App."))
    plain = name.removeprefix("runtimepack.")
    for kind in ("runtime", "native"):
        for file in packs[name][kind]:
            (shared / Path(file).name).symlink_to(folder / Path(file).name)
    about = {"type": "package", "serviceable": True, "sha512": ""}
    cut = {
        "runtimeTarget": {"name": target, "signature": ""},
        "compilationOptions": {},
        "targets": {target: {plain: packs[name]}},
        "libraries": {plain: about},
    }
    (shared / "Microsoft.NETCore.App.deps.json").write_text(json.dumps(cut))
    shutil.copy(NETCORE31.parents[2] / "dotnet", program)
    return str(program)


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
    # One bucket of one entry, whose payload lies two bytes after the entry's distance.
    instances = b"\x00\x02\x04\x07" + native_number(2) + b"\x00\x00"
    return image(metadata(made), b"\x55\xc3\x90\xc3", [(0, 2), (2, 4)], entries, instances)
