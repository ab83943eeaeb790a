"""``$args`` and ``$locals``: every variable by its name, or why it has no value."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.cli import main, parse
from fetchc.cli.add_command import prepared
from fetchc.tracer.value_shapes import UnavailableShape
from tests.support.programs import fixture
from tests.support.toolchains import require

GO = str(fixture("go/dnsforward/go1.27"))
C = str(fixture("c/layouts/gcc-O0-dwarf4"))


def labels(path: str, function: str, text: str, at: str | None = None) -> dict[str, str]:
    probe = fetchc.open(path).probe(function, at, kernel="6.1")
    found = {}
    for one in probe.asked_all(text):
        shape = one.shape
        found[one.label] = shape.reason if isinstance(shape, UnavailableShape) else ""
    return found


def test_every_parameter_has_its_name() -> None:
    assert labels(GO, "main.(*server).handleRequest", "$args") == {"s": "", "w": "", "r": ""}


def test_parameters_of_go_without_a_name_have_that_of_the_compiler() -> None:
    features = str(fixture("go/features/go1.27"))
    assert labels(features, "main.hidden", "$args") == {"~p0": "", "n": "", "~p2": ""}


def test_named_results_of_go_are_variables_until_the_return() -> None:
    features = str(fixture("go/features/go1.27-N-l"))
    inside = labels(features, "main.(*store).get", "$locals", "main.go:27")
    assert inside == {"value": "", "found": "", "err": ""}
    assert labels(features, "main.(*store).get", "$locals") == {}


def test_slots_of_parts_of_a_variable_of_go_are_no_variables() -> None:
    probe = fetchc.open(str(fixture("go/features/go1.27"))).probe("main.event", "+0x3d")
    names = [one.name for one in probe.variables()]
    assert "line" in names
    assert not [one for one in names if "." in one]  # Go 1.27 describes `line.ptr`


def test_what_cannot_be_read_has_its_reason() -> None:
    found = labels(C, "visit", "$locals")
    assert list(found) == ["sum"]
    assert "no statement has run at the entry" in found["sum"]
    probe = fetchc.open(C).probe("visit", kernel="6.1")
    plan = probe.plan(["$args", "$locals"], "fetchc_t")
    assert [one.label for one in plan.values] == ["r", "depth", "sum"]


def test_they_are_no_one_value() -> None:
    probe = fetchc.open(C).probe("visit", kernel="6.1")
    for text in ("$args", "$args + 1", "$locals:u8"):
        with pytest.raises(fetchc.CompileError) as refused:
            probe.compile(text)
        assert refused.value.diagnostics[0].code == "FC0103"


def test_compile_has_each_that_a_fetch_arg_can_hold(capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-x", GO, "-f", "main.(*server).handleRequest", "--kernel", "6.1"]
    assert main(["compile", "$args", *where]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["%ax:x64", "%di:x64"]
    assert "warning[FC0605]: `$args` leaves out `w`" in printed.err
    assert main(["compile", "$args", *where, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["probes"][0]["args"]][:1] == ["s"]
    assert main(["compile", "$locals", "-x", C, "-f", "visit", "--kernel", "6.1"]) == 1
    assert "error[FC0401]: `$locals` leaves out `sum`" in capsys.readouterr().err
    assert main(["compile", "$locals", "-x", C, "-f", "triple", "--kernel", "6.1"]) == 1
    assert "nothing here that `$locals` stands for" in capsys.readouterr().err


@pytest.mark.parametrize(
    "texts",
    [["$args"], ["$args", "r->i"], ["$locals"], ["r->i + 1"], ["$pid > 0"], ["$args + 1"],
     ["x=$args"], ["$args", "nosuch"], ["r->text", "$comm"]],
)  # fmt: skip
def test_add_takes_what_compile_takes(texts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [*texts, "-x", C, "-f", "visit"]
    status = main(["compile", *words, "--format", "probe"])
    printed = capsys.readouterr()
    options = parse(["add", *words])
    assert not isinstance(options, int)
    found = prepared(options)
    wanted = () if found.wanted is None else found.wanted.definitions
    assert (found.wanted is None) == (status == 1)
    assert "\n".join(wanted) == (printed.out.rstrip("\n") if wanted else "")
    codes = [one.code for _, diagnostics in found.warnings for one in diagnostics]
    assert [f"[{code}]" in printed.err for code in codes] == [True] * len(codes)
    assert ("error" in printed.err) == (found.wanted is None)


def test_only_go_has_names_that_begin_with_a_tilde(tmp_path: Path) -> None:
    require("gcc")
    source, program = tmp_path / "t.c", tmp_path / "t"
    source.write_text("int f(int r0, int p1) { return r0 + p1; } int main() { f(1, 2); }")
    subprocess.run(["gcc", "-g", "-O0", source, "-o", program], check=True, timeout=60)
    probe = fetchc.open(str(program)).probe("f", kernel="6.1")
    assert probe.asked("~r0").shape == probe.asked("~(r0)").shape
    with pytest.raises(fetchc.CompileError, match="no variable `r2`"):
        probe.asked("~r2")
