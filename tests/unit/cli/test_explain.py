"""``fetchc explain`` as a command: what it prints, as text and as data, and how it ends."""

from __future__ import annotations

import json

import pytest

from fetchc.cli import main
from tests.support.programs import fixture

C = str(fixture("c/layouts/gcc-O2-dwarf5"))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["explain", *words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "r->head->value", "-x", C, "-f", "visit")
    assert status == 0
    assert out.splitlines() == [
        "r->head->value, of type `int`, at the entry of visit, 0x47e0",
        "",
        "  %di                a register            r               struct record *",
        "  +288(%di)          load 8 bytes at +288  r->head         struct node *",
        "  +0(+288(%di)):s32  load s32 at +0        r->head->value  int",
        "  the event holds a signed number of 32 bits",
    ]


def test_a_whole_value_has_a_road_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "r->in @ visit", "-x", C)
    assert status == 0
    assert [line for line in out.splitlines() if line.endswith(":")] == ["s:", "i:"]


def test_data(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--expr", "+4(+264(%di)):s32", "-x", C, "-f", "visit", "--format=json")
    status, out, _ = run(capsys, *words)
    found = json.loads(out)
    assert status == 0
    assert (found["function"], found["kind"], found["address"]) == ("visit", "entry", 0x47E0)
    (fetch,) = found["fetches"]
    assert fetch["fetcharg"] == "+4(+264(%di)):s32"
    assert [hop["expression"] for hop in fetch["hops"]] == ["r", "r->raw", None]
    assert fetch["unknown"] == "`r->raw` is a `void *`: what it points to has no size"
    assert fetch["decode"] is None
    status, out, _ = run(capsys, "r->tiny", "-x", C, "-f", "visit", "--format=json")
    assert json.loads(out)["fetches"][0]["decode"]["kind"] == "enum"


def test_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "fc0302")[1].startswith("FC0302: the structure has no member")
    status, out, _ = run(capsys, "FC0302", "--format", "json")
    assert status == 0
    assert json.loads(out)["code"] == "FC0302"
    assert run(capsys, "FC9999")[0] == 2


def test_how_it_is_used_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys)[0] == 2
    status, _, error = run(capsys, "r->head")
    assert status == 2
    assert "-x BINARY is missing" in error
    assert run(capsys, "r->head", "--expr", "r", "-x", C, "-f", "visit")[0] == 2


def test_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    for text, code in [("r->nope", "FC0302"), ("+0(%rdi)", "FC0512"), ("+0(%di", "FC0101")]:
        status, out, error = run(capsys, "--expr", text, "-x", C, "-f", "visit")
        assert (status, out) == (1, "")
        assert error.startswith(f"error[{code}]"), text
    assert run(capsys, "r->head", "-x", C)[0] == 1
    assert run(capsys, "r->head", "-x", "/nonexistent", "-f", "visit")[0] == 3


def test_a_refused_point_is_shown_itself(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "depth", "-x", C, "-f", "visit", "--at", "+1")
    assert status == 1
    assert err.splitlines()[3:5] == [" 1 | +1", "   | ^^ inside an instruction"]
