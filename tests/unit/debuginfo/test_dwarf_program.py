"""DwarfProgram as a whole: what files it opens, where things are, what it refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf import line_tables
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program import types as t
from fetchc.program.entities import Absent, AtAddress, InMemory, InRegister, OnEntry, Pieces
from fetchc.program.types import BitField
from fetchc.quantities import (
    Address,
    BitOffset,
    BitSize,
    ByteOffset,
    ByteSize,
    DwarfRegister,
    TypeId,
)
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Unit,
    base_die,
    compile_unit,
    member_die,
    struct_die,
    subprogram_die,
    variable_die,
)
from tests.support.dwarfwriter import program as written
from tests.support.elfwriter import Load, Sym
from tests.support.programs import fixture
from tests.support.toolchains import require
from tests.support.typed_programs import build

STACK = DwarfRegister(7)  # rsp
HANDLER = "main.(*server).handleRequest"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def opened(
    directory: Path, *entries: Entry, machine: int = 62, little: bool = True, word: int = 8
) -> DwarfProgram:
    unit = compile_unit(
        base_die("int", 4, dw.DW_ATE_signed),
        subprogram_die("f", 0x1000, 0x1004),
        *entries,
        low=0x1000,
        high=0x1004,
    )
    path = written(
        directory / "written",
        [Unit(unit, version=3)],
        little=little,
        address_size=word,
        symbols=[Sym("f", 0x1000, 4)],
        loads=[Load(0x1000, b"\x90\x90\x90\xc3"), Load(0x20000, b"data", 0x100, flags=6)],
        machine=machine,
    )
    return DwarfProgram(path)


@pytest.mark.parametrize(
    ("machine", "little", "word", "key"),
    [
        (62, True, 8, "x86_64"),
        (3, True, 4, "i386"),
        (183, True, 8, "aarch64"),
        (243, True, 8, "riscv64"),
        (21, True, 8, "ppc64le"),
        (21, False, 8, "ppc64"),
        (22, False, 8, "s390x"),
        (40, True, 4, "arm"),
    ],
)
def test_architectures(tmp_path: Path, machine: int, little: bool, word: int, key: str) -> None:
    found = opened(tmp_path, machine=machine, little=little, word=word)
    shown = (found.architecture, found.word_bytes, found.little_endian)
    assert shown == (key, word, little)
    (function,) = found.functions_named("f")
    assert (function.address, function.size, function.language) == (0x1000, 4, "c")


def test_an_unread_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError, match="machine 2 of the ELF registry") as caught:
        opened(tmp_path, machine=2)
    assert caught.value.code == "FC0905"


def test_an_object_file_is_refused(tmp_path: Path) -> None:
    require("gcc")
    (tmp_path / "f.c").write_text("int f(int first) { return first; }\n")
    subprocess.run(["gcc", "-g", "-c", "f.c"], cwd=tmp_path, check=True, timeout=60)
    with pytest.raises(DebugInfoError, match="object file") as caught:
        DwarfProgram(str(tmp_path / "f.o"))
    assert caught.value.code == "FC0905"


@pytest.mark.parametrize(("little", "offset"), [(True, 4), (False, 21)])
def test_old_bit_offsets_count_from_the_top(tmp_path: Path, little: bool, offset: int) -> None:
    # A unit of 4 bytes whose field of 7 bits starts 21 bits below the top.
    field = member_die(
        "b",
        "int",
        0,
        Attr(dw.DW_AT_byte_size, dw.DW_FORM_data1, 4),
        Attr(dw.DW_AT_bit_size, dw.DW_FORM_data1, 7),
        Attr(dw.DW_AT_bit_offset, dw.DW_FORM_data1, 21),
    )
    found = opened(tmp_path, struct_die("s", 4, [field]), machine=22, little=little)
    (type_id,) = found.types_named("struct s", None)
    structure = found.type(type_id)
    assert isinstance(structure, t.StructType)
    assert structure.members[0].bits == BitField(BitOffset(offset), BitSize(7))


def test_old_member_locations_are_expressions(tmp_path: Path) -> None:
    location = Attr(dw.DW_AT_data_member_location, dw.DW_FORM_block1, b"\x23\x88\x01")
    member = Entry(
        dw.DW_TAG_member, (Attr(dw.DW_AT_name, dw.DW_FORM_string, "m"), location), (), ""
    )
    found = opened(tmp_path, struct_die("s", 200, [member]))
    structure = found.type(found.types_named("s", None)[0])
    assert isinstance(structure, t.StructType)
    assert structure.members[0].offset == 0x88
    assert found.type(structure.members[0].type) == t.VoidType()


def test_addresses_and_offsets(tmp_path: Path) -> None:
    at = b"\x03" + (0x20010).to_bytes(8, "little")
    found = opened(tmp_path, variable_die("g", "int", at))
    (function,) = found.functions_named("f")
    (variable,) = found.global_variables("g", function)
    assert found.place(variable, function, function.address) == AtAddress(Address(0x20010))
    assert found.place(variable, None, function.address) == AtAddress(Address(0x20010))
    text = found.file_offset(Address(0x1000))
    assert found.image_offset(Address(0x20010), function.address) == 0x20010 - 0x1000 + text
    assert found.code(Address(0x1001), 100) == b"\x90\x90\xc3"
    with pytest.raises(DebugInfoError, match="no segment of the file"):
        found.image_offset(Address(0x20010), Address(0x5))


def test_go_places_at_entry() -> None:
    stack = DwarfProgram(str(fixture("go/dnsforward/go1.15")))
    (function,) = stack.functions_named(HANDLER)
    s, w, r = stack.parameters(function)
    places = [stack.place(v, function, function.address) for v in (s, w, r)]
    assert places[0] == InMemory(STACK, ByteOffset(8))
    assert places[2] == InMemory(STACK, ByteOffset(32))
    assert isinstance(places[1], Pieces)
    assert [p.place for p in places[1].pieces] == [
        InMemory(STACK, ByteOffset(16)),
        InMemory(STACK, ByteOffset(24)),
    ]
    assert stack.evidence.frame_base_is_cfa(function)
    registers = DwarfProgram(str(fixture("go/dnsforward/go1.27")))
    (function,) = registers.functions_named(HANDLER)
    request = registers.parameters(function)[2]
    assert registers.place(request, function, function.address) == InRegister(DwarfRegister(5))
    extents = registers.extents(request, function)
    assert extents[0].start == function.address
    line = registers.source_line(function)
    assert line is not None
    assert line.startswith("main.go:")


def test_unoptimised_parameters_stand_below_the_frame_address(directory: Path) -> None:
    found = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    (function,) = found.functions_named("scopes")
    (n,) = found.parameters(function)
    entry = found.place(n, function, function.address)
    assert isinstance(entry, InMemory)
    assert (entry.register, entry.offset < 0) == (STACK, True)
    body = found.body_address(function)
    assert function.address < body < function.address + (function.size or 0)
    after = found.place(n, function, body)
    assert isinstance(after, InMemory)
    assert after.register == 6  # rbp, by then
    assert found.source_line(function) == "program.c:64"
    assert found.evidence.frame_base_is_cfa(function)


def test_clang_measures_from_a_register(directory: Path) -> None:
    found = DwarfProgram(str(build(directory, "clang", "-gdwarf-4", "-O0")))
    (function,) = found.functions_named("scopes")
    assert not found.evidence.frame_base_is_cfa(function)


@pytest.mark.parametrize(("compiler", "runs"), [("gcc", 0), ("clang", 1)])
def test_the_line_table_is_run_once_a_function_where_the_frame_base_is_a_register(
    directory: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, runs: int
) -> None:
    found = DwarfProgram(str(build(directory, compiler, "-gdwarf-5", "-O0")))
    (function,) = found.functions_named("scopes")
    asked: list[Address] = []
    body_address = line_tables.body_address

    def counted(info: DebugInfo, die: Die, start: Address) -> Address:
        asked.append(start)
        return body_address(info, die, start)

    monkeypatch.setattr(line_tables, "body_address", counted)
    for offset in (1, 4, 8):
        found.evidence.frame_is_valid(function, Address(function.address + offset))
    assert len(asked) == runs


def test_an_optimised_out_parameter_has_no_place(directory: Path) -> None:
    found = DwarfProgram(str(build(directory, "gcc", "-gdwarf-4", "-O2")))
    (function,) = found.functions_named("unused_args")
    first, *_ = found.parameters(function)
    last = Address(function.address + (function.size or 0) - 1)
    assert isinstance(found.place(first, function, last), Absent | InRegister | OnEntry)
    assert found.place(first, function, function.address) == InRegister(DwarfRegister(5))


def test_a_stripped_file_has_functions_and_nothing_else(directory: Path) -> None:
    require("strip")
    stripped = directory / "stripped"
    shutil.copy(build(directory, "gcc", "-gdwarf-5", "-O0"), stripped)
    subprocess.run(["strip", "--strip-debug", stripped], check=True, timeout=30)
    found = DwarfProgram(str(stripped))
    (function,) = found.functions_named("scopes")
    assert (function.die, function.language, function.compiler.producer) == (None, "", "")
    assert found.main_language() == ""
    assert not found.evidence.is_inlined(function)
    assert not found.evidence.is_only_inlined("inlined")
    assert found.source_line(function) is None
    questions: list[Callable[[], object]] = [
        lambda: found.parameters(function),
        lambda: found.result(function),
        lambda: found.variables(function, function.address),
        lambda: found.global_variables("everything", function),
        lambda: found.types_named("int", None),
        lambda: found.type_names(),
        lambda: found.body_address(function),
        lambda: found.evidence.frame_base_is_cfa(function),
    ]
    for question in questions:
        with pytest.raises(DebugInfoError) as caught:
            question()
        assert caught.value.code == "FC0903"
        assert caught.value.help is not None
    made = t.PointerType("", ByteSize(8), TypeId(-1))
    assert found.type(found.intern(made)) == made
    assert found.type(made.target) == t.VoidType()


def test_a_function_without_an_entry_says_so(tmp_path: Path) -> None:
    unit = compile_unit(base_die("int", 4, dw.DW_ATE_signed))
    path = written(
        tmp_path / "bare",
        [Unit(unit)],
        symbols=[Sym("f", 0x1000, 4)],
        loads=[Load(0x1000, b"\x90\x90\x90\xc3")],
    )
    found = DwarfProgram(path)
    (function,) = found.functions_named("f")
    assert function.die is None
    with pytest.raises(DebugInfoError, match="no debug information describes `f`"):
        found.parameters(function)


@pytest.mark.parametrize(
    ("content", "code"), [(None, "FC0901"), (b"", "FC0902"), (b"#!/bin/sh\n", "FC0902")]
)
def test_files_that_are_no_programs(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DebugInfoError) as caught:
        DwarfProgram(str(path))
    assert caught.value.code == code


def test_answers_are_kept_only_up_to_a_bound(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchc.debuginfo.dwarf.dwarf_facts.CACHED_ANSWERS", 3)
    found = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    for name in ("main", "scopes", "helper", "other", "main", "scopes"):
        assert found.functions_named(name) == found.functions_named(name)
        for function in found.functions_named(name):
            assert found.parameters(function) == found.parameters(function)
    assert len(found._functions) <= 3
    assert len(found._parameters) <= 3


def test_opening_loads_nothing_slow() -> None:
    slow = "dataclasses typing json pathlib logging argparse elftools lark tomllib inspect"
    code = (
        "import sys; import fetchc.debuginfo.dwarf.dwarf_program; "
        f"print(sorted(set(sys.modules) & set({slow!r}.split())))"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=Path(__file__).parents[3],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.stdout.strip() == "[]"


def test_link_time_optimisation_places_globals_in_another_unit(tmp_path: Path) -> None:
    require("gcc", "nm")
    source = tmp_path / "program.c"
    source.write_text(
        "struct s { int a, b; }; static struct s own = {1, 2};\n"
        "extern struct s shared; struct s shared = {3, 4};\n"  # a definition of a declaration
        "__attribute__((noipa)) int f(struct s *p) { return p->a + own.b + shared.b; }\n"
        "int main(int n, char **v) { own.b = n; shared.b = n; return f(&own) + !v; }\n"
    )
    path = tmp_path / "program"
    build = ["gcc", "-g", "-O2", "-flto", "-o", str(path), str(source)]
    subprocess.run(build, check=True, timeout=60)
    listed = subprocess.run(["nm", path], check=True, capture_output=True, encoding="utf-8").stdout
    symbols = {
        line.split()[-1]: int(line.split()[0], 16) for line in listed.split("\n") if line[:1] == "0"
    }
    found = DwarfProgram(str(path))
    (function,) = found.functions_named("f")
    for name in ("own", "shared"):
        (variable,) = found.global_variables(name, function)
        place = found.place(variable, function, function.address)
        assert place == AtAddress(Address(symbols[name]))
