"""Results of Rust's functions: what a trace shows is what the program said it will return.

What rustc does with them is written down nowhere. So this is what the versions that
targets/runtime/rust/results.toml lists rest on.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fetchc
from tests.live.rustc import builds, compiled
from tests.live.traced import trace
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = Path(__file__).parents[2] / "corpus/rust/library/results.rs"
RESULTS = {"lent": "*$retval", "boxed": "$retval.x"}  # of the others all of it
LEFT_OUT = "it may return nothing"
REFUSED = ("string", "pair", "option", "float", "wide")


def version(compiler: str) -> int:
    """95 of Rust 1.95."""
    done = subprocess.run([compiler, "-V"], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[1].split(".")[1])


def printed(lines: list[str]) -> dict[str, list[Any]]:
    """What each function will return, call by call."""
    found: dict[str, list[Any]] = {}
    for line in lines:
        if (words := line.removeprefix("EVENT ")).startswith("{"):
            one = json.loads(words)
            found.setdefault(one["function"], []).append(one["value"])
    return found


def refused(binary: Path, name: str) -> str:
    """The message of what cannot be had, empty where it can."""
    probe = fetchc.open(str(binary)).probe(f"results::{name}", returns=True)
    try:
        probe.compile("$retval")
    except fetchc.CompileError as error:
        return error.diagnostics[0].message
    return ""


@pytest.mark.parametrize(("compiler", "level"), builds("2", "0"))
def test_every_result_is_what_the_program_printed(
    compiler: str, level: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_uprobes()
    if version(compiler) < 73:
        pytest.skip("of rustc before 1.73 results are refused")
    flags = ("-C", f"opt-level={level}")
    source = tmp_path / "results/main.rs"
    source.parent.mkdir()
    source.write_text(SOURCE.read_text())
    binary = compiled(compiler, source, tmp_path / "program", *flags)
    done = subprocess.run([binary], check=True, capture_output=True, text=True)
    names = printed(done.stdout.split("\n"))
    assert len(names) == 13
    compared = 0
    for name in names:
        if level != "0" and LEFT_OUT in refused(binary, name):
            continue  # callers know what comes of it
        compared += 1
        seen = trace(
            capfd, f"it={RESULTS.get(name, '$retval')}", "--return", "-x", binary,
            "-f", f"results::{name}", "--format", "jsonl", "--timeout", "200", "--", binary,
        )  # fmt: skip
        assert [args["it"] for args in seen.args] == printed(seen.program)[name], name
    assert compared >= (13 if level == "0" else 9)
    for name in REFUSED:
        assert "Rust has no specified calling convention" in refused(binary, name), name
    assert (LEFT_OUT in refused(binary, "unused")) == (level != "0")


def test_old_compilers_are_not_known(tmp_path: Path) -> None:
    binary = Path(__file__).parents[2] / "corpus/rust/requests/bin/rustc-O0"
    probe = fetchc.open(str(binary)).probe("requests::handle", returns=True)
    with pytest.raises(fetchc.CompileError) as refusal:
        probe.compile("$retval")
    (told_of,) = refusal.value.diagnostics
    assert told_of.code == "FC0401"
    assert "rustc version 1.63.0" in told_of.message
