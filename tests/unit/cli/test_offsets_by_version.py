"""``fetchc offsets`` by version: into a file, compared with one, and from many programs."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fetchc
from fetchc.answers.offset_collection import Collection, Examined, collect
from fetchc.answers.version_tables import Build, Member, Wanted
from fetchc.cli import main
from tests.support.cases import CORPUS

PROGRAMS = [str(CORPUS / f"go/dnsforward/bin/go1.{minor}") for minor in (15, 22, 27)]
GOID = "runtime.g.goid"


def offsets(*words: str, programs: list[str] | None = None) -> int:
    named = [word for path in programs or PROGRAMS for word in ("-x", path)]
    return main(["offsets", *words, *named])


def test_the_standard_library_has_the_toolchains_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert offsets(GOID, "runtime.g.nothing", "--format", "otel-go") == 0
    (module,) = json.loads(capsys.readouterr().out)
    assert module["module"] == "std"
    (struct,) = module["packages"][0]["structs"]
    assert struct["fields"] == [
        {
            "field": "goid",
            "offsets": [{"offset": 152, "versions": ["1.15.15", "1.22.10", "1.27.3"]}],
        },
        {
            "field": "nothing",
            "offsets": [{"offset": None, "versions": ["1.15.15", "1.22.10", "1.27.3"]}],
        },
    ]


def test_a_program_without_versions_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["main.Question.Qtype", "--format", "otel-go"]
    assert offsets(*question, programs=PROGRAMS[:1]) == 1
    assert "does not say the version of main: give --version" in capsys.readouterr().err
    assert offsets(*question, "--version", "v2.0.1", programs=PROGRAMS[:1]) == 0
    (module,) = json.loads(capsys.readouterr().out)
    (field,) = module["packages"][0]["structs"][0]["fields"]
    assert field["offsets"] == [{"offset": 16, "versions": ["2.0.1"]}]


def test_adding_again_changes_nothing_and_reads_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    assert offsets(GOID, "--format", "otel-go", "--into", str(path), programs=PROGRAMS[:2]) == 0
    before = path.read_bytes()
    assert offsets("--into", str(path), programs=PROGRAMS[:2]) == 0
    assert path.read_bytes() == before
    assert "2 of them were known" in capsys.readouterr().err
    assert offsets("--into", str(path)) == 0
    assert b"1.27.3" in path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["t.json"]


def test_a_wrong_row_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    assert offsets(GOID, "--format", "otel-go", "--into", str(path)) == 0
    assert offsets("--verify", str(path)) == 0
    path.write_text(path.read_text().replace("152", "0"))
    capsys.readouterr()
    assert offsets("--verify", str(path)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{GOID} of 1.15.15 is at +152, the table says +0"
    assert len(lines) == 3


@pytest.mark.parametrize(
    "content", ['[{"module": "std", "packages"', '{"other": 1}', '{"schema": 9}']
)
def test_a_damaged_table_stays_as_it_was(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    assert offsets(GOID, "--into", str(path)) == 3
    assert "FC0904" in capsys.readouterr().err
    assert path.read_text() == content


def test_one_bad_file_costs_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"\x7fELF" + bytes(100))
    assert offsets(GOID, "--format", "otel-go", programs=[str(bad), *PROGRAMS]) == 1
    printed = capsys.readouterr()
    assert "1.27.3" in printed.out
    assert len(printed.err.splitlines()) == 1


def test_archives_and_executors_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "all.tar"
    with tarfile.open(path, "w") as archive:
        for each in PROGRAMS:
            archive.add(each)
    wanted = Collection((Wanted("runtime", "g", "goid"),))
    here = [each.rows for each in collect(PROGRAMS, wanted)]
    assert all(here)
    assert [each.rows for each in collect([str(path)], wanted)] == here
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert [each.rows for each in collect(PROGRAMS, wanted, pool)] == here


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--into", "a", "--verify", "b"], "give one of them"),
        (["Request", "--format", "obi"], "names no member"),
        (["--format", "obi"], "no member is named"),
        ([GOID, "--format", "obi", "--version", "new"], "is no version"),
    ],
)
def test_usage(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert offsets(*words) == 2
    assert said in capsys.readouterr().err


def fields_of(path: Path) -> dict[str, list[str]]:
    """The versions that a table of builds has of each field."""
    table = json.loads(path.read_text())
    return {
        row["field"]: sorted(version for group in row["versions"] for version in group["versions"])
        for row in table["fields"]
    }


def test_a_build_is_known_only_for_the_members_that_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    into = ["--format", "builds", "--into", str(path)]
    first, last = [PROGRAMS[0]], [PROGRAMS[2]]
    assert offsets(GOID, *into, programs=first) == 0
    assert offsets(GOID, "runtime.g.m", *into, programs=last) == 0
    assert offsets(GOID, "runtime.g.m", *into, programs=first) == 0
    both = ["1.15.15", "1.27.3"]
    assert fields_of(path) == {"goid": both, "m": both}
    assert "0 of them were known" in capsys.readouterr().err
    before = path.read_bytes()
    assert offsets("runtime.g.m", "no/such.Type.field", *into, programs=first) == 0
    assert offsets("runtime.g.m", "no/such.Type.field", *into, programs=first) == 0
    assert capsys.readouterr().err.splitlines()[-1].endswith("1 of them were known")
    assert fields_of(path) == {"goid": both, "m": both}
    assert len(path.read_bytes()) == len(before)


def test_going_on_gives_what_one_run_gives(tmp_path: Path) -> None:
    # Two builds that say one version: the first one lacks the structure.
    before = tmp_path / "before"
    before.write_bytes(Path(PROGRAMS[0]).read_bytes().replace(b"go1.15.15", b"go1.22.10"))
    both = [str(before), PROGRAMS[1]]
    for form in ("otel-go", "builds"):
        whole, parts = tmp_path / f"{form}-whole", tmp_path / f"{form}-parts"
        words = ["runtime.coro.gp", GOID, "--format", form, "--into"]
        assert offsets(*words, str(whole), programs=both) == 0
        assert offsets(*words, str(parts), programs=both[:1]) == 0
        assert '"offset": null' in parts.read_text()
        assert offsets(*words, str(parts), programs=both) == 0
        assert parts.read_text() == whole.read_text()
        assert "null" not in whole.read_text()


def test_types_without_packages_are_in_tables_of_builds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = [str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")]
    question = ["struct record.ul", "--format", "builds"]
    assert offsets(*question, programs=library) == 1
    assert "it does not say its version: give --version" in capsys.readouterr().err
    assert offsets(*question, "--version", "3.11.2", programs=library) == 0
    table = json.loads(capsys.readouterr().out)
    (row,) = table["fields"]
    (place,) = fetchc.open(library[0]).offsets("struct record.ul")
    assert row["versions"] == [{"offset": place.offset, "versions": ["3.11.2"]}]
    assert [one["modules"] for one in table["builds"].values()] == [{"": "3.11.2"}]
    assert offsets("main.Question", "--format", "builds") == 1
    assert "`main` is no type of Go" in capsys.readouterr().err
    assert offsets("struct record.ul", "--format", "obi", programs=library) == 2
    assert "use builds" in capsys.readouterr().err


def test_two_builds_of_a_version_are_both_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A build of another run is another one, whatever the table has of its version already.
    path = tmp_path / "t.json"
    question = ["main.Question.Qtype", "--version", "1.0.0", "--format", "builds"]
    assert offsets(*question, "--into", str(path), programs=PROGRAMS[:1]) == 0
    assert offsets(*question, "--into", str(path), programs=PROGRAMS[1:2]) == 0
    assert "0 of them were known" in capsys.readouterr().err.splitlines()[-1]
    assert len(json.loads(path.read_text())["builds"]) == 2


def test_nothing_runs_on_behind_a_command_that_is_killed(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS[2], tmp_path / "p")
    for number in range(400):
        os.link(tmp_path / "p", tmp_path / f"p{number}")
    command = [sys.executable, "-m", "fetchc", "offsets", GOID, "--format", "builds"]
    with subprocess.Popen([*command, "-x", str(tmp_path)], stdout=subprocess.DEVNULL) as running:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        until = time.monotonic() + 60
        while not (workers := children.read_text().split()):
            assert time.monotonic() < until
            assert running.poll() is None
        running.kill()
    while any(_runs(int(worker)) for worker in workers):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_found_until_a_signal_is_in_the_file(number: int, tmp_path: Path) -> None:
    shutil.copy(PROGRAMS[2], tmp_path / "p0")
    for other in range(1, 400):
        os.link(tmp_path / "p0", tmp_path / f"p{other}")
    path, terminal = tmp_path / "t.json", os.openpty()
    command = [sys.executable, "-m", "fetchc", "offsets", GOID, "--format", "otel-go"]
    command += ["-x", str(tmp_path), "--into", str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=terminal[1]) as running:
        os.close(terminal[1])
        drawn = b""
        while b"of 400 programs" not in drawn:
            drawn += os.read(terminal[0], 1 << 10)
        assert not path.exists()
        running.send_signal(number)
    os.close(terminal[0])
    assert running.returncode == 128 + number
    assert b"1.27.3" in path.read_bytes()


# Runs a command, and prints the largest memory of a process of it, in kB.
LARGEST_CHILD = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.long
def test_a_thousand_programs_are_gone_through_in_parts(tmp_path: Path) -> None:
    # Each is another one: what the linker wrote as build IDs has its number.
    contents = [Path(each).read_bytes() for each in PROGRAMS]
    programs = tmp_path / "programs"
    programs.mkdir()
    for number in range(1000):
        own = bytearray(contents[number % 3])
        for note in (b"Go\0\0", b"GNU\0"):
            at = own.find(note, 0, 0x2000)
            if at > 0:
                own[at + 4 : at + 12] = b"%08d" % number
        (programs / f"p{number:04}").write_bytes(own)
    command = [sys.executable, "-m", "fetchc", "offsets", GOID, "main.Question.Qtype"]
    command += ["--version", "1.0.0", "--format", "builds", "-x", str(programs), "--into"]
    path = tmp_path / "t.json"
    parts = 0
    while True:
        with subprocess.Popen([*command, str(path)], stderr=subprocess.PIPE, text=True) as running:
            time.sleep(3 + 2 * parts)
            running.terminate()
        parts += 1
        if running.returncode == 0:
            break
        assert running.returncode == 128 + signal.SIGTERM
        assert parts < 20
    assert parts > 1
    done = subprocess.run(
        [sys.executable, "-c", LARGEST_CHILD, *command, str(tmp_path / "whole.json")],
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert path.read_text() == (tmp_path / "whole.json").read_text()
    assert len(json.loads(path.read_text())["builds"]) == 1000
    assert int(done.stdout) < 48 << 10


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_without_other_processes_it_reads_all_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*given: object, **named: object) -> None:
        raise PermissionError(1, "no semaphore")

    path = tmp_path / "t.json"
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", refused)
    assert offsets(GOID, "--format", "builds", "--into", str(path)) == 0
    assert fields_of(path) == {"goid": ["1.15.15", "1.22.10", "1.27.3"]}


def test_each_of_several_builds_of_a_version_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    assert offsets(GOID, "--format", "otel-go", "--into", str(path), programs=PROGRAMS[2:]) == 0
    goid = Member("std", "runtime", "g", "goid")

    def found(*given: object) -> Iterator[Examined]:
        for name, offset in (("first", 152), ("second", 160), ("third", 160)):
            yield Examined(name, name, Build(name, "x86_64", ()), ((goid, "1.27.3", offset),), ())

    monkeypatch.setattr("fetchc.cli.version_tables_output.collect", found)
    capsys.readouterr()
    assert offsets("--verify", str(path)) == 1
    printed = capsys.readouterr()
    assert printed.out == "runtime.g.goid of 1.27.3 is at +160, the table says +152\n"
    assert printed.err.endswith("3 programs read, 1 difference\n")
