"""``fetchc offsets``: tables over several binaries, and what is not in all of them."""

from __future__ import annotations

import gc
import json
import os

import pytest

from fetchc.cli import main
from tests.support.cases import CORPUS

GO = [str(CORPUS / f"go/dnsforward/bin/go{version}") for version in ("1.15", "1.27")]
C = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")


def binaries(*paths: str) -> list[str]:
    return [word for path in paths for word in ("-x", path)]


def test_what_agrees_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offsets", "main.Msg.Question", "main.Msg.Ns", *binaries(*GO)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "main.Msg.Question  +40       24  []main.Question",
        "main.Msg.Ns        +88       24  []main.RR",
    ]


def test_what_differs_is_reported_by_binary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offsets", "runtime.g.goid", *binaries(*GO)]) == 0
    marked, first, second = capsys.readouterr().out.splitlines()
    assert marked.startswith("runtime.g.goid  differs: type")
    assert first.endswith(f"in {GO[0]}")
    assert second.endswith(f"in {GO[1]}")


def test_a_table_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["offsets", "bits.five", "main.Msg.Ns", *binaries(C, GO[0]), "--format=json"]
    assert main(words) == 1
    made = json.loads(capsys.readouterr().out)
    assert [each["binary"] for each in made["binaries"]] == [C, GO[0]]
    five = {"offset": 0, "size": 4, "type": "int", "bit_offset": 1, "bit_width": 5}
    assert made["offsets"][0] == {"field": "bits.five", "differs": ["found"], "found": [five, None]}
    assert made["offsets"][1]["found"][0] is None
    said = [(each["binary"], each["code"], each["expression"]) for each in made["diagnostics"]]
    assert said == [(C, "FC0204", "main.Msg.Ns"), (GO[0], "FC0204", "bits.five")]


def test_a_file_that_cannot_be_read_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offsets", "main.Msg.Ns", *binaries("/no/such/file", GO[0])]) == 3
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "main.Msg.Ns  differs: found",
        "  --  in /no/such/file",
        f"  +88       24  []main.RR  in {GO[0]}",
    ]
    assert "error[FC0901]: /no/such/file: cannot be read" in printed.err


@pytest.mark.parametrize("words", [["offsets", "-x", C], ["offsets", "bits"]])
def test_what_is_missing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "is missing" in capsys.readouterr().err


def test_compilers_spell_one_type_differently(capsys: pytest.CaptureFixture[str]) -> None:
    # gcc: `std::allocator<Contact>, Contact`, `std::pair<int const, …>`; clang: `const int`.
    paths = [str(CORPUS / f"cpp/addressbook/bin/{each}-O0") for each in ("g++", "clang++")]
    nested = "__gnu_cxx::__alloc_traits<std::allocator<Contact>,Contact>::value_type.calls"
    asked = "std::map<int,std::string>._M_t", nested
    assert main(["offsets", *asked, *binaries(*paths)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in printed] == ["+0", "+96"]


@pytest.mark.parametrize(
    "words", [["offsets", "main.Msg.Ns", *binaries(GO[0])], ["compile", "--batch", os.devnull]]
)
def test_the_garbage_of_a_process_of_others_is_not_frozen(words: list[str]) -> None:
    before = gc.get_freeze_count(), gc.isenabled()
    assert main(words) == 0
    assert (gc.get_freeze_count(), gc.isenabled()) == before


def test_parameters_of_functions(capsys: pytest.CaptureFixture[str]) -> None:
    name = "main.(*server).forward"
    assert main(["offsets", "--params", name, *binaries(GO[1])]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{name}(s)          8  *main.server  %ax",
        f"{name}(q)         24  main.Question  +0 %bx, +8 %cx, +16 %di, +18 %si",
        f"{name}(depth)      1  int8  %r8",
        f"{name}(final)      1  bool  %r9",
    ]
    assert main(["offsets", "--params", name, *binaries(*GO), "--format", "json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert [row["differs"] for row in table["parameters"]] == [["pieces"]] * 4
    old, new = table["parameters"][2]["found"]
    stack = {"base": {"kind": "register", "name": "sp"}, "loads": [{"offset": 40}]}
    assert old["pieces"] == [{"offset": 0, "size": 1, **stack}]
    assert new["pieces"][0]["base"] == {"kind": "register", "name": "r8"}


def test_one_function_that_cannot_be_probed_hides_no_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["offsets", "--params", "runtime.a*", *binaries(GO[1])]) == 1
    printed = capsys.readouterr()
    assert "runtime.acquirep(pp)" in printed.out
    assert printed.err.count("error[") == 1  # runtime.abort
    assert "error[FC0515]" in printed.err


@pytest.mark.parametrize("point", ["runtime.add", "main.main%return"])
def test_parameters_have_their_places_at_an_entry(
    point: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["offsets", "--params", point, *binaries(GO[1])]) == 1  # inlined; several returns
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("error[FC0206]")) == ("", 1)


@pytest.mark.parametrize("more", [["--into", "x"], ["--format", "obi"]])
def test_parameters_have_no_version(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["offsets", "--params", "main.main", *more, *binaries(GO[1])]) == 2
    assert "leave --params out" in capsys.readouterr().err
