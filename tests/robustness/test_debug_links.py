"""Sections that lead to other files, of any content: only a located error may come out."""

from __future__ import annotations

import lzma
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.elfwriter import Sym, elf_file

CODES = ("FC0902", "FC0903", "FC0904", "FC0905", "FC0908", "FC0909")
NAMES = (".gnu_debuglink", ".gnu_debugaltlink", ".gnu_debugdata", ".note.gnu.build-id")
INSIDE = elf_file({"x": b"y"}, symbols=[Sym("hidden", 0x1000, 16)])

mutated = st.builds(
    lambda at, byte: INSIDE[: at % len(INSIDE)] + byte + INSIDE[at % len(INSIDE) + 1 :],
    st.integers(0),
    st.binary(max_size=2),
)
content = st.one_of(
    st.binary(max_size=64),
    st.binary(max_size=8).map(lambda name: b"../" + name + b"\0" + bytes(20)),
    mutated.map(lzma.compress),
    mutated.map(lambda inside: lzma.compress(inside)[:-9]),
)


def said(path: Path, sections: dict[str, bytes]) -> list[DebugInfoError]:
    """What comes out of every question that follows a link."""
    path.write_bytes(elf_file(sections))
    elf = Elf(str(path), Search(None, (str(path.parent),), (str(path.parent),)))
    found = []
    for ask in (
        lambda: elf.open_section(".debug_info"),
        lambda: list(elf.function_symbols()),
        lambda: elf.symbols_named("hidden"),
        lambda: elf.finder.alternate(elf.debug_image),
        lambda: elf.finder.package(elf.debug_image),
    ):
        try:
            ask()
        except DebugInfoError as refused:
            found.append(refused)
    return found


@given(sections=st.dictionaries(st.sampled_from(NAMES), content))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_content(sections: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "program"
    for refused in said(path, sections):
        assert refused.code in CODES
        assert refused.path.startswith(str(path))


def test_what_is_damaged_is_noticed(tmp_path: Path) -> None:
    damaged = {".gnu_debuglink": b"x", ".gnu_debugdata": b"y"}
    whole = {".gnu_debugdata": lzma.compress(INSIDE)}
    assert [one.section for one in said(tmp_path / "p", damaged)][:2] == [".gnu_debuglink"] * 2
    assert [one.section for one in said(tmp_path / "p", whole)] == [".gnu_debugaltlink"]
