"""Names that are several functions of the running kernel, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.kallsyms import refuse_ambiguous, why_absent

LIST = """\
ffffffff81000010 T vfs_read
ffffffff81000020 t show
ffffffff81000030 t show
ffffffff81000040 d show_table
ffffffff81000050 t changed.isra.0
ffffffff81000060 t changed.cold
ffffffff81000070 T alias
ffffffff81000070 W alias
ffffffffc0000010 t init\t[one]
ffffffffc0000020 t init\t[two]
ffffffffc0000030 t twice\t[one]
ffffffffc0000040 t twice\t[one]
"""


@pytest.fixture
def symbols(tmp_path: Path) -> str:
    path = tmp_path / "kallsyms"
    path.write_text(LIST)
    return str(path)


@pytest.mark.parametrize("point", ["show", "show+0x8", "show%return", "one:twice"])
def test_several_of_a_name_are_refused(symbols: str, point: str) -> None:
    with pytest.raises(TracerError) as refused:
        refuse_ambiguous(["p:g/a vfs_read", f"r64:g/b {point} a=$arg1"], symbols)
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, "2 functions" in diagnostic.message) == ("FC0203", True)


@pytest.mark.parametrize("point", ["vfs_read", "alias", "one:init", "two:init", "none"])
def test_one_of_a_name_is_not(symbols: str, point: str) -> None:
    refuse_ambiguous([f"p:g/a {point}", "t:g/b show", "e:g/c show.show"], symbols)
    refuse_ambiguous([f"p:g/a {point}"], "/none")


def test_who_may_not_see_addresses_sees_the_number(tmp_path: Path) -> None:
    hidden = tmp_path / "kallsyms"
    hidden.write_text("".join(f"{0:016x}{row[16:]}\n" for row in LIST.splitlines()))
    with pytest.raises(TracerError, match="2 functions"):
        refuse_ambiguous(["p:g/a show"], str(hidden))
    refuse_ambiguous(["p:g/a vfs_read"], str(hidden))


def test_why_a_function_is_not_there(symbols: str) -> None:
    assert why_absent("p:g/e vfs_read", symbols) == ()
    assert "`changed.isra.0`" in why_absent("p:g/e changed+0x4 a=%di", symbols)[0]
    assert "cold" not in why_absent("p:g/e changed", symbols)[0]
    assert "inlined" in why_absent("p:g/e small", symbols)[0]
    assert "module `xfs`" in why_absent("p:g/e xfs:small", symbols)[0]
    assert why_absent("p:g/e small", "/none") == ()
