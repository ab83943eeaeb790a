"""Single-file programs: an image after the file that starts it, and what is broken there."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dotnet.portable_executable import SIGNATURE, bundle_of
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.tracer.perf_maps import Process
from tests.support.elfwriter import elf_file

IMAGES = Path(__file__).parents[4] / "corpus/dotnet/echo/bin"


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


def bundle(
    names: tuple[str, ...] = ("sample.dll", "System.Private.CoreLib.dll"),
    version: int = 6,
    packed: int = 0,
    beyond: int = 0,
) -> bytes:
    host = b"\x7fELF".ljust(0x200, b"h")
    entries, body = b"", b""
    start = len(host) + 8 + len(SIGNATURE)
    for name in names:
        content = (IMAGES / name).read_bytes()
        body += bytes(-(start + len(body)) % 64)
        entries += struct.pack("<QQ", start + len(body) + beyond, len(content))
        entries += struct.pack("<Q", packed) if version >= 6 else b""
        entries += b"\x01" + text(name)
        body += content
    header = struct.pack("<III", version, 0, len(names)) + text("id") + bytes(40) + entries
    return host + struct.pack("<Q", start + len(body)) + SIGNATURE + body + header


@pytest.mark.parametrize("version", [2, 6])
def test_offsets_count_from_the_start_of_the_file(tmp_path: Path, version: int) -> None:
    host = tmp_path / "app"
    host.write_bytes(bundle(version=version))
    program = fetchc.open(f"{host}:sample.dll")
    probe = program.probe("EchoProvider.calculateEchoValue", kernel="6.1")
    definition = probe.definition([probe.compile("echo.Length")], group="g", event="e")
    path, _, offset = definition.split()[1].rpartition(":")
    assert path == str(host)
    assert host.read_bytes()[int(offset, 16)] == 0xC3
    # The core library is in the bundle too.
    server = fetchc.open(f"{host}:sample").probe("Handle(Request)", kernel="6.1")
    assert server.compile("request.numbers.Count").fetcharg == "+16(+32(%si)):s32"


@pytest.mark.parametrize(
    ("content", "name", "code", "said"),
    [
        (bundle(), "other", "FC0901", "no assembly `other`; it has `System.Private.CoreLib`"),
        (bundle(packed=9), "sample", "FC0905", "is compressed in it"),
        (bundle(version=1), "sample", "FC0905", "unpacked when it starts"),
        (bundle(beyond=1 << 40), "sample", "FC0904", "runs past the end"),
        (bundle()[:-3], "sample", "FC0904", "truncated"),
        (bundle().replace(SIGNATURE, bytes(32)), "sample", "FC0901", "No such file"),
    ],
)
def test_what_is_no_image(tmp_path: Path, content: bytes, name: str, code: str, said: str) -> None:
    host = tmp_path / "app"
    host.write_bytes(content)
    with pytest.raises(DebugInfoError, match=said) as raised:
        fetchc.open(f"{host}:{name}")
    assert raised.value.code == code


def test_a_manifest_of_any_length_is_bounded(tmp_path: Path) -> None:
    host = tmp_path / "app"
    raw = bytearray(bundle())
    at = raw.index(SIGNATURE) - 8
    for header in (1, len(raw), len(raw) + 1, (1 << 64) - 1):
        raw[at : at + 8] = struct.pack("<Q", header)
        host.write_bytes(raw)
        with pytest.raises(DebugInfoError):
            bundle_of(str(host))


def test_the_host_itself_names_its_assemblies(tmp_path: Path) -> None:
    host = tmp_path / "app"
    elf = elf_file({".text": b"\xc3" * 16})
    host.write_bytes(elf.ljust(0x200, b"\0") + bundle()[0x200:])
    assert DwarfProgram(str(host)).elf.bundled_assemblies() == ("System.Private.CoreLib", "sample")
    with pytest.raises(CompileError) as refused:
        fetchc.open(str(host)).probe("EchoProvider.calculateEchoValue")
    (said,) = refused.value.diagnostics
    listed = "`System.Private.CoreLib`, `sample`"
    assert said.notes == (f"it is a program of .NET in one file, of {listed}",)


def test_images_of_a_process_in_one_file(tmp_path: Path) -> None:
    host = tmp_path / "app"
    host.write_bytes(bundle() + bytes(0x2000))
    with host.open("rb") as file:
        flags, kind = mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC
        first = mmap.mmap(file.fileno(), 0x1000, flags=flags, prot=kind)
        rest = mmap.mmap(file.fileno(), 0x1000, flags=flags, prot=kind, offset=0x1000)
    process = Process(os.getpid())
    names = {image.program.assembly_name for image in process.images}
    assert names == {"sample", "System.Private.CoreLib"}
    (found,) = process.find("calculateEchoValue")
    assert found.path == str(host)
    assert host.read_bytes()[found.offset] == 0xC3
    first.close()
    rest.close()
