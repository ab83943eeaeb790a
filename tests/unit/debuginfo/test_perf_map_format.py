"""Lines of perf maps: the forms that runtimes write, and what is none."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.perf_map_format import MapLine, number, parse_line, parse_lines, written_line
from fetchc.diag.diagnostic import DebugInfoError


@pytest.mark.parametrize(
    "line",
    [
        "00007FA182C40078 48 int32 [echo] Prog::calculateEchoValue(string)[QuickJitted]",  # 3.1
        "0x7fa182c40078 48 int32 [echo] Prog::calculateEchoValue(string)[QuickJitted]\n",  # 9.0
        "7fa182c40078 0x48  int32 [echo] Prog::calculateEchoValue(string)[QuickJitted]\r\n",
    ],
)
def test_forms_of_a_line(line: str) -> None:
    parsed = parse_line(line)
    name = "int32 [echo] Prog::calculateEchoValue(string)[QuickJitted]"
    assert parsed == MapLine(0x7FA182C40078, 0x48, name)
    assert parse_line(written_line(parsed)) == parsed


@pytest.mark.parametrize("line", ["", "1000 20", "xyz 20 name", "1000 -1 name", "1" * 17 + " 1 a"])
def test_what_is_no_line(line: str) -> None:
    assert parse_line(line) is None
    with pytest.raises(
        DebugInfoError, match=r"FC0904|line 2 is not a line of a perf map"
    ) as refused:
        parse_lines("x.map", f"1000 20 a\n{line or '-'}\n2000 20 b\n".encode())
    assert refused.value.code == "FC0904"


def test_a_line_that_is_being_written_is_left_out() -> None:
    assert parse_lines("x.map", b"1000 20 a b\n\n2000 2") == [MapLine(0x1000, 0x20, "a b")]
    assert parse_lines("x.map", b"") == []


def test_numbers() -> None:
    assert number("0Xff") == 255
    assert number("") is None
    assert number("0x") is None
    assert number("1_0") is None
