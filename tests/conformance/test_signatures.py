"""Calling conventions against compilers: random signatures, and a spy that is called.

Two looks at each: places below the fetch-args, vector registers and pieces among them, and every
part of parameters and results as an expression.

Seeds are printed with what fails; ``FETCHC_SEEDS=1000-1040`` runs others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from fetchc.abi import convention_for, parameter_places, result_place
from fetchc.conformance.c_comparison import check, reduced, reproducer
from fetchc.conformance.c_comparison import signatures as drawn
from fetchc.conformance.c_programs import Build
from fetchc.conformance.results import Tally
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.ir.fetch import Decode
from fetchc.program.entities import Absent
from fetchc.program.protocol import Program
from fetchc.quantities import TypeId
from fetchc.target.machines import Convention, EightbyteRules, convention
from tests.support.seeds import seeds
from tests.support.signatures import Dump, Signatures, differences, run
from tests.support.toolchains import require

FUNCTIONS = 40  # a program

RUNS = [
    ("gcc", False, ("-O1",)),
    ("gcc", True, ("-O1", "-gdwarf-4")),
    ("clang", False, ("-O1",)),
    ("clang", True, ("-O1", "-gdwarf-4")),
]

BUILDS = [
    Build("gcc", ("-O0", "-gdwarf-4")),
    Build("gcc", ("-O2", "-gdwarf-5", "-no-pie")),
    Build("clang", ("-O0", "-gdwarf-5")),
    Build("clang", ("-O2", "-gdwarf-4")),
    Build("g++", ("-O2", "-gdwarf-5"), plus=True),
    Build("clang++", ("-O0", "-gdwarf-4"), plus=True),
]


def variable_type(program: Program, name: str) -> TypeId:
    (found,) = program.global_variables(name, None)
    return found.type


def compared(
    program: Program, used: Convention, signatures: Signatures, dump: Dump
) -> tuple[int, list[str]]:
    """How many arguments and results were compared, and which are not where we say."""
    count = 0
    wrong = []
    for i, (parameters, result) in enumerate(
        zip(signatures.parameters, signatures.results, strict=True)
    ):
        types = [variable_type(program, f"a_{i}_{j}") for j in range(len(parameters))]
        results = [variable_type(program, f"r_{i}")] if result else []
        places = parameter_places(program, used, types, results)
        spied = dump.bytes["spy", i, 0]
        for j, (type_id, place) in enumerate(zip(types, places, strict=True)):
            if isinstance(place, Absent) and "unsaid" in place.reason:
                continue  # nothing tells whether it is packed
            count += 1
            expected = dump.bytes["argument", i, j]
            if differences(program, type_id, place, expected, spied, False):
                wrong.append(f"function {i} argument {j}: {parameters[j].name} {place}")
        if result:
            count += 1
            place = result_place(program, used, results[0])
            expected, spied = dump.bytes["result", i, 0], dump.bytes["returned", i, 0]
            if differences(program, results[0], place, expected, spied, True):
                wrong.append(f"function {i} result: {result.name} {place}")
    return count, wrong


def spied_program(
    seed: int, compiler: str, attributes: bool, options: tuple[str, ...], folder: Path
) -> tuple[Program, Convention, Signatures, Dump]:
    signatures = Signatures(seed, FUNCTIONS, attributes, wide_complex=compiler != "clang")
    return spied(signatures, compiler, options, folder)


def spied(
    signatures: Signatures, compiler: str, options: tuple[str, ...], folder: Path
) -> tuple[Program, Convention, Signatures, Dump]:
    require(compiler)
    binary, dump = run(signatures, compiler, folder, *options)
    program = DwarfProgram(str(binary))
    (main,) = program.functions_named("main")
    return program, convention_for(program, main), signatures, dump


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(("compiler", "attributes", "options"), RUNS)
def test_arguments_are_where_the_convention_says(
    seed: int, compiler: str, attributes: bool, options: tuple[str, ...], tmp_path: Path
) -> None:
    program, used, signatures, dump = spied_program(seed, compiler, attributes, options, tmp_path)
    count, wrong = compared(program, used, signatures, dump)
    print(f"seed {seed}, {compiler} {used.name}: {count} arguments and results")
    assert not wrong
    assert count > 5 * FUNCTIONS


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_arguments_behind_an_integer_that_finds_one_register(
    seed: int, compiler: str, tmp_path: Path
) -> None:
    # clang up to 16 leaves the register that half of a __int128 is in to what follows.
    made = Signatures(seed, FUNCTIONS, False, wide_complex=compiler != "clang", crowded=True)
    count, wrong = compared(*spied(made, compiler, ("-O1", "-gdwarf-4"), tmp_path))
    assert not wrong
    assert count > 5 * FUNCTIONS


IN_PACKED = {  # what is at offset 6 in a packed structure
    "bits": "struct { unsigned b : 23; }",
    "wide_bits": "struct { unsigned long b : 3; }",
    "raised": "struct __attribute__((aligned(4))) { char c[4]; }",
    "raised_little": "struct __attribute__((aligned(2))) { char c[2]; }",
    "plain": "struct { char c[4]; }",
    "number": "struct { int i; }",
    "short_number": "struct { short i; }",
}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_structures_in_packed_ones(compiler: str, tmp_path: Path) -> None:
    # clang puts a structure into memory where one in it is not aligned, gcc where a scalar is not.
    declared = {}
    for name, inner in IN_PACKED.items():
        for many, shown in (("", name), ("[2]", f"{name}s")):
            text = f"struct __attribute__((packed)) {{ int a; char t[2]; {inner} x{many}; }}"
            declared[f"struct {shown}"] = text.replace("(packed)) {", f"(packed)) {shown} {{") + ";"
    count, wrong = compared(
        *spied(Signatures.of(declared), compiler, ("-O1", "-gdwarf-5"), tmp_path)
    )
    assert not wrong
    assert count == 2 * len(IN_PACKED)


@pytest.mark.parametrize("fault", ["swapped registers", "swapped results", "split integers"])
def test_a_wrong_convention_is_noticed(fault: str, tmp_path: Path) -> None:
    program, used, signatures, dump = spied_program(1, "gcc", False, ("-O1",), tmp_path)
    assert isinstance(used.rules, EightbyteRules)
    integers, results = used.integer_registers, used.result_integer_registers
    if fault == "swapped registers":
        integers = (integers[1], integers[0], *integers[2:])
    elif fault == "swapped results":
        results = results[::-1]
    else:
        used = convention("sysv-x86_64-clang16")
    changed = Convention(
        name=used.name,
        architecture=used.architecture,
        word_bytes=used.word_bytes,
        stack_pointer=used.stack_pointer,
        stack_offset=used.stack_offset,
        integer_registers=integers,
        float_registers=used.float_registers,
        result_integer_registers=results,
        result_float_registers=used.result_float_registers,
        rules=used.rules,
    )
    assert compared(program, changed, signatures, dump)[1]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("build", BUILDS, ids=str)
def test_every_part_is_there(
    seed: int, build: Build, tmp_path: Path, tell: Callable[[Tally], None]
) -> None:
    require(build.compiler)
    random = Random(f"{seed} {build}")
    families = [drawn(random, 0, FUNCTIONS, plus=build.plus)]
    tally, failures = check(families, build, tmp_path)
    tell(tally)
    if failures:
        small = reproducer(*reduced(failures[0], build, tmp_path))
        pytest.fail(f"{len(failures)} wrong, the first:\n{small}")
    assert tally.expressions > 10 * FUNCTIONS
    assert tally.compared > 0.6 * tally.expressions


def test_swapped_registers_are_noticed_in_the_parts(
    tmp_path: Path,
) -> None:
    require("gcc")
    build = Build("gcc", ("-O0", "-gdwarf-4"))

    def swapped(text: str, decode: Decode) -> tuple[str, Decode]:
        return text.replace("%si", "%dx"), decode

    _, failures = check([drawn(Random(1), 0, 10)], build, tmp_path, swapped)
    assert failures
    assert all("%dx" in str(failure.fetcharg) for failure in failures)
