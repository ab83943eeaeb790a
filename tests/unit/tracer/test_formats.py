"""``format`` files of events."""

from __future__ import annotations

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.events import Field
from fetchc.tracer.ring_buffer import parse_format

HEAD = """\
name: handle
ID: 1613
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;
"""
TAIL = '\nprint fmt: "(%lx) a=%d field:", REC->__probe_ip, REC->a\n'


def fields(*lines: str) -> dict[str, Field]:
    text = HEAD + "".join(f"\tfield:{line};\n" for line in lines) + TAIL
    return {field.name: field for field in parse_format(text).fields}


def test_name_number_and_order() -> None:
    format = parse_format(HEAD + TAIL)
    assert (format.id, format.event) == (1613, "handle")
    assert [field.name for field in format.fields] == ["common_type", "common_pid", "__probe_ip"]
    assert format.fields[1] == Field("common_pid", 4, 4, True, None, False)


@pytest.mark.parametrize(
    ("line", "size", "field"),
    [
        ("s32 a", "4;\tsigned:1", Field("a", 16, 4, True, None, False)),
        ("u8 c", "1;\tsigned:0", Field("c", 16, 1, False, None, False)),
        ("s32 n[]", "16;\tsigned:1", Field("n", 16, 4, True, 4, False)),
        ("s32 n[4]", "16;\tsigned:1", Field("n", 16, 4, True, 4, False)),
        ("u8 n[1]", "1;\tsigned:0", Field("n", 16, 1, False, 1, False)),
        ("unsigned long c[8]", "64;\tsigned:0", Field("c", 16, 8, False, 8, False)),
        ("__data_loc char[] s", "4;\tsigned:1", Field("s", 16, 4, False, None, True)),
        ("__data_loc char[][2] s", "8;\tsigned:1", Field("s", 16, 4, False, 2, True)),
        ("__data_loc char[] s[2]", "8;\tsigned:1", Field("s", 16, 4, False, 2, True)),
    ],
)
def test_kinds_of_fields(line: str, size: str, field: Field) -> None:
    assert fields(f"{line};\toffset:16;\tsize:{size}")[field.name] == field


@pytest.mark.parametrize(
    "line",
    [
        "s32 a",
        "long n[];\toffset:16;\tsize:16;\tsigned:1",
        "u64 n[];\toffset:16;\tsize:17;\tsigned:0",
    ],
)
def test_fields_of_other_forms_are_refused(line: str) -> None:
    with pytest.raises(TracerError, match=r"a field of another form|whose size|broken elements"):
        fields(line)


def test_no_format_is_refused() -> None:
    with pytest.raises(TracerError, match="no name or ID"):
        parse_format("")
