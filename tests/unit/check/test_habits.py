"""Names that other tools have: the refusal says what they are called here."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.diag.diagnostic import CompileError
from tests.support.programs import fixture

PROBE = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5"))).probe("visit", kernel="6.1")


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("arg0", "arguments are counted from 1: write `r`, or `$arg1`"),
        ("arg1", "arguments are counted from 1: write `depth`, or `$arg2`"),
        ("arg7", "arguments are counted from 1: write `$arg8`"),
        ("args->r", "`$args` is all parameters; one has its name alone: `r`"),
        ("args.depth", "`$args` is all parameters; one has its name alone: `r`"),
        ("retval", "write `$retval`, with `--return`"),
        ("comm", "write `$comm`"),
        ("str(r)", "leave `str()` out: a `char *` is a string; cast another pointer, `(char *)p`"),
        ("buf(r, 4)", "write a range: `p[0:n]`"),
        ("$rdi", "write `%di`"),
        ("$eax", "write `%ax:u32`"),
        ("$arg0", "write `$arg1` for the first"),
        ("r->list.i", "name it in one element: `e[0].i`; `fetchc trace` has all: `list(e).i`"),
        (
            "r->list[depth].i",
            "`fetchc trace`, `--format bpftrace` and `--format bpf-c` compute the place",
        ),
        (
            'r->list["a"]',
            "a map or a set of Go, Rust or C++, or a `Dictionary` or `HashSet` of .NET",
        ),
        ("*r->in", "it is the object itself: leave the `*` out"),
        # What no other tool has is as before.
        ("dept", "a variable with a similar name is visible: `depth`"),
    ],
)
def test_what_to_write_instead(text: str, help: str) -> None:
    with pytest.raises(CompileError) as refused:
        PROBE.compile(text)
    assert refused.value.diagnostics[0].help == help


def test_a_variable_of_such_a_name_is_that() -> None:
    # `comm` of a structure is a member, and no name of another tool.
    with pytest.raises(CompileError) as refused:
        PROBE.compile("r->comm")
    assert refused.value.diagnostics[0].code == "FC0302"
