"""What ``fetchc btf`` writes, as others read it: pahole, bpftool, cilium/ebpf, the kernel."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.btf.btf_format import Btf
from fetchc.debuginfo.btf.kernel_program import BtfProgram
from fetchc.program.types import Member, StructType
from fetchc.quantities import TypeId
from tests.support.programs import CORPUS
from tests.support.toolchains import ROOT, go_environment, go_root, require

C = sorted((CORPUS / "c/layouts/bin").glob("*-dwarf[45]"))
OTHERS = {
    "c++": CORPUS / "cpp/addressbook/bin/g++-O0",
    "go": CORPUS / "go/dnsforward/bin/go1.27",
    "rust": next((CORPUS / "rust/requests/bin").iterdir()),
    "dotnet": CORPUS / "dotnet/echo/bin/sample.dll",
}
EBPF = ROOT / ".toolchains/ebpf/usr/share/gocode"
LOADER = """package main

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf/btf"
)

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	spec, err := btf.LoadSpecFromReader(file)
	if err != nil {
		panic(err)
	}
	for types := spec.Iterate(); types.Next(); {
		if shape, ok := types.Type.(*btf.Struct); ok && shape.Name != "" {
			for _, member := range shape.Members {
				fmt.Println(shape.Name, member.Name, member.Offset, member.BitfieldSize)
			}
		}
	}
}
"""


def written(path: Path, to: Path, types: str = "*") -> Path:
    to.write_bytes(fetchc.open(path).btf([types]).data)
    return to


def without_enum64(path: Path, to: Path) -> Path:
    """All types but those that lead to an ENUM64, which Debian 12's cilium/ebpf does not know."""
    program = fetchc.open(path)
    data = program.btf(["*"]).data
    if _has_enum64(data):
        names = [
            name for name in program.types() if re.fullmatch(r"[\w.]+(::\w+)+|struct \w+", name)
        ]
        plain = [name for name in names if not _has_enum64(program.btf([name]).data)]
        data = program.btf(plain).data
    to.write_bytes(data)
    return to


def _has_enum64(data: bytes) -> bool:
    btf = Btf("one.btf", data)
    return any(btf.kind(number) == "ENUM64" for number in range(1, btf.end))


def tool(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        pytest.skip(f"no {name}: .ci/setup installs it")
    return found


def members(text: str) -> set[tuple[str, ...]]:
    """Structure, member, offset and size or bits of each line of pahole's.

    Without what is inside of members: pahole writes that several times of clang's DWARF.
    """
    found, within = set(), ""
    for line in text.splitlines():
        opened = re.match(r"(?:struct|union) (\w*) ?\{", line)  # those within have a tab before
        within = opened[1] if opened else within
        row = re.match(
            r"\t[^\t].*?([\w*]+)(?:\[[^]]*\])*(?::\d+)?;\s+/\*\s+(\d+)(?::\s*(\d+))?\s+(\d+)", line
        )
        if row and within:
            found.add((within, *map(str, row.groups())))
    return found


@pytest.mark.parametrize("binary", C, ids=lambda path: path.name)
def test_pahole_sees_the_offsets_that_it_sees_in_dwarf(binary: Path, tmp_path: Path) -> None:
    pahole = tool("pahole")

    def shown(kind: str, path: Path) -> set[tuple[str, ...]]:
        done = subprocess.run(
            [pahole, "-F", kind, path], capture_output=True, text=True, check=True
        )
        return members(done.stdout)

    file = written(binary, tmp_path / "c.btf")
    theirs = shown("dwarf", binary)
    assert len(theirs) > 100
    assert shown("btf", file) == theirs
    file.write_bytes(moved(file.read_bytes()))
    assert shown("btf", file) != theirs


def moved(data: bytes) -> bytes:
    """The same file with the second member of `struct record` somewhere else."""
    btf = Btf("c.btf", data)
    (number,) = btf.named("record", ("STRUCT",))
    header, common, member = 6, 3, 3  # words
    at = 4 * (header + btf.starts[number - 1] + common + member + 2)
    return data[:at] + struct.pack("<I", 8 * 3) + data[at + 4 :]


PADDED = """
struct part { virtual ~part() {} int number; char first; };
struct whole : part { char second; short third; bool yes; wchar_t wide; part *next; };
whole all;
int main() { return all.number; }
"""


def padded(folder: Path) -> Path:
    """A program whose derived class has members in the padding of its base class."""
    path = folder / "padded"
    command = ["g++", "-g", "-o", str(path), "-xc++", "-"]
    subprocess.run(command, input=PADDED, text=True, check=True)
    return path


@pytest.mark.parametrize("language", ["c", "padding", *OTHERS])
def test_bpftool_writes_c_of_it_with_the_same_offsets(language: str, tmp_path: Path) -> None:
    bpftool = tool("bpftool")
    require("gcc")
    binary = OTHERS.get(language, CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
    program = fetchc.open(padded(tmp_path) if language == "padding" else binary)
    file = program.btf(["*"])
    path = tmp_path / "c.btf"
    path.write_bytes(file.data)
    command = [bpftool, "btf", "dump", "file", str(path), "format", "c"]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    header = with_sizes(dumped, Btf("c.btf", file.data))
    checks = asserted(program, dict(file.names), header)
    assert len(checks) >= (7 if language == "padding" else 10)

    def compiles(lines: list[str]) -> bool:
        source = header + "\n".join(lines)
        compiler = ["gcc", "-fsyntax-only", "-w", "-xc", "-"]
        done = subprocess.run(compiler, input=source, text=True, check=False, stderr=-1)
        assert "error" not in done.stderr.replace("error: static assertion failed", "")
        return done.returncode == 0

    assert compiles(checks)
    assert not compiles([checks[-1].replace(" == ", " == 1 + ")])


def with_sizes(header: str, btf: Btf) -> str:
    """The header as newer releases write it: enumerations have their sizes (not by libbpf 1.1)."""
    modes = {1: "byte", 2: "HI", 8: "word"}
    for number, name in btf.all_named(("ENUM", "ENUM64")):
        mode = modes.get(btf.entry(number).value)
        if mode is not None:
            header = re.sub(
                rf"(enum {name} {{[^}}]*}})", rf"\1 __attribute__((mode({mode})))", header
            )
    return header


def asserted(program: fetchc.Program, names: dict[str, str], header: str) -> list[str]:
    """Assertions of C on the sizes of structures, and the offsets of their members."""
    shapes: dict[str, set[StructType]] = {}
    for name in program.types():
        for type_id in program._program.types_named(name, None):
            shape = program._program.type(type_id)
            if isinstance(shape, StructType) and shape.name:
                shapes.setdefault(shape.name, set()).add(shape)
    lines = []
    for name, found in shapes.items():
        shape, tag = next(iter(found)), names.get(name, name)
        kind = "union" if shape.kind == "union" else "struct"
        if len(found) > 1 or f"{kind} {tag} {{" not in header:
            continue
        lines.append(f'_Static_assert(sizeof({kind} {tag}) == {shape.size}, "{tag}");')
        for each in shape.members:
            if each.bits is None and each.name not in ("", "_"):  # of Go, `_` may be several
                member = names.get(f"{name}.{each.name}", each.name)
                place = f"__builtin_offsetof({kind} {tag}, {member}) == {each.offset}"
                lines.append(f'_Static_assert({place}, "{tag}.{member}");')
    return lines


def own(program: fetchc.Program) -> set[tuple[str, int, int, int]]:
    """Name, bit, bits and size of every member that the program's debug information describes."""
    found = set()
    inner = program._program
    for name in program.types():
        for type_id in inner.types_named(name, None):
            shape = inner.type(type_id)
            if isinstance(shape, StructType):
                found |= {_place(shape, each) for each in shape.members if each.name.isidentifier()}
    return found


def _place(shape: StructType, each: Member) -> tuple[str, int, int, int]:
    # `signed` of Go is `signed_` in the file, a second `_` is `__2`.
    name = re.sub(r"_+\d*\Z", "", each.name)
    if each.bits is not None:
        return name, each.bits.offset, each.bits.width, shape.size
    return name, 8 * each.offset, 0, shape.size


@pytest.mark.parametrize("language", OTHERS)
def test_every_member_of_other_languages_is_where_it_was(language: str, tmp_path: Path) -> None:
    file = written(OTHERS[language], tmp_path / "x.btf")
    btf = BtfProgram(str(file), Btf(str(file), file.read_bytes()), "x86_64", 8)
    there = set()
    for number in range(1, btf._types.btf.end):
        if btf._types.btf.kind(number) in ("STRUCT", "UNION"):
            shape = btf._types.type(TypeId(number))
            assert isinstance(shape, StructType)
            there |= {_place(shape, each) for each in shape.members}
    wanted = own(fetchc.open(OTHERS[language]))
    assert len(wanted) > 10
    assert not wanted - there


@pytest.mark.parametrize("language", ["c", *OTHERS])
def test_the_kernel_takes_it(language: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root loads BTF")
    data = written(OTHERS.get(language, C[0]), tmp_path / "k.btf").read_bytes()
    log, loaded = load(data)
    assert loaded, log
    log, loaded = load(data[:31] + b"\x1f" + data[32:])  # the first type is of kind 31
    assert not loaded
    assert "Invalid kind:31" in log


def load(data: bytes) -> tuple[str, bool]:
    """BPF_BTF_LOAD (18) of bpf(2), whose number is 321 on x86-64."""
    if os.uname().machine != "x86_64":
        pytest.skip("the number of bpf(2) is that of x86-64")
    call = ctypes.CDLL(None, use_errno=True).syscall
    content, log = (
        ctypes.create_string_buffer(data, len(data)),
        ctypes.create_string_buffer(1 << 24),
    )
    places = ctypes.addressof(content), ctypes.addressof(log)
    attributes = ctypes.create_string_buffer(
        struct.pack("<QQIIII", *places, len(data), 1 << 24, 1, 0)
    )
    file = call(321, 18, attributes, 32)
    if file >= 0:
        os.close(file)
    elif ctypes.get_errno() in (1, 38):  # EPERM, ENOSYS
        pytest.skip(f"this kernel loads no BTF: {os.strerror(ctypes.get_errno())}")
    return log.value.decode(errors="replace")[-600:], file >= 0


@pytest.fixture(scope="module", name="loader")
def loader_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("go1.22")
    if not EBPF.is_dir():
        pytest.skip("no source of cilium/ebpf: .ci/setup unpacks it")
    folder = tmp_path_factory.mktemp("loader")
    (folder / "main.go").write_text(LOADER)
    environment = go_environment("1.22", folder) | {"GOPATH": str(EBPF)}
    command = [str(go_root("1.22") / "bin/go"), "build", "-o", "loader", "main.go"]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return folder / "loader"


@pytest.mark.parametrize("language", ["c", *OTHERS])
def test_cilium_reads_every_member(language: str, loader: Path, tmp_path: Path) -> None:
    binary = OTHERS.get(language, CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
    file = without_enum64(binary, tmp_path / "x.btf")
    done = subprocess.run([loader, file], capture_output=True, text=True, check=True)
    there = {tuple(line.split(" ")) for line in done.stdout.splitlines()}
    wanted = set()
    btf = Btf(str(file), file.read_bytes())
    for number, name in btf.all_named(("STRUCT",)):
        words = btf.entry(number)
        for at in range(0, 3 * words.count, 3):
            place = words.words[at + 2]
            width, bit = (place >> 24, place & 0xFFFFFF) if words.flag else (0, place)
            wanted.add((name, btf.text(words.words[at]), str(bit), str(width)))
    assert len(wanted) > 10
    assert there == wanted
