"""Numbers that are taken apart: complex ones and integers of two words."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
struct numbers { double _Complex z; float _Complex f; __int128 big; long double ld; char name[]; };
volatile long sink;
__attribute__((noinline)) void use(struct numbers *p, __int128 given) {
  sink += p->name[0] + (long)given;
}
int main(int argc, char **argv) { struct numbers n = { 0 }; use(&n, argc); return 0; }
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    require("gcc")
    folder = tmp_path_factory.mktemp("halves")
    (folder / "numbers.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-o", "numbers", "numbers.c"], check=True, cwd=folder)
    return fetchc.open(str(folder / "numbers")).probe("use", kernel="6.1")


@pytest.mark.parametrize(
    ("text", "fetched"),
    [
        ("p->z.real", "+0(%di):x64"),
        ("p->z.imag", "+8(%di):x64"),
        ("p->f.imag", "+20(%di):x32"),
        ("p->z:x64[2]", "+0(%di):x64[2]"),
        ("p->big.low", "+32(%di):u64"),
        ("p->big.high", "+40(%di):s64"),
        ("given.high", "%dx:s64"),
        ("p->big:x64[2]", "+32(%di):x64[2]"),
        ("p->ld:x8[10]", "+48(%di):x8[10]"),
        ("p->name", "+64(%di):string"),
    ],
)
def test_parts(probe: fetchc.Probe, text: str, fetched: str) -> None:
    argument = probe.compile(text)
    assert argument.fetcharg == fetched
    assert argument.warnings == ()


def test_whole_ones_are_two_arguments(probe: fetchc.Probe) -> None:
    line = probe.definition([probe.compile("p->z"), probe.compile("given")], "g", "e")
    wanted = "p_z_real=+0(%di):x64 p_z_imag=+8(%di):x64 given_low=%si:u64 given_high=%dx:s64"
    assert line.endswith(wanted)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("p->z", "FC0312"),
        ("p->big", "FC0312"),
        ("p->ld", "FC0312"),
        ("p->z.abs", "FC0302"),
        ("p->big.middle", "FC0302"),
        ("p->big:x64[3]", "FC0307"),
        ("p->ld:x64", "FC0307"),
    ],
)
def test_refusals(probe: fetchc.Probe, text: str, code: str) -> None:
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile(text).fetcharg  # noqa: B018
    assert caught.value.diagnostics[0].code == code
