"""The BTF that gcc writes of a file, against the DWARF that it writes of the same file.

Two descriptions by one compiler, read by two readers that share no code.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.btf.btf_format import Btf
from fetchc.debuginfo.btf.kernel_program import BtfProgram
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.open_file import open_binary
from fetchc.program.protocol import Program
from fetchc.program.types import (
    ArrayType,
    EnumType,
    NamedType,
    PointerType,
    QualifiedType,
    StructType,
)
from fetchc.quantities import TypeId
from tests.support.programs import CORPUS
from tests.support.toolchains import require

SOURCE = CORPUS / "c/layouts"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[BtfProgram, DwarfProgram]:
    require("gcc")
    folder = tmp_path_factory.mktemp("btf")
    common = ["gcc", "-O1", "-w"]
    one = [str(SOURCE / "shapes.c"), "-c", "-o", str(folder / "b.o")]
    if subprocess.run([*common, "-gbtf", *one], check=False).returncode:
        pytest.skip("this gcc does not write BTF")
    whole = [str(path) for path in sorted(SOURCE.glob("*.c"))]
    subprocess.run([*common, "-g", *whole, "-o", str(folder / "d")], check=True)
    section = Image(str(folder / "b.o")).open_section(".BTF")
    assert section is not None
    btf = Btf("b.o", bytes(section.upto(None)))
    return BtfProgram("b.o", btf, "x86_64", 8), DwarfProgram(str(folder / "d"))


def shape(program: Program, type_id: TypeId, depth: int = 6) -> object:
    made = program.type(type_id)
    while isinstance(made, NamedType | QualifiedType):
        made = program.type(made.target)
    if not depth:
        return type(made).__name__
    match made:
        case StructType():
            members = [
                (m.name, m.offset if m.bits is None else m.bits, shape(program, m.type, depth - 1))
                for m in made.members
            ]
            return made.kind, made.size, members
        case PointerType():
            return "pointer", shape(program, made.target, depth - 3 if depth > 3 else 0)
        case ArrayType():
            return _row(program, made, depth)
        case EnumType():
            # gcc 12.2 leaves out negative enumerators and those above the greatest int.
            small = tuple(pair for pair in made.enumerators if 0 <= pair[1] < 1 << 31)
            return "enum", made.size, small
        case _:
            return type(made).__name__, getattr(made, "size", None)


def _row(program: Program, made: ArrayType, depth: int) -> object:
    # gcc 12.2 writes the dimensions of int[2][3] in the wrong order, so rows count as one.
    count = made.count or 1
    element = program.type(made.element)
    while isinstance(element, ArrayType):
        count *= element.count or 1
        made, element = element, program.type(element.element)
    return "array", count, shape(program, made.element, depth - 1)


def test_all_structures_agree(both: tuple[BtfProgram, DwarfProgram]) -> None:
    btf, dwarf = both
    names = [name for name in btf.type_names() if name.startswith(("struct", "union", "enum"))]
    compared = 0
    for name in names:
        theirs = dwarf.types_named(name, None)
        if not theirs:
            continue
        (ours,) = btf.types_named(name, None)
        assert shape(btf, ours) == shape(dwarf, theirs[0]), name
        compared += 1
    assert compared > 10


def test_prototypes_agree(both: tuple[BtfProgram, DwarfProgram]) -> None:
    btf, dwarf = both
    compared = 0
    for name in btf.function_names():
        found = dwarf.functions_named(name)
        if len(found) != 1 or found[0].die is None:
            continue
        (function,) = btf.functions_named(name)
        ours = [(v.name, shape(btf, v.type, 2)) for v in btf.parameters(function)]
        theirs = [(v.name, shape(dwarf, v.type, 2)) for v in dwarf.parameters(found[0])]
        assert ours == theirs, name
        compared += 1
    assert compared > 5


def test_a_wrong_offset_is_seen(both: tuple[BtfProgram, DwarfProgram]) -> None:
    btf, dwarf = both
    (ours,) = btf.types_named("struct node", None)
    made = btf.type(ours)
    assert isinstance(made, StructType)
    moved = made.members[1].__class__(
        made.members[1].name, made.members[1].type, made.members[2].offset
    )
    wrong = btf.intern(
        StructType(made.name, made.kind, made.size, (made.members[0], moved, *made.members[2:]))
    )
    assert shape(btf, wrong) != shape(dwarf, dwarf.types_named("struct node", None)[0])


def test_the_running_kernel_opens(tmp_path: Path) -> None:
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("the running kernel has no BTF")
    program = open_binary("kernel")
    (function,) = program.functions_named("vfs_read")
    assert [v.name for v in program.parameters(function)] == ["file", "buf", "count", "pos"]
