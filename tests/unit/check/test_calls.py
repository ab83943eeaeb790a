"""Functions, which the kernel cannot call, and formats by the names of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def probe() -> fetchc.Probe:
    program = fetchc.open(str(ROOT / "corpus/c/layouts/bin/gcc-O2-dwarf5"))
    return program.probe("visit")


def refused(probe: fetchc.Probe, text: str) -> tuple[str, str, str | None]:
    with pytest.raises(fetchc.CompileError) as refusal:
        probe.compile(text)
    (diagnostic,) = refusal.value.diagnostics
    return diagnostic.code, diagnostic.message, diagnostic.help


@pytest.mark.parametrize("text", ["hashed(r->text)", "hashed(r->text, depth)", "hashed()"])
def test_a_function_is_no_type(probe: fetchc.Probe, text: str) -> None:
    code, message, help = refused(probe, text)
    assert code == "FC0204"
    assert message == "`hashed` is not a type, and the kernel cannot call a function"
    assert help is not None
    assert "-f hashed --return '$retval'" in help


@pytest.mark.parametrize(
    ("text", "code"), [("int(nothing)", "FC0201"), ("len(r, r)", "FC0101"), ("(none)r", "FC0204")]
)
def test_what_is_wrong_otherwise_is_refused_as_before(
    probe: fetchc.Probe, text: str, code: str
) -> None:
    found, message, _ = refused(probe, text)
    assert (found, "call no function" in message) == (code, False)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("int", "s32"), ("str", "string"), ("uint16_t", "u16"), ("i64", "s64"), ("nonsense", None)],
)
def test_a_format_by_another_name(probe: fetchc.Probe, word: str, meant: str | None) -> None:
    code, _, help = refused(probe, f"depth:{word}")
    assert (code, help) == ("FC0101", None if meant is None else f"write `{meant}`")
