"""Policies for Tetragon, followed by its rules: they load what the fetch-arg loads."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import fetchc
from fetchc.cli import main
from fetchc.debuginfo.btf.btf_format import Btf
from tests.support.cases import CORPUS

C = CORPUS / "c/layouts/bin/gcc-O2-dwarf5"
GO = CORPUS / "go/dnsforward/bin/go1.27"
HANDLER = "main.(*server).handleRequest"
REGISTERS = ("di", "si", "dx", "cx", "r8")


def policy(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    yaml: Any = importlib.import_module("yaml")
    assert main(["compile", *words, "--format", "tetragon"]) == 0
    loaded: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    assert loaded["kind"] == "TracingPolicy"
    (uprobe,) = loaded["spec"]["uprobes"]
    assert isinstance(uprobe, dict)
    return uprobe


def followed(argument: dict[str, Any], btf: Btf) -> str:
    """The fetch-arg that does what Tetragon does with one of ``args``.

    Rules: pkg/btf/btf.go (ResolveBTFPath): a member that is a pointer, and a last one that is an
    integer, is loaded; bpf/process/generic_arg.h: a step adds its offset first.
    """
    value, pending = f"%{REGISTERS[argument['index']]}", 0
    steps = argument["resolve"].split(".") if "resolve" in argument else []
    assert len(steps) <= 10
    (number,) = btf.named(argument["btfType"], ("STRUCT",)) if steps else (0,)
    for step in steps:
        entry = btf.entry(number)
        members = {
            btf.text(entry.words[at]): (entry.words[at + 1], entry.words[at + 2])
            for at in range(0, 3 * entry.count, 3)
        }
        number, bit = members[step]
        pending += bit // 8
        kind = btf.kind(number)
        if kind in ("PTR", "INT"):
            value, pending = f"+{pending}({value})", 0
            number = btf.entry(number).value if kind == "PTR" else number
    kind = re.sub(r"^(u?)int", lambda found: found[1] or "s", argument["type"])
    if kind != "string":
        assert not pending
        return f"{value}:{kind}"
    return f"+{pending}({value}):string"


@pytest.mark.parametrize(
    ("binary", "function", "expressions"),
    [
        (C, "visit", ["r->text", "r->head->next->value", "depth", "r->letter", "r->sh"]),
        (C, "visit", ["r->i", "r->ul", "r->yes", "r->colour"]),
        (GO, HANDLER, ["r.Question[0].Qtype", "len(r.Question)", "r.MsgHdr.Id", "r.Compress"]),
    ],
)
def test_a_path_loads_what_the_fetch_arg_loads(
    binary: Path,
    function: str,
    expressions: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "t.btf"
    probe = fetchc.open(binary).probe(function)
    usable = [one for one in expressions if _compiles(probe, one)]
    assert len(usable) >= 4
    point = ["-x", str(binary), "-f", function]
    uprobe = policy(capsys, *usable, *point, "--btf", str(file))
    assert uprobe["offsets"] == [probe.offset]
    assert uprobe["btfPath"] == str(file)
    btf = Btf("t.btf", file.read_bytes())
    theirs = [followed(each, btf) for each in uprobe["args"]]
    assert theirs == [probe.compile(one).fetcharg for one in usable]


def _compiles(probe: fetchc.Probe, text: str) -> bool:
    try:
        return "x" not in probe.compile(text).fetcharg.rpartition(":")[2]
    except fetchc.CompileError:
        return False


def test_a_string_inside_of_an_object_is_read_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.btf"
    words = ["r->letters", "-x", str(C), "-f", "visit", "--btf", str(file)]
    (argument,) = policy(capsys, *words)["args"]
    assert followed(argument, Btf("t.btf", file.read_bytes())) == "+108(%di):string"


def test_registers_that_pass_no_argument_of_c_are_data(capsys: pytest.CaptureFixture[str]) -> None:
    uprobe = policy(capsys, "(int)%ax", "-x", str(C), "-f", "visit")
    (data,) = uprobe["data"]
    assert (data["source"], data["resolve"], data["type"]) == ("pt_regs", "rax", "int32")
    assert "btfPath" not in uprobe


@pytest.mark.parametrize(
    ("expressions", "why"),
    [
        (["depth"] * 6, "carries 5 values"),
        ([f"r->head{'->next' * 9}->value"], "a path has 10 steps, and this 11"),
        (["b->five"], "it has no bit fields"),
        (["*(long *)(%ax)"], "it follows no pointer in %ax"),
        (["$retval"], "a function's return"),
    ],
)
def test_what_it_cannot_carry_is_refused_by_name(
    expressions: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [f"v{number}={text}" for number, text in enumerate(expressions)]
    function = "flags" if "b->five" in expressions else "visit"
    words = [*named, "-x", str(C), "-f", function, "--format", "tetragon"]
    words += ["--return"] if "$retval" in expressions else []
    assert main(["compile", *words, "--btf", str(tmp_path / "t.btf")]) == 1
    printed = capsys.readouterr()
    assert "FC0514" in printed.err
    assert why in printed.err
    assert printed.out == ""
    assert not list(tmp_path.iterdir())


def test_registers_of_go_that_pass_no_argument_of_c_lead_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-x", str(GO), "-f", HANDLER, "--format", "tetragon", "--btf", str(tmp_path / "t")]
    assert main(["compile", "s.name", *words]) == 1
    assert (
        "it follows no pointer in %ax, only in %di, %si, %dx, %cx, %r8" in capsys.readouterr().err
    )
    assert main(["compile", "s", *words]) == 0
    assert 'resolve: "rax"' in capsys.readouterr().out


def test_a_path_without_a_file_of_btf_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["r->head->value", "-x", str(C), "-f", "visit", "--format", "tetragon"]
    assert main(["compile", *words]) == 1
    assert "--btf" in capsys.readouterr().err
