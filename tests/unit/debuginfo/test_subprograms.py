"""Functions by name, their parameters and results, and the variables in sight."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf import go_name_lookup
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.dwarf.qualified_names import parts
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.program.entities import Function
from fetchc.program.types import IntType, PointerType, StructType
from fetchc.quantities import Address
from tests.support.cases import CORPUS
from tests.support.dwarfwriter import Attr, Entry, Unit, compile_unit, variable_die
from tests.support.dwarfwriter import program as program_file
from tests.support.programs import fixture
from tests.support.toolchains import require
from tests.support.typed_programs import build

C_BUILDS = [
    ("gcc", "-gdwarf-5", "-O0"),
    ("gcc", "-gdwarf-4", "-O2"),
    ("gcc", "-gdwarf-5", "-O2", "-flto"),
    ("clang", "-gdwarf-5", "-O2"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("functions")


@pytest.fixture(scope="module", params=C_BUILDS, ids=" ".join)
def c_program(directory: Path, request: pytest.FixtureRequest) -> DwarfProgram:
    return DwarfProgram(str(build(directory, *request.param)))


@pytest.fixture(scope="module", params=["g++", "clang++"])
def cpp_program(directory: Path, request: pytest.FixtureRequest) -> DwarfProgram:
    return DwarfProgram(str(build(directory, request.param, "-gdwarf-5", "-O0")))


def only(program: DwarfProgram, name: str) -> Function:
    (found,) = program.functions_named(name)
    return found


def names(program: DwarfProgram, function: Function) -> list[str]:
    return [variable.name for variable in program.parameters(function)]


def test_unused_parameters_are_listed(c_program: DwarfProgram) -> None:
    found = only(c_program, "unused_args")
    assert names(c_program, found) == ["first", "second", "third"]
    assert found.symbol in ("unused_args", "unused_args.constprop.0")  # the latter by LTO
    whole = found.compiler.is_lto_input  # nothing is exported then
    assert (found.name, found.language, found.external) == ("unused_args", "c", not whole)
    assert found.compiler.name in ("gcc", "clang")
    kinds = [type(c_program.type(v.type)) for v in c_program.parameters(found)]
    assert kinds[:2] == [IntType, PointerType]


def test_variable_arguments_are_no_parameters(c_program: DwarfProgram) -> None:
    found = only(c_program, "by_value")
    assert names(c_program, found) == ["in", "n"]
    assert isinstance(c_program.type(c_program.parameters(found)[0].type), StructType)


def test_results(c_program: DwarfProgram) -> None:
    assert c_program.result(only(c_program, "nothing")) is None
    result = c_program.result(only(c_program, "scopes"))
    assert result is not None
    assert c_program.type(result) == IntType("int", 4, True)  # type: ignore[arg-type]


def test_statics_of_one_name_are_several_functions(directory: Path) -> None:
    program = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    found = program.functions_named("helper")
    assert len(found) == 2
    assert sorted(len(program.parameters(function)) for function in found) == [1, 2]
    assert not any(function.external for function in found)


def test_an_alias_is_the_function_at_its_address(directory: Path) -> None:
    program = DwarfProgram(str(build(directory, "gcc", "-gdwarf-4", "-O2")))
    alias, real = only(program, "aliased"), only(program, "scopes")
    assert (alias.address, alias.die, alias.name) == (real.address, real.die, "scopes")


def test_clones_answer_to_the_name() -> None:
    program = DwarfProgram(str(fixture("c/layouts/gcc-O2-dwarf5")))
    (clone,) = program.functions_named("scaled")
    assert clone.symbol.startswith("scaled.")
    assert clone.name == "scaled"
    assert program.functions_named(clone.symbol) == (clone,)


def test_versions_of_one_name_are_distinguished(tmp_path: Path) -> None:
    require("gcc")
    source = """
    int old(int n) { return n; }
    int new(int n) { return n + 1; }
    __asm__(".symver old, call@V1");
    __asm__(".symver new, call@@V2");
    """
    (tmp_path / "call.c").write_text(source)
    (tmp_path / "versions").write_text("V1 { global: call; }; V2 { global: call; } V1;")
    command = ["gcc", "-g", "-shared", "-fPIC", "-Wl,--version-script=versions"]
    subprocess.run([*command, "-o", "call.so", "call.c"], check=True, cwd=tmp_path)
    program = DwarfProgram(str(tmp_path / "call.so"))
    assert [one.symbol for one in program.functions_named("call")] == ["call@V1", "call@@V2"]
    assert [only(program, name).name for name in ("call@V1", "call@@V2")] == ["old", "new"]


def test_clones_answer_to_the_name_where_the_symbols_are_in_the_debug_file(tmp_path: Path) -> None:
    require("gcc")
    source = """
    __attribute__((noinline)) static int twice(int n) __asm__("twice.lto_priv.0");
    static int twice(int n) { return 2 * n; }
    int main(int argc, char **argv) { return twice(argc); }
    """
    program, debug = tmp_path / "program", tmp_path / "program.debug"
    (tmp_path / "twice.c").write_text(source)
    for command in (
        ["gcc", "-g", "-O1", "-o", program, tmp_path / "twice.c"],
        ["objcopy", "--only-keep-debug", program, debug],
        ["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program],
    ):
        subprocess.run([str(word) for word in command], check=True, cwd=tmp_path)
    found = only(DwarfProgram(str(program)), "twice")
    assert (found.name, found.symbol) == ("twice", "twice.lto_priv.0")


@pytest.mark.parametrize(
    "name", ["", "nope", "unused_arg", "nused_args", "inlined", "\udcff", "a::"]
)
def test_names_of_nothing(directory: Path, name: str) -> None:
    program = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    assert program.functions_named(name) == ()


def test_a_function_without_code_of_its_own_is_distinguished(directory: Path) -> None:
    program = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    assert program.functions_named("inlined") == ()
    assert program.evidence.is_only_inlined("inlined")
    assert not program.evidence.is_only_inlined("scopes")
    assert not program.evidence.is_only_inlined("no_such_function")


def test_a_function_that_is_also_inlined_says_so() -> None:
    program = DwarfProgram(str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5"))
    assert program.evidence.is_inlined(only(program, "call_twin_here"))
    assert not program.evidence.is_inlined(only(program, "visit"))


def test_scopes_hide_each_other(directory: Path) -> None:
    program = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    function = only(program, "scopes")
    seen = set()
    for address in range(function.address, function.address + (function.size or 0)):
        variables = program.variables(function, Address(address))
        seen.add(tuple((v.name, v.kind) for v in variables))
    outer, inner = ("outer", "local"), ("inner", "local")
    n = ("n", "parameter")
    assert {(outer, n), (inner, outer, n), (outer, inner, outer, n)} <= seen
    inlined = {variables for variables in seen if ("k", "local") in variables}
    assert inlined
    assert all(variables[-2:] == (outer, n) for variables in inlined)
    assert all(("n", "local") in variables for variables in inlined)


def test_globals_prefer_the_functions_unit(directory: Path) -> None:
    program = DwarfProgram(str(build(directory, "gcc", "-gdwarf-5", "-O0")))
    main, other = only(program, "main"), only(program, "other")
    (here,) = program.global_variables("file_static", main)
    (there,) = program.global_variables("file_static", other)
    assert here.die != there.die
    assert {v.die for v in program.global_variables("file_static", None)} == {here.die, there.die}


def test_a_declared_variable_is_the_one_defined_elsewhere(c_program: DwarfProgram) -> None:
    main = only(c_program, "main")
    (found,) = c_program.global_variables("defined_elsewhere", main)
    assert (found.kind, found.name) == ("global", "defined_elsewhere")
    assert c_program.global_variables("nope", main) == ()
    assert c_program.global_variables("argc", main) == ()


@pytest.mark.parametrize(
    ("asked", "name", "parameters"),
    [
        ("ns::derived::visit", "ns::derived::visit", ["this", "n"]),
        ("visit", "ns::derived::visit", ["this", "n"]),
        ("ns::derived::derived", "ns::derived::derived", ["this", "n"]),
        ("hidden", "(anonymous namespace)::hidden", ["u"]),
        ("(anonymous namespace)::hidden", "(anonymous namespace)::hidden", ["u"]),
        ("largest<int>", "largest<int>", ["a", "b"]),
        ("_Z4take11complicated7trivial", "take", ["c", "t"]),
        ("complicated::~complicated", "complicated::~complicated", ["this"]),
    ],
)
def test_cpp_names(cpp_program: DwarfProgram, asked: str, name: str, parameters: list[str]) -> None:
    found = only(cpp_program, asked)
    assert (found.name, found.language) == (name, "c++")
    assert names(cpp_program, found) == parameters


def test_cpp_overloads_are_several(cpp_program: DwarfProgram) -> None:
    assert len(cpp_program.functions_named("complicated::complicated")) == 2


def test_this_is_artificial(cpp_program: DwarfProgram) -> None:
    parameters = cpp_program.parameters(only(cpp_program, "ns::derived::visit"))
    assert [v.artificial for v in parameters] == [True, False]


@pytest.mark.parametrize("name", ["ns::derived::count", "count", "quiet", "ns::inside"])
def test_cpp_globals(cpp_program: DwarfProgram, name: str) -> None:
    (found,) = cpp_program.global_variables(name, only(cpp_program, "main"))
    assert found.name.endswith(name)


def test_parts_of_names() -> None:
    assert parts("a::b<c::d, (e)0>::f") == ["a", "b<c::d, (e)0>", "f"]
    assert parts("plain") == ["plain"]
    assert parts("::x") == ["", "x"]
    assert parts("") == [""]


@pytest.mark.parametrize("binary", ["go/dnsforward/go1.15", "go/dnsforward/go1.27-N-l"])
def test_go_parameters(binary: str) -> None:
    program = DwarfProgram(str(fixture(binary)))
    found = only(program, "main.(*server).handleRequest")
    assert (found.language, found.name) == ("go", "main.(*server).handleRequest")
    assert names(program, found) == ["s", "w", "r"]
    assert program.result(found) is None
    assert program.main_language() == "go"


def test_go_results_follow_the_parameters() -> None:
    program = DwarfProgram(str(fixture("go/dnsforward/go1.15")))
    found = only(program, "strconv.FormatInt")
    shown = [(v.name, v.kind) for v in program.parameters(found)]
    assert shown == [("i", "parameter"), ("base", "parameter"), ("~r2", "result")]


def test_go_twins_of_the_stack_convention() -> None:
    program = DwarfProgram(str(fixture("go/dnsforward/go1.27")))
    names = set(program.function_names())
    twins = [name for name in names if name + ".abi0" in names]
    assert twins
    for name in twins:
        plain, twin = only(program, name), only(program, name + ".abi0")
        assert plain.address != twin.address
        assert (plain.symbol, twin.symbol) == (name, name + ".abi0")
        assert plain.name == twin.name == name
    alone = "runtime.morestack"  # assembly that Go code never calls has no other body
    assert only(program, alone).symbol == alone + ".abi0"


def test_go_names_without_their_import_path() -> None:
    program = DwarfProgram(str(fixture("go/miekg/go1.27")))
    candidates = [n for n in program.function_names() if n.startswith("github.com/miekg/dns.(*")]
    assert candidates, "the fixture has methods of the package"
    whole = candidates[0]
    short = whole.removeprefix("github.com/miekg/")
    assert program.functions_named(short) == program.functions_named(whole)
    function = only(program, "main.(*server).handleRequest")
    assert program.types_named("dns.Msg", function) == program.types_named(
        "github.com/miekg/dns.Msg", function
    )


def test_escaped_dots_of_import_paths() -> None:
    assert list(go_name_lookup.escaped("example.com/zone.v2.(*Zone).Find")) == [
        "example.com/zone.v2.(*Zone).Find",
        "example.com/zone%2ev2.(*Zone).Find",
    ]
    assert list(go_name_lookup.escaped("gopkg.in/yaml.v3.Unmarshal")) == [
        "gopkg.in/yaml.v3.Unmarshal",
        "gopkg.in/yaml%2ev3.Unmarshal",
    ]
    assert list(go_name_lookup.escaped("main.f")) == ["main.f"]
    assert list(go_name_lookup.escaped("f")) == ["f"]
    assert go_name_lookup.package_of("a.b/c%2ed.(*T).M") == "a.b/c%2ed"
    assert go_name_lookup.package_of("main.Sum[example.com/a.T]") == "main"
    assert go_name_lookup.unescaped("example.com/zone%2ev2.F") == "example.com/zone.v2.F"


def test_function_at_any_of_its_addresses(c_program: DwarfProgram) -> None:
    function = only(c_program, "scopes")
    inside = Address(function.address + 5)
    found = c_program.function_at(inside)
    assert found is not None
    assert (found.name, found.address) == ("scopes", function.address)
    assert c_program.function_at(Address(1)) is None


def test_function_names_list_each_once(c_program: DwarfProgram) -> None:
    found = list(c_program.function_names())
    assert {"main", "scopes", "nothing"} <= set(found)
    assert len(found) == len(set(found))


def test_bytes_that_look_like_an_entry_are_none(tmp_path: Path) -> None:
    # The line number before the address is the code of the first function's declaration,
    # whose attributes from the address on are the same: only where the second starts differs.
    def function(low: int, line: tuple[Attr, ...]) -> Entry:
        high = Attr(dw.DW_AT_high_pc, dw.DW_FORM_data8, 4)
        attributes = (*line, Attr(dw.DW_AT_low_pc, dw.DW_FORM_addr, low), high)
        return Entry(
            dw.DW_TAG_subprogram, attributes, (variable_die("v", "", b"", f"{low}"),), "", True
        )

    for line in range(1, 6):  # one of them is the code
        number = (Attr(dw.DW_AT_decl_line, dw.DW_FORM_data1, line),)
        unit = compile_unit(function(0x1000, ()), function(0x1004, number), low=0x1000, high=0x1008)
        info = DebugInfo(Elf(program_file(tmp_path / "twin", [Unit(unit)])))
        found = info.function_at(Address(0x1004))
        assert found is not None
        assert found.unsigned(dw.DW_AT_decl_line) == line


FOLDED = """
struct one { int pad, value; };
struct two { long other; int value; };
__attribute__((noinline)) int first(struct one *r) { return r->value * 3 + 7; }
__attribute__((noinline)) int second(struct two *r) { return ((int *)r)[1] * 3 + 7; }
int main(int c, char **v) {
    struct one o = { c, c };
    struct two t = { c, c };
    return first(&o) + second(&t);
}
"""


def test_functions_that_the_linker_folded_have_their_own_types(tmp_path: Path) -> None:
    require("gcc", "ld.gold")
    (tmp_path / "folded.c").write_text(FOLDED)
    apart = ["-fno-ipa-icf", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all"]
    command = ["gcc", "-O2", "-g", *apart, "-o", "folded", "folded.c"]
    subprocess.run(command, check=True, cwd=tmp_path)
    program = DwarfProgram(str(tmp_path / "folded"))
    first, second = only(program, "first"), only(program, "second")
    assert first.address == second.address
    for function, name in ((first, "one"), (second, "two")):
        assert function.name == function.symbol
        pointer = program.type(program.parameters(function)[0].type)
        assert isinstance(pointer, PointerType)
        pointed = program.type(pointer.target)
        assert isinstance(pointed, StructType)
        assert pointed.name == name


def test_what_link_time_optimisation_only_inlines(tmp_path: Path) -> None:
    # The unit of the file does not say that it was inlined, and has no copies.
    require("gcc")
    (tmp_path / "one.c").write_text(
        "int volatile seen;\n"
        "int within(int n) { return n * 3 + seen; }\n"
        "int main(int c, char **v) { seen = within(c); return 0; }\n"
    )
    command = ["gcc", "-g", "-O2", "-flto", "one.c", "-o", "one"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    program = DwarfProgram(str(tmp_path / "one"))
    assert not program.functions_named("within")
    assert program.evidence.is_only_inlined("within")
    assert not program.evidence.is_only_inlined("nothing")
