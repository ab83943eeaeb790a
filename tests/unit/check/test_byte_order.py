"""Numbers in structures of the other byte order: single bytes have none.

Enumerations there are not marked by gcc, their numbers alone are.
"""

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
    unsigned char c; signed char s; _Bool b; unsigned char few[3];
    unsigned char five : 5, three : 3; unsigned twelve : 12; enum kind many[2][2];
};
struct __attribute__((scalar_storage_order("big-endian"), packed)) bytes {
    unsigned char n; enum kind e; unsigned char low : 5, over : 5;
};
struct __attribute__((scalar_storage_order("big-endian"))) row { short n[2]; enum kind e; };
__attribute__((noinline)) int take(struct box *b, struct plain *q, struct bytes *y, struct row *r) {
    return b->n + b->e + q->n + y->over + r->e;
}
int main(int c) {
    struct box b = {c, B, D, E, 3}; struct plain q = {c, B}; struct bytes y = {c};
    struct row r = {{c, c}, B};
    return take(&b, &q, &y, &r);
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


@pytest.mark.parametrize(
    "expression",
    [
        "b->e", "b->f", "b->n", "b->twelve", "y->e", "y->over",
        "b->many", "b->many[1]", "b->many[1][0]",
        "r->e", "r->n[0]",
    ],
)  # fmt: skip
def test_numbers_of_the_other_order_are_refused(probe: fetchc.Probe, expression: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        print(probe.compile(expression).fetcharg)
    (one,) = refused.value.diagnostics
    assert one.code == "FC0311"
    assert "its byte order is not the machine's" in one.message


def test_what_has_no_order_is_read(probe: fetchc.Probe) -> None:
    texts = ("b->k", "b->c", "b->s", "b->b", "b->few[1]", "y->n", "q->e", "q->n")
    fetched = [str(probe.compile(text).fetcharg) for text in texts]
    assert fetched == [
        *("+8(%di):u8", "+10(%di):u8", "+11(%di):s8", "+12(%di):u8", "+14(%di):u8"),
        *("+0(%dx):u8", "+4(%si):u32", "+0(%si):s32"),
    ]


def test_bits_are_counted_from_the_other_end_of_their_byte(probe: fetchc.Probe) -> None:
    # As the program writes them: `five` is in the upper bits of its byte.
    fetched = [str(probe.compile(f"b->{name}").fetcharg) for name in ("g", "five", "three")]
    assert fetched == ["+9(%di):b3@0/8", "+16(%di):b5@3/8", "+16(%di):b3@0/8"]


def test_of_a_whole_structure_they_are_left_out(probe: fetchc.Probe) -> None:
    texts = [text for text in probe.definition([probe.compile("*b")]).split() if "=" in text]
    assert [text.partition("=")[0] for text in texts] == [
        *("b_k", "b_g", "b_c", "b_s", "b_b", "b_few", "b_five", "b_three"),
    ]
