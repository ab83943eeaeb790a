"""A stripped program, its debug information in every place where it can be: the values are those
that the program prints.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import build, left_behind, trace
from tests.support import debuginfod
from tests.support.container import contained
from tests.support.debug_files import by_build_id

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not shutil.which("objcopy"), reason="no objcopy: .ci/setup installs it"),
]
CHECKED = ["n", "it->number", "it->minus", "it->shade"]
CALLS = 12


class Stripped:
    """A program without debug information, and the file that has it."""

    def __init__(self, folder: Path) -> None:
        self.whole = build(folder)
        self.folder = folder
        self.program = folder / "stripped"
        self.debug = folder / "elsewhere/stripped.debug"
        self.debug.parent.mkdir()
        build_id = fetchc.open(str(self.whole)).build_id
        assert build_id is not None
        self.build_id = bytes.fromhex(build_id)
        objcopy("--only-keep-debug", self.whole, self.debug)
        objcopy("--strip-all", self.whole, self.program)


def objcopy(*words: str | Path) -> None:
    subprocess.run(["objcopy", *map(str, words)], check=True, timeout=60)


@pytest.fixture(name="stripped")
def stripped_(tmp_path: Path) -> Stripped:
    return Stripped(tmp_path)


def printed(lines: Sequence[str]) -> list[dict[str, object]]:
    """The values of each call, as the program printed them."""
    shades = {-1: "DARK", 0: "PLAIN", 300: "LIGHT"}
    found = []
    for line in lines:
        n, _, _, _, number, _, _, minus, _, shade, *_ = line.split()[1:]
        named = {"name": shades[int(shade)], "value": int(shade)}
        values: list[object] = [int(n), int(number), int(minus), named]
        found.append(dict(zip(CHECKED, values, strict=True)))
    return found


def check(capfd: pytest.CaptureFixture[str], stripped: Stripped, *words: str | Path) -> None:
    program = stripped.program
    where = ["-x", program, "-f", "work", "--format", "jsonl", *words]
    traced = trace(capfd, *CHECKED, *where, "--", program)
    assert (traced.status, traced.errors) == (0, "")
    assert len(traced.args) == CALLS
    assert traced.args == printed(traced.program)


def test_a_wrong_value_would_be_noticed(
    stripped: Stripped, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = trace(
        capfd, *CHECKED, "-x", stripped.program, "-f", "work", "--format", "jsonl",
        "--debug-file", stripped.debug, "--", stripped.program,
    )  # fmt: skip
    assert shown.args[1:] == printed(shown.program)[1:]
    assert shown.args[:-1] != printed(shown.program)[1:]


def test_in_a_tree_by_build_id(stripped: Stripped, capfd: pytest.CaptureFixture[str]) -> None:
    place = by_build_id(stripped.folder / "tree", stripped.build_id)
    place.parent.mkdir(parents=True)
    shutil.copy(stripped.debug, place)
    check(capfd, stripped, "--debug-dir", stripped.folder / "tree")


def test_beside_the_program(stripped: Stripped, capfd: pytest.CaptureFixture[str]) -> None:
    beside = stripped.folder / "stripped.debug"
    shutil.copy(stripped.debug, beside)
    objcopy(f"--add-gnu-debuglink={beside}", stripped.program)
    check(capfd, stripped)


def test_named_by_the_user(stripped: Stripped, capfd: pytest.CaptureFixture[str]) -> None:
    check(capfd, stripped, "--debug-file", stripped.debug)
    check(capfd, stripped, "--debug-file", stripped.whole)


@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_compressed(method: str, stripped: Stripped, capfd: pytest.CaptureFixture[str]) -> None:
    known = subprocess.run(["objcopy", "--help"], capture_output=True, text=True, check=True)
    if method not in known.stdout:
        pytest.skip(f"this objcopy does not know {method}")
    objcopy(f"--compress-debug-sections={method}", stripped.debug)
    check(capfd, stripped, "--debug-file", stripped.debug)


def test_mini_debug_information_has_the_functions(
    stripped: Stripped, capfd: pytest.CaptureFixture[str]
) -> None:
    # As Fedora makes it: an ELF file with the symbol table alone, packed by xz.
    symbols = stripped.folder / "symbols"
    objcopy("--strip-debug", stripped.debug, symbols)
    (stripped.folder / "symbols.xz").write_bytes(lzma.compress(symbols.read_bytes()))
    added = f"--add-section=.gnu_debugdata={stripped.folder}/symbols.xz"
    objcopy(added, stripped.program)
    program = stripped.program
    # What the registers hold is for the user to say: struct item has `number` at 4.
    words = ["n=(int)$arg2", "number=((int *)$arg1)[1]"]
    where: list[str | Path] = ["-x", program, "-f", "work", "--format", "jsonl", "--", program]
    traced = trace(capfd, *words, *where)
    assert (traced.status, traced.errors) == (0, "")
    wanted = [{"n": each["n"], "number": each["it->number"]} for each in printed(traced.program)]
    assert len(wanted) == CALLS
    assert traced.args == wanted
    # And no names: they are refused, whatever the function is called.
    refused = trace(capfd, "n", *where)
    assert refused.status != 0
    assert "error[FC0903]: `work` has no debug information" in refused.errors


def test_on_a_server(stripped: Stripped) -> None:
    reason = debuginfod.missing()
    if reason:
        pytest.skip(reason)
    program = str(stripped.program)
    # Nobody listens at the first address.
    environment = os.environ | {
        "DEBUGINFOD_URLS": f"http://127.0.0.1:9/none http://127.0.0.1:{debuginfod.PORT}",
        "XDG_CACHE_HOME": str(stripped.folder / "cache"),
    }
    command = [sys.executable, "-m", "fetchc", "trace", *CHECKED, "-x", program, "-f", "work"]
    command += ["--format", "jsonl", "--", program]
    database = stripped.folder / "index.sqlite"
    with debuginfod.serving_folder(stripped.debug.parent, database) as server:
        for _ in range(2):
            done = subprocess.run(
                [*debuginfod.inside(server), *command],
                env=environment, capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, "")
            lines = done.stdout.splitlines()
            events = [json.loads(line)["args"] for line in lines if not line.startswith("EVENT")]
            assert len(events) == CALLS
            assert events == printed([line for line in lines if line.startswith("EVENT")])
    (kept,) = (stripped.folder / "cache/fetchc/debuginfod").iterdir()
    assert kept.read_bytes() == stripped.debug.read_bytes()
    assert left_behind(os.getpid()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="another root directory needs root")
def test_in_a_container(stripped: Stripped, capfd: pytest.CaptureFixture[str]) -> None:
    root = stripped.folder / "root"
    needed = subprocess.run(["ldd", stripped.program], capture_output=True, text=True, check=True)
    for library in re.findall(r"(/\S+) \(", needed.stdout):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    (root / "opt").mkdir()
    shutil.copy(stripped.program, root / "opt/stripped")
    (root / "bin").symlink_to("/opt")  # of the container, not of the host
    place = by_build_id(root / "usr/lib/debug", stripped.build_id)
    place.parent.mkdir(parents=True)
    shutil.copy(stripped.debug, place)
    with contained(root, "/opt/stripped", "loop") as pid:
        seen = f"/proc/{pid}/root"
        for path in (f"/proc/{pid}/exe", f"{seen}/bin/stripped"):
            opened = fetchc.open(path)
            assert opened.path == f"{seen}/opt/stripped"
            where = ["-x", path, "-f", "work", "-p", str(pid), "--format", "jsonl"]
            traced = trace(capfd, "n", "it->number", *where, "--count", "20")
            assert traced.status == 0
            assert "FC0613" not in traced.errors
            assert len(traced.args) == 20
            for args in traced.args:
                assert args["it->number"] == args["n"] % 256 - 50


def test_deleted_while_it_runs(stripped: Stripped, capfd: pytest.CaptureFixture[str]) -> None:
    copy = stripped.folder / "copy"
    shutil.copy(stripped.program, copy)
    with subprocess.Popen([copy, "loop"], stdout=subprocess.DEVNULL) as running:
        try:
            copy.unlink()
            path = f"/proc/{running.pid}/exe"
            where: list[str | Path] = ["-x", path, "-f", "work", "-p", str(running.pid)]
            where += ["--format", "jsonl", "--debug-file", stripped.debug, "--count", "20"]
            traced = trace(capfd, "n", "it->number", *where)
        finally:
            running.kill()
    assert traced.status == 0
    assert len(traced.args) == 20
    for args in traced.args:
        assert args["it->number"] == args["n"] % 256 - 50
