"""Enumerations in structures of the other byte order, which gcc marks at their numbers alone."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import require

SOURCE = """
enum kind { A = 1, B = 5, C = 0x12345678 };
enum __attribute__((packed)) small { D, E };
struct plain { int n; enum kind e; };
struct __attribute__((scalar_storage_order("big-endian"))) box {
    int n; enum kind e; enum small k; enum small f : 5; unsigned g : 3;
};
__attribute__((noinline)) int take(struct box *b, struct plain *q) { return b->n + b->e + q->n; }
int main(int c) {
    struct box b = {c, B, D, E, 3}; struct plain q = {c, B};
    return take(&b, &q);
}
"""


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> fetchc.Probe:
    require("gcc")
    folder = tmp_path_factory.mktemp("order")
    (folder / "order.c").write_text(SOURCE)
    command = ["gcc", "-g", "-O1", "-w", "order.c", "-o", "order"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return fetchc.open(str(folder / "order")).probe("take")


@pytest.mark.parametrize("expression", ["b->e", "b->f", "b->n", "b->g"])
def test_numbers_of_the_other_order_are_refused(probe: fetchc.Probe, expression: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        print(probe.compile(expression).fetcharg)
    (one,) = refused.value.diagnostics
    assert one.code == "FC0311"
    assert "its byte order is not the machine's" in one.message


def test_what_has_no_order_is_read(probe: fetchc.Probe) -> None:
    texts = ("b->k", "q->e", "q->n")
    fetched = [str(probe.compile(text).fetcharg) for text in texts]
    assert fetched == ["+8(%di):u8", "+4(%si):u32", "+0(%si):s32"]
