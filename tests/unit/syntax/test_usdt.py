"""Arguments of static probes as assemblers write them; the tables against Lark."""

from __future__ import annotations

import random

import pytest

from fetchc.syntax import usdt_tables
from fetchc.syntax.usdt_parser import (
    Immediate,
    Operand,
    Refused,
    Spelled,
    Stored,
    Sum,
    read_argument,
    split_arguments,
)
from tests.property.test_lalr import disagreement

OPERANDS: dict[str, Operand] = {
    "%edi": Spelled("edi", True, Sum("", 0)),
    "w0": Spelled("w0", False, Sum("w0", 0)),
    "5": Spelled("", False, Sum("", 5)),
    "-5": Spelled("", False, Sum("", -5)),
    "limit+8": Spelled("", False, Sum("limit", 8)),
    "$5": Immediate(Sum("", 5)),
    "$-0x10": Immediate(Sum("", -16)),
    "$limit": Immediate(Sum("limit", 0)),
    "#5": Immediate(Sum("", 5)),
    "(%rax)": Stored("%rax", Sum("", 0)),
    "-8(%rbp)": Stored("%rbp", Sum("", -8)),
    "-8+16(%rbp)": Stored("%rbp", Sum("", 8)),
    "limit(%rip)": Stored("%rip", Sum("limit", 0)),
    "limit@GOTOFF(%eax)": Stored("%eax", Sum("limit@GOTOFF", 0)),
    "8+.LC0(%rip)": Stored("%rip", Sum(".LC0", 8)),
    "160(%r15)": Stored("%r15", Sum("", 160)),
    "-20(s0)": Stored("s0", Sum("", -20)),
    "8(1)": Stored("1", Sum("", 8)),
    "[sp]": Stored("sp", Sum("", 0)),
    "[sp, 16]": Stored("sp", Sum("", 16)),
    "[fp, #-8]": Stored("fp", Sum("", -8)),
}
TWO_REGISTERS = [
    "(%rax,%rcx)", "8(%rax,%rcx)", "(%rax,%rcx,8)", "-8(%rax,%rcx,4)", "(,%rcx,8)", "8(,%rcx,8)",
    "[x0, x1]", "[x0, x1, lsl 3]", "[x0, x1, lsl #3]", "[x0, w1, sxtw]", "8(%r1,%r2)",
    "3,9",
]  # fmt: skip
WRONG = ["", "%", "8(%rbp", "[sp", "$", "x@(%rip)", "8(%rbp))", "(%rax,%rcx,", "a-b",
         "a+b(%rip)", "08x(%rsp)", "0x1ffffffffffffffff(%rsp)", "%edi %esi", "[x0]!"]  # fmt: skip


@pytest.mark.parametrize(("text", "operand"), OPERANDS.items())
def test_operands(text: str, operand: Operand) -> None:
    read = read_argument(f"-4@{text}")
    assert (read.size, read.signed, read.floating, read.operand) == (4, True, False, operand)


def test_sizes() -> None:
    for text, expected in (
        ("8", (8, False, False)),
        ("-1", (1, True, False)),
        ("4f", (4, False, True)),
    ):
        read = read_argument(f"{text}@%eax")
        assert (read.size, read.signed, read.floating) == expected


@pytest.mark.parametrize("text", [*TWO_REGISTERS, "%fs:16", "%gs:8(%rax)"])
def test_what_no_fetch_can_follow(text: str) -> None:
    operand = read_argument(f"8@{text}").operand
    assert isinstance(operand, Refused)
    assert ("two registers" in operand.why) == (text in TWO_REGISTERS)


@pytest.mark.parametrize("text", WRONG)
def test_what_no_assembler_writes(text: str) -> None:
    with pytest.raises(ValueError, match=r"`|early"):
        read_argument(f"8@{text}")


def test_arguments_are_distinguished_by_their_sizes() -> None:
    assert split_arguments("-4@%edi 8@[sp, 16]  4f@-8(%rbp) ") == (
        "-4@%edi",
        "8@[sp, 16]",
        "4f@-8(%rbp)",
    )
    assert split_arguments("  ") == ()


def test_the_tables_read_as_lark_does() -> None:
    texts = [
        f"{size}@{one}" for size in ("-4", "8f", "") for one in (*OPERANDS, *TWO_REGISTERS, *WRONG)
    ]
    chosen = random.Random(4)
    for text in list(texts):
        at = chosen.randrange(len(text))
        texts.append(text[:at] + chosen.choice("()[],%$#+-@8x ") + text[at + 1 :])
    assert [
        each for text in texts if (each := disagreement(usdt_tables, "usdt", "argument", text))
    ] == []
