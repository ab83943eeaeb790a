"""The message for a wrong hand-written definition says what to write, and that is accepted."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.driver.check_definitions import Checked, check_definition
from fetchc.target.kernel_versions import kernel
from tests.support.programs import fixture

PATH = str(fixture("c/layouts/gcc-O2-dwarf5"))
LINE = f"p:a {PATH}:0x47e0 "


def checked(text: str, machine: str = "x86_64") -> Checked:
    return check_definition(text, kernel("6.18"), machine)


def helps(text: str) -> set[str | None]:
    return {each.help for each in checked(text).problems}


@pytest.mark.parametrize(
    ("wrong", "help", "right"),
    [
        ("%rdi", "write `%di`", "%di"),
        (LINE + "n=%edi", "write `%di:u32`", LINE + "n=%di:u32"),
        (LINE + "a=%di;b=%si", "separate arguments with blanks", LINE + "a=%di b=%si"),
        ("+0(%di):int", "write `s32`", "+0(%di):s32"),
        ("+0(%di):int[4]", "write `s32`", "+0(%di):s32[4]"),
        ("+0(%di):uint32_t", "write `u32`", "+0(%di):u32"),
        ("+0(%di):i16", "write `s16`", "+0(%di):s16"),
        ("+0(%di):%s", "write `string`", "+0(%di):string"),
        ("+0(%di):float", "write `x32`", "+0(%di):x32"),
        (LINE + "n=%di:string", "follow the pointer: `+0(%di):string`", LINE + "n=+0(%di):string"),
        ("%di:u64[4]", "follow the pointer: `+0(%di):u64[4]`", "+0(%di):u64[4]"),
        (LINE + "8(%di)", "write the sign: `+8(%di)`", LINE + "+8(%di)"),
        (
            LINE + '"+0(%di):string"',
            "remove the quotes: the kernel splits at blanks and does not know quotes",
            LINE + "+0(%di):string",
        ),
        (
            LINE + "a = %di",
            "write `NAME=FETCH-ARG` as one word, without blanks",
            LINE + "a=%di",
        ),
        ("a-b=%di", "write `a_b`", "a_b=%di"),
        (f"p:a-b {PATH}:0x47e0", "write `a_b`", f"p:a_b {PATH}:0x47e0"),
        (f"p:1g/a {PATH}:0x47e0", "write `_1g`", f"p:_1g/a {PATH}:0x47e0"),
        (
            f"p: {PATH}:0x47e0",
            "name it, or leave the name out: `p PATH:OFFSET`",
            f"p {PATH}:0x47e0",
        ),
        (f"r:a {PATH}:0x47e0 $ret", "write `$retval`", f"r:a {PATH}:0x47e0 $retval"),
        (LINE + "$retval", "probe the return: `r` in place of `p`", f"r:a {PATH}:0x47e0 $retval"),
    ],
)
def test_what_is_advised_is_accepted(wrong: str, help: str, right: str) -> None:
    assert helps(wrong) == {help}
    assert checked(right).problems == ()


def test_registers_of_another_machine() -> None:
    assert helps("p do_sys_open dfd=%x0") == {
        "it is one of aarch64: `--arch aarch64` selects its registers"
    }
    assert checked("p do_sys_open dfd=%x0", "aarch64").problems == ()
    assert helps("p do_sys_open dfd=%nothing") == {None}


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("p:/bin/bash:readline prompt=+0(%di):string", "/bin/bash"),
        ("r:bash:readline +0($retval):string", "PATH"),
        ("p:bash:readline", "PATH"),
        ("p:a /bin/bash:readline %di", "/bin/bash"),
    ],
)
def test_functions_by_name_are_for_compile(text: str, file: str) -> None:
    command = f"`fetchc compile EXPR --format probe -x {file} -f readline` writes the line"
    assert command in helps(text)


def test_names_of_the_program_are_for_compile() -> None:
    assert helps(LINE + "depth") == {
        f"`fetchc compile 'depth' -x {PATH} -f FUNCTION` finds it in the program"
    }
    assert helps(LINE + "$arg1") == {
        f"`fetchc compile '$arg1' -x {PATH} -f FUNCTION` says where it is"
    }


def test_an_address_has_an_offset() -> None:
    code = next(each for each in Elf(PATH).segments if each.flags & 1)
    path = str(fixture("go/dnsforward/go1.15"))
    segment = next(each for each in Elf(path).segments if each.flags & 1)
    address, offset = segment.address + 0x1000, segment.offset + 0x1000
    assert helps(f"p {path}:{address:#x}") == {f"the address {address:#x} is at offset {offset:#x}"}
    assert helps(f"p {PATH}:{code.offset + (1 << 40):#x}") == {None}


def test_a_line_of_the_kernels_command_line() -> None:
    assert "commas are for the kernel's command line: write blanks" in helps("p:a,do_open,b=%ax")
