"""What SystemTap cannot carry is refused by name; the rest: tests/differential."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.cases import CORPUS

C = CORPUS / "c/layouts/bin/gcc-O2-dwarf5"
GO = CORPUS / "go/dnsforward/bin/go1.27"


def compiled(*words: str) -> int:
    return main(["compile", *words, "--format", "systemtap"])


def test_a_value_that_cannot_be_read_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled("v=r->head->value", "depth", "-x", str(C), "-f", "visit") == 0
    *_, probe, _, value, depth, shown, _ = capsys.readouterr().out.splitlines()
    assert probe == f'probe process("{C}").statement(0x47e0)'
    loads = 'user_int32_error(user_uint64_error(register("rdi") + 288))'
    assert value == (
        f'    try {{ v0 = sprintf("%d", {loads}) }} catch {{ v0 = "(fault)" }}  // v=r->head->value'
    )
    assert 'register("rsi") & 0xffffffff' in depth
    assert shown.endswith(r'"%s-%d visit: v=%s depth=%s\n", execname(), tid(), v0, v1)')


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["r->words", "-x", str(C), "-f", "visit"], "it has no lists of strings"),
        (["v=((int *)r)[0:40]", "-x", str(C), "-f", "visit"], "room for 20 elements, not 40"),
        (["$retval:u64", "-x", str(C), "-f", "visit", "--return"], "a function's return"),
        (["count", "-x", "kernel", "-f", "vfs_read"], "a probe of the kernel"),
        (["(int)%di", "-x", str(C), "-f", "_start"], "no debug information has that address"),
    ],
)
def test_what_it_cannot_carry_is_refused_by_name(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compiled(*words) == 1
    printed = capsys.readouterr()
    assert ("FC0514" in printed.err, why in printed.err, printed.out) == (True, True, ""), printed


def test_a_path_that_is_a_pattern_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "a*b"
    link.symlink_to(C)
    assert compiled("depth", "-x", str(link), "-f", "visit") == 1
    assert "error[FC0510]" in capsys.readouterr().err


def test_an_address_that_only_newer_ones_find_is_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["r.Question[0].Qtype", "-x", str(GO), "-f", "main.(*server).handleRequest"]
    assert compiled(*words) == 0
    assert "warning[FC0610]: SystemTap with elfutils before 0.191" in capsys.readouterr().err
