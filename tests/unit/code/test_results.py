"""What code after a call takes of its result."""

from __future__ import annotations

import pytest

from fetchc.code.disassembly import bytes_left, keeps, taken, written
from fetchc.quantities import Address


@pytest.mark.parametrize(
    ("code", "registers"),
    [
        ("4889c3", {"ax"}),  # mov %rax,%rbx
        ("85c0 7402", {"ax"}),  # test %eax,%eax; je
        ("4801d0 c3", {"ax", "dx"}),  # add %rdx,%rax; ret
        ("4889d3 4889c1", {"ax", "dx"}),  # mov %rdx,%rbx; mov %rax,%rcx
        ("b801000000 89c3", set()),  # mov $1,%eax; mov %eax,%ebx
        ("31c0 89c3", set()),  # xor %eax,%eax; mov %eax,%ebx
        ("0f94c0 0fb6d8", set()),  # sete %al; movzbl %al,%ebx
        ("50 58", set()),  # push %rax; pop %rax
        ("83c8ff 89c3", set()),  # or $-1,%eax
        ("19c0 89c3", set()),  # sbb %eax,%eax
        ("0f1f0400 c3", set()),  # nopl (%rax,%rax)
        ("e800000000 89c3", set()),  # call: what is behind it is another result
        ("ffd0", {"ax"}),  # call *%rax
        ("eb00 89c3", set()),  # jmp
    ],
)
def test_what_is_read_before_it_is_written(code: str, registers: set[str]) -> None:
    found = taken(bytes.fromhex(code), Address(0x1000), "x86_64")
    assert found & {"ax", "dx"} == registers


def test_what_is_written() -> None:
    code = bytes.fromhex("b801000000 4889d6 c3")  # mov $1,%eax; mov %rdx,%rsi; ret
    found = written(code, Address(0x1000), "x86_64")
    assert "ax" in found
    assert "si" in found
    assert "dx" not in found


@pytest.mark.parametrize(
    ("code", "start", "left"),
    [
        ("01c8 c3", 0, None),  # add %ecx,%eax
        ("4863c9", 0, 4),  # movslq %ecx,%rcx
        ("4863c9 480fbec9", 0, 1),  # and movsbq %cl,%rcx
        ("488b0d00000000", 0, 0),  # mov (%rip),%rcx
        ("4889d1", 0, 0),  # mov %rdx,%rcx: another value
        ("480fbfcf", 4, 2),  # movswq %di,%rcx
        ("4889f9", 3, 8),  # mov %rdi,%rcx
        ("480fbfcf 01c8", 4, 2),
        ("4889f9 0fb7c9", 3, 2),  # mov %rdi,%rcx; movzwl %cx,%ecx
        ("488b0f 4883c101", 3, None),  # mov (%rdi),%rcx; add $1,%rcx: the variable may have it
    ],
)
def test_what_a_register_has_left(code: str, start: int, left: int | None) -> None:
    base, begin = Address(0x1000), Address(0x1000 + start)
    assert bytes_left(bytes.fromhex(code), base, "x86_64", "cx", begin) == left


@pytest.mark.parametrize(
    ("code", "survives", "kept"),
    [
        ("7005 90 90 90 90 90 c3", False, True),  # jo to the site, no call
        ("7009 90 c3 90 90 90 90 90 90 90 e800000000 ebf0", False, False),  # jo, call, and back
        ("7009 90 c3 90 90 90 90 90 90 90 e800000000 ebf0", True, True),
        ("7009 90 c3 90 90 90 90 90 90 90 e800000000 c3", False, True),  # and never back
        # mov %rcx,8(%rsp); call; mov 8(%rsp),%rcx; jmp back
        ("7009 90 c3 90 90 90 90 90 90 90 48894c2408 e800000000 488b4c2408 ebe6", False, True),
        ("7009 90 c3 90 90 90 90 90 90 90 48894c2408 e800000000 488b4c2410 ebe6", False, False),
    ],
)
def test_a_register_that_a_call_on_one_way_changes(code: str, survives: bool, kept: bool) -> None:
    base, data = Address(0x1000), bytes.fromhex(code)
    site = Address(0x1007 if code.startswith("7005") else 0x1002)
    found = keeps([(base, data)], "x86_64", "cx", base, site, lambda _: survives)
    assert found is kept
