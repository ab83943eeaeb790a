"""Producer strings of compilers, and the quirks that follow from them."""

from __future__ import annotations

import pytest

from fetchc.program.compiler import compiler_of

GXX = "GNU C++17 12.2.0 -mtune=generic -march=x86-64 -g -O2 -fasynchronous-unwind-tables"
RUSTC = "clang LLVM (rustc version 1.63.0)"


@pytest.mark.parametrize(
    ("producer", "name", "language", "version"),
    [
        ("", "", "", None),
        (GXX, "gcc", "C++17", (12, 2)),
        ("GNU C++ 4.8.5 20150623 (Red Hat 4.8.5-44) -O1", "gcc", "C++", (4, 8)),
        ("GNU GIMPLE 12.2.0 -O2 -fltrans", "gcc", "GIMPLE", (12, 2)),
        ("GNU Go 12.2.0 -O2", "gcc", "Go", (12, 2)),
        ("GNU C17", "gcc", "C17", None),
        ("GNU AS 2.40", "gas", "", (2, 40)),
        ("Debian clang version 14.0.6", "clang", "", (14, 0)),
        ("clang version 16.1.6 (https://…)", "clang", "", (16, 1)),
        ("clang version x", "clang", "", None),
        (RUSTC, "rustc", "", (1, 63)),
        ("Go cmd/compile go1.15.15", "go", "", (1, 15)),
        ("Go cmd/compile devel go1.23-8e1fdea8", "go", "", (1, 23)),
        ("Go cmd/compile devel; regabi", "go", "", None),
        ("Go cmd/asm go1.22.10", "go-asm", "", (1, 22)),
        (".NET 9.0", "dotnet", "", (9, 0)),
        ("Mono AOT Compiler 6.8.0.105", "mono", "", (6, 8)),
        ("NetRuntime", "nativeaot", "", None),
        ("Fortran by hand", "", "", None),
        (f"clang version {'9' * 5000}", "clang", "", (999_999, 0)),
    ],
)
def test_parts(producer: str, name: str, language: str, version: tuple[int, int] | None) -> None:
    made = compiler_of(producer)
    assert (made.producer, made.name) == (producer, name)
    assert (made.front_end, made.version) == (language, version)


def test_a_string_is_parsed_once() -> None:
    assert compiler_of(GXX) is compiler_of(GXX[:10] + GXX[10:])


@pytest.mark.parametrize(
    ("producer", "optimized"),
    [
        (GXX, True),
        ("GNU C17 12.2.0 -g", False),
        ("GNU C17 12.2.0 -O2 -O0", False),
        ("GNU C17 12.2.0 -O0 -Os", True),
        ("Go cmd/compile go1.22.10; -N -l regabi", False),
        ("Go cmd/compile go1.22.10; regabi", True),
        ("clang version 14.0.6", None),
        ("", None),
    ],
)
def test_optimization_is_what_the_options_say(producer: str, optimized: bool | None) -> None:
    assert compiler_of(producer).optimized is optimized


@pytest.mark.parametrize(
    ("level", "merges"),
    [("", False), ("-O1", False), ("-Og", False), ("-O2", True), ("-O2 -fno-ipa-icf", False)],
)
def test_gcc_merges_identical_functions_from_o2_on(level: str, merges: bool) -> None:
    assert compiler_of(f"GNU C17 12.2.0 {level}").merges_identical_functions is merges


def test_link_time_optimization_has_inputs_and_an_output() -> None:
    compiled, linked = compiler_of("GNU C17 12.2.0 -flto=auto"), compiler_of("GNU GIMPLE 12.2.0")
    assert (compiled.is_lto_input, compiled.is_lto_output) == (True, False)
    assert (linked.is_lto_input, linked.is_lto_output) == (False, True)
    assert compiled.is_whole_program
    assert compiler_of("GNU C17 12.2.0 -fwhole-program").is_whole_program
    assert not compiler_of("GNU C17 12.2.0 -O2").is_whole_program


@pytest.mark.parametrize(
    ("producer", "dwarf", "records"),
    [
        ("GNU C++14 7.1.0", 4, True),
        ("GNU C++14 6.3.0", 4, False),
        ("GNU C++14 7.1.0 -gstrict-dwarf", 4, False),
        ("GNU C++14 7.1.0 -gstrict-dwarf", 5, True),
        ("GNU C17 12.2.0", 5, False),
        ("clang version 14.0.6", 5, False),
    ],
)
def test_gxx_records_defaulted_members_from_7_on(producer: str, dwarf: int, records: bool) -> None:
    assert compiler_of(producer).records_defaulted_members(dwarf) is records


def test_rustc_has_the_quirks_of_llvm_and_no_version_of_go() -> None:
    made = compiler_of(RUSTC)
    assert made.drops_unused_parameters
    assert made.go_version is None
    assert compiler_of("Go cmd/compile go1.27.3; regabi").go_version == (1, 27)
