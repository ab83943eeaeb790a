"""``fetchc complete``: words of options and commands, what bash replaces, and silence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fetchc.ceilings import Exceeded
from fetchc.cli import main
from fetchc.cli.complete_command import answer, bash_answer
from fetchc.cli.option_table import COMMANDS, OPTIONS, Options
from fetchc.privileges import NOBODY
from fetchc.tracer.persistent_probes import AddedEvent, State, state_file

CORPUS = Path(__file__).parents[3] / "corpus"
C = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
GO = str(CORPUS / "go/dnsforward/bin/go1.27")
CPP = str(CORPUS / "cpp/addressbook/bin/clang++-O0")
BREAKS = " \t\n\"'@><=;|&(:"


def texts(*words: str) -> list[str]:
    return [each.text for each in answer(words, Options("complete"))[1]]


def bash(line: str, kind: str = "9") -> list[str]:
    return bash_answer(line, (BREAKS, kind), Options("complete"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_offered_with_its_help(name: str) -> None:
    if COMMANDS[name].hidden:
        assert name not in texts("")
        return
    assert name in texts("")
    offered = {each.text: each.help for each in answer((name, "-"), Options("complete"))[1]}
    for key in COMMANDS[name].options:
        for flag in OPTIONS[key].flags:
            assert offered[flag] == OPTIONS[key].help


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("compile", "--format", "p"), ["probe", "perf"]),
        (("compile", "--format=p"), ["--format=probe", "--format=perf"]),
        (("compile", "--ret", "--ret"), ["--return"]),
        (("compile", "--return", "--ret"), []),  # once is enough
        (("trace", "-x", C, "-f", "main", "-f", "visi"), ["visit"]),
        (("trace", "-x", C, "-fvisi"), ["-fvisit"]),
        (("compile", "x @ visi", "-x", C), []),  # the cursor is at the end
        (("compile", "-x", C, "r @ visi"), ["r @ visit"]),
        (("compile", "-x", C, "-f", "visit", "--expr", "r->he"),
         ["r->head", "r->head->value", "r->head->next", "r->head->label"]),
        (("compile", "-x", C, "--at", "b"), ["body"]),
        (("compile", "--kernel", "run"), ["running"]),
        (("compile", "--arch", "aar"), ["aarch64"]),
        (("trace", "-x", C, "--by", "$co"), ["$comm"]),
        (("offsets", "-x", C, "--version", ""), []),
        (("trace", "-p", str(os.getpid()), "--stack=f"), ["--stack=fp"]),
        (("trace", "-x", C, "--stack", "-f", "visi"), ["visit"]),
        (("trace", "-x", C, "-f", "visit", "--by", "$comm,r->i"), ["$comm,r->i", "$comm,r->in"]),
        (("trace", "-x", C, "-f", "visit", "--by", "$comm,$pi"), ["$comm,$pid"]),
        (("trace", "-x", C, "-f", "visit", "--linear", "10,r->sh"), ["10,r->sh"]),
        (("help", "tra"), ["trace"]),
        (("help", "trace", ""), []),
        (("cache", "s"), ["show"]),
        (("completion", "z"), ["zsh"]),
        (("cache", "show", ""), []),
        (("explain", "FC0302"), ["FC0302"]),
        (("variables", "-x", C, "visi"), ["visit"]),
        (("types", "-x", C, "struct nod"), ["struct node"]),
        (("offsets", "-x", C, "struct node.v"), ["struct node.value"]),
        (("functions", "-x", GO, "dleReq"), ["main.(*server).handleRequest"]),
        (("nothing", "a"), []),
        (("compile", "--nothing", "--expr"), ["--expr"]),
    ],
)  # fmt: skip
def test_words(words: tuple[str, ...], expected: list[str]) -> None:
    assert texts(*words) == expected


@pytest.mark.parametrize(
    "words", [("compile", "-x", ""), ("btf", "-o", ""), ("trace", "-x", C, "--", "")]
)
def test_names_of_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert answer(words, Options("complete"))[0] == "files"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"fetchc compile -x {C} -f visit 'r->hea", "r->head"),
        (f"fetchc compile -x {C} -f visit r->hea", "head"),
        (f"fetchc compile -x {C} -f visit r-\\>hea", "r-\\>head"),
        (f'fetchc compile -x {C} -f visit "n=r->hea', "n=r->head"),
        (f"fetchc compile -x {C} -f visit n=r-\\>hea", "r-\\>head"),
        (f"fetchc compile -x {C} -f visit r-\\>i:ustr", "ustring"),
        ("fetchc compile --format=prob", "probe"),
        (f"fetchc types -x {CPP} shapes::deep::P", "Point"),
        (f"fetchc types -x {CPP} 'shapes::deep::P", "shapes::deep::Point"),
        (f"fetchc functions -x {GO} 'main.(*server).ha", "main.(*server).handleRequest"),
        (f"fetchc functions -x {GO} main.\\(\\*server\\).ha", "main.\\(\\*server\\).handleRequest"),
        ("A=1 B=2 fetchc func", "functions"),
    ],
)
def test_bash_replaces_what_is_behind_its_last_break(line: str, expected: str) -> None:
    assert bash(line)[1] == expected


def test_a_listing_of_bash_has_help_and_short_names() -> None:
    line = f"fetchc compile -x {GO} -f 'main.(*server).handleRequest' r.Question[0]."
    assert bash(line, "63") == [
        "word", "Name  -- string", "Qtype  -- uint16", "Qclass  -- uint16",
    ]  # fmt: skip


def test_names_that_begin_otherwise_replace_nothing() -> None:
    how, *found = bash(f"fetchc functions -x {GO} Quest")
    assert (how, found[-1]) == ("menu", " ")
    assert len(found) > 2


@pytest.mark.parametrize("kind", ["missing", "zero", "fifo", "folder", "cut", "stripped", "text"])
def test_what_cannot_be_read_is_silent(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    match kind:
        case "zero":
            path.symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "cut":
            path.write_bytes(Path(C).read_bytes()[:9000])
        case "stripped":
            subprocess.run(["strip", "-o", path, C], check=True)
        case "text":
            path.write_text("no program")
        case _:
            assert kind == "missing"
    for words in (["-f", "vis"], ["-f", "visit", "r->"], ["-f", "visit", ""], ["--at", ":"]):
        assert main(["complete", "words", "--", "compile", "-x", str(path), *words]) == 0
        assert main(["complete", "bash", "--", f"fetchc compile -x {path} {' '.join(words)}"]) == 0
    assert main(["complete", "words", "--", "types", "-x", str(path), "s"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert set(out.split()) <= {"word", "files", "visit"}


@pytest.mark.parametrize("raised", [Exceeded("30 s"), MemoryError()])
def test_what_takes_too_long_is_silent(
    raised: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def opened(options: Options) -> None:
        raise raised

    monkeypatch.setattr(Options, "opened", opened)
    assert main(["complete", "words", "--", "compile", "-x", C, "-f", "vis"]) == 0
    assert capfd.readouterr() == ("", "")


def test_remove_is_completed_with_what_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert texts("remove", "") == []
    state = State(state_file())
    with state.locked():
        state.save([AddedEvent("shop", one, "/b", None, (), ("p:x",)) for one in ("pay", "order")])
    assert sorted(texts("remove", "")) == ["shop/order", "shop/pay"]
    assert texts("remove", "shop/o") == ["shop/order"]
    assert texts("remove", "ord") == ["shop/order"]  # by a part of its name
    assert texts("remove", "shop/order", "shop/") == ["shop/pay"]
    Path(state.path).write_text("damaged")
    assert texts("remove", "") == []


def test_a_name_that_moves_the_cursor_is_not_offered() -> None:
    code = (
        "import sys, time; open('/proc/self/comm', 'w').write('a\\x1b[2J'); print(); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            offered = texts("trace", "--pid", str(process.pid)[:-1])
        finally:
            process.kill()
    assert str(process.pid) not in offered
    assert str(os.getpid()) in texts("trace", "--pid", "")


def test_the_program_of_a_process_and_a_process_by_its_name(tmp_path: Path) -> None:
    program = tmp_path / "fetchc_waits"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"]) as process:
        # The kernel closes the pipe that Popen waits for before it sets the name.
        while Path(f"/proc/{process.pid}/comm").read_text() != "fetchc_waits\n":
            time.sleep(0.01)
        try:
            assert texts("trace", "-p", "fetchc_wai") == ["fetchc_waits"]
            by_process = answer(("trace", "-p", str(process.pid), "-f", ""), Options("complete"))
            by_name = answer(("trace", "-p", "fetchc_waits", "-f", ""), Options("complete"))
        finally:
            process.kill()
    by_file = answer(("trace", "-x", str(program), "-f", ""), Options("complete"))
    assert by_process == by_name == by_file


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_the_file_of_another_users_process_is_read_without_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    opened = Options.opened
    log = tmp_path / "users"

    def logged(options: Options) -> object:
        if os.geteuid() != NOBODY:
            log.write_text(f"user {os.geteuid()}")
        return opened(options)

    with subprocess.Popen(["sleep", "60"], user=NOBODY) as process:
        try:
            monkeypatch.setattr(Options, "opened", logged)
            path = f"/proc/{process.pid}/exe"
            assert answer(("functions", "-x", path, "n"), Options("complete"))[0] in (
                "word",
                "menu",
            )
        finally:
            process.kill()
    assert not log.exists()
