"""Debug files on the command line: named, in folders, from servers, wrong ones, and none."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest

import fetchc
from fetchc.cli import main
from fetchc.cli.output import Output
from fetchc.debuginfo.separate import debuginfod
from tests.support.debug_files import by_build_id
from tests.support.programs import fixture
from tests.support.web import Answer, send, serving

pytestmark = pytest.mark.skipif(not shutil.which("objcopy"), reason="no objcopy: .ci/setup")
NAME = "c/layouts/gcc-O2-dwarf5"
WANTED = "+0(+288(%di)):s32\n"


def objcopy(*words: str | Path) -> None:
    subprocess.run(["objcopy", *map(str, words)], check=True, timeout=60)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stripped program with its debug file in ``debug``, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    # On a busy machine all takes long: no word of it unless it is what is tested.
    monkeypatch.setattr(debuginfod, "_FIRST", 600.0)
    (tmp_path / "debug").mkdir()
    objcopy("--only-keep-debug", fixture(NAME), tmp_path / "debug/program.debug")
    objcopy("--strip-all", fixture(NAME), tmp_path / "program")
    return tmp_path


def compiled(folder: Path, *words: str | Path) -> int:
    question = ["compile", "r->head->value", "-x", folder / "program", "-f", "visit"]
    return main([str(word) for word in (*question, *words)])


def test_the_user_names_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    debug = folder / "debug/program.debug"
    assert compiled(folder, "--debug-file", debug) == 0
    assert capsys.readouterr().out == WANTED
    assert compiled(folder, "--debug-file", fixture(NAME)) == 0  # before it was stripped
    program = fetchc.open(str(folder / "program"), debug_file=str(debug))
    assert program.probe("visit").compile("r->head->value").fetcharg == WANTED.strip()


def test_the_user_names_its_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("", "nothing/here"):
        capsys.readouterr()
        named: list[str | Path] = ["--debug-dir", folder / place, "--debug-dir", folder / "debug"]
        assert compiled(folder, *named) == 0
        assert capsys.readouterr().out == WANTED
    program = fetchc.open(str(folder / "program"), debug_dirs=[str(folder / "debug")])
    assert program.probe("visit").compile("r->head->value").fetcharg == WANTED.strip()


def test_every_command_takes_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, named = ["-x", str(folder / "program")], ["--debug-dir", str(folder / "debug")]
    for words, wanted in (
        (["functions", "--long", "visit"], "visit(struct record * r, int depth) -> int"),
        (["variables", "visit"], "struct record *"),
        (["types", "node"], "struct node  (struct, 24 bytes)"),
        (["offsets", "struct node.next"], "+8"),
        (["explain", "r->head->value", "-f", "visit"], "a register"),
    ):
        assert main([*words, *program, *named]) == 0
        assert wanted in capsys.readouterr().out


def test_a_batch_names_them_too(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"binary": str(folder / "program"), "function": "visit"}
    asked |= {"expressions": ["r->head->value"]}  # type: ignore[dict-item]
    lines = [
        asked,
        asked | {"debug_file": str(folder / "debug/program.debug")},
        asked | {"debug_dir": [str(folder / "debug")]},
    ]
    (tmp_path / "questions").write_text("\n".join(map(json.dumps, lines)))
    assert main(["compile", "--batch", str(tmp_path / "questions")]) == 1
    refused, *answers = map(json.loads, capsys.readouterr().out.splitlines())
    assert refused["diagnostics"][0]["code"] == "FC0202"
    for answer in answers:
        assert answer["probes"][0]["args"][0]["fetcharg"] == WANTED.strip()
    assert main(["compile", "--batch", "-", "--debug-dir", str(folder)]) == 2


def test_a_file_of_another_build_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for other in ("c/layouts/clang-O2-dwarf5", "go/dnsforward/go1.27"):
        assert compiled(folder, "--debug-file", fixture(other)) == 3
        printed = capsys.readouterr().err
        assert printed.startswith(
            f"error[FC0908]: {folder}/program: its debug file {fixture(other)}"
        )
    assert compiled(folder, "--debug-file", folder / "program") == 3
    assert "error[FC0903]" in capsys.readouterr().err
    assert compiled(folder, "--debug-file", folder / "none") == 3
    assert "error[FC0901]" in capsys.readouterr().err
    assert compiled(folder, "--debug-file", __file__) == 3
    assert f"error[FC0902]: {__file__}" in capsys.readouterr().err


def test_debug_files_are_of_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = str(fixture("dotnet/echo/sample.dll"))
    for binary in (image, "kernel"):
        words = ["types", "*", "-x", binary, "--debug-file", str(folder / "debug/program.debug")]
        assert main(words) == 3
        assert "error[FC0905]" in capsys.readouterr().err


def test_a_link_leads_beside_the_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    debug = folder / "debug/program.debug"
    for place in (folder, folder / ".debug"):
        place.mkdir(exist_ok=True)
        shutil.copy(debug, place)
        objcopy("--remove-section=.gnu_debuglink", folder / "program")
        objcopy(f"--add-gnu-debuglink={debug}", folder / "program")
        assert compiled(folder) == 0
        assert capsys.readouterr().out == WANTED
        (place / "program.debug").unlink()


def test_where_it_was_looked_for_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objcopy(f"--add-gnu-debuglink={folder}/debug/program.debug", folder / "program")
    assert compiled(folder, "--debug-dir", folder / "empty", "--at", "0x47e0") != 0
    printed = capsys.readouterr().err
    own = str(folder).lstrip("/")
    for place in (
        f"{folder}/empty/{own}/program.debug",
        f"{folder}/empty/program.debug",
        f"{folder}/program.debug",
        f"{folder}/.debug/program.debug",
        f"/usr/lib/debug/{own}/program.debug",
    ):
        assert place in printed
    assert "set DEBUGINFOD_URLS" in printed


def test_a_server_has_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    build_id = fetchc.open(str(fixture(NAME))).build_id
    assert build_id is not None
    asked: list[str] = []
    with serving(send((folder / "debug/program.debug").read_bytes()), asked) as server:
        monkeypatch.setenv("DEBUGINFOD_URLS", server)
        for _ in range(2):
            assert compiled(folder) == 0
            assert capsys.readouterr().out == WANTED
        assert asked == [f"/buildid/{build_id}/debuginfo"]
        assert compiled(folder, "--no-cache") == 0
        assert len(asked) == 2
    assert main(["cache", "show"]) == 0
    assert f"debuginfod/{build_id}.debug" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert not list((folder / "cache/fetchc/debuginfod").iterdir())
    monkeypatch.setenv("DEBUGINFOD_URLS", server)  # where nobody is any more
    assert compiled(folder) != 0
    printed = capsys.readouterr().err
    assert f"{server}/buildid/{build_id}/debuginfo (Connection refused)" in printed
    assert f"/usr/lib/debug/{by_build_id(Path(), bytes.fromhex(build_id))}" in printed


def slow(content: bytes, until: Event) -> Answer:
    """Sends half of it, and the rest then."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content[: len(content) // 2])
        until.wait()
        request.wfile.write(content[len(content) // 2 :])

    return answer


def test_a_wait_for_a_server_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debuginfod, "_FIRST", 0.0)
    monkeypatch.setattr(debuginfod, "_EACH", 600.0)
    reported = Event()
    say = Output.say

    def noted(self: Output, text: str) -> None:
        say(self, text)
        reported.set()

    monkeypatch.setattr(Output, "say", noted)
    with serving(slow((folder / "debug/program.debug").read_bytes(), reported)) as server:
        monkeypatch.setenv("DEBUGINFOD_URLS", server)
        assert compiled(folder) == 0
        printed = capsys.readouterr()
        assert printed.out == WANTED
        assert re.fullmatch(rf"downloading {server}/\S+: 0\.\d of 0\.\d MB\n", printed.err)
        # A library says nothing.
        program = fetchc.open(str(folder / "program"))
        assert program.probe("visit").compile("r->head->value").fetcharg == WANTED.strip()
        assert capsys.readouterr() == ("", "")


def test_who_does_not_want_to_wait_leaves_nothing(folder: Path) -> None:
    words = ["compile", "r->head->value", "-x", str(folder / "program"), "-f", "visit"]
    over = Event()
    with serving(slow((folder / "debug/program.debug").read_bytes(), over)) as server:
        running = subprocess.Popen(
            [sys.executable, "-m", "fetchc", *words],
            env=os.environ | {"DEBUGINFOD_URLS": server},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stderr is not None
        assert running.stderr.readline().startswith("downloading ")
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert running.stderr.read() == ""
        running.stderr.close()
        over.set()
    assert list((folder / "cache/fetchc/debuginfod").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("zig-aarch64", "aarch64-linux-gnu"), ("zig-s390x", "s390x-linux-gnu"),
        ("zig-arm", "arm-linux-gnueabihf"), ("zig-ppc64le", "powerpc64le-linux-gnu"),
        ("zig-riscv64", "riscv64-linux-gnu"),
    ],
)  # fmt: skip
def test_of_every_word_size_and_byte_order(
    name: str, tools: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objcopy_of_it = shutil.which(f"{tools}-objcopy")
    if objcopy_of_it is None:
        pytest.skip(f"no {tools}-objcopy: .ci/setup installs it with the compiler")
    whole, debug, program = fixture(f"c/machines/{name}"), tmp_path / "d", tmp_path / "p"
    for words in (
        ["--only-keep-debug", whole, debug],
        ["--strip-all", whole, program],
        [f"--add-gnu-debuglink={debug}", program],
    ):
        subprocess.run([objcopy_of_it, *map(str, words)], check=True, timeout=60)
    printed = []
    for binary in (whole, program):
        assert main(["variables", "chain", "-x", str(binary)]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "struct node *" in printed[0]
