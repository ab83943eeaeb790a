"""``fetchc add``, ``list`` and ``remove`` on the running kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fetchc.tracer.tracefs import Tracefs
from tests.support.programs import fixture
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

TRACING = Path("/sys/kernel/tracing")
C = str(fixture("c/layouts/gcc-O2-dwarf5"))
GROUP = f"fetchc_test{os.getpid()}"
Run = Callable[..., subprocess.CompletedProcess[str]]


def append(line: str) -> None:
    Tracefs(str(TRACING)).write(f"{line}\n", "uprobe_events")


def ours() -> list[str]:
    lines = (TRACING / "uprobe_events").read_text().splitlines()
    return [line for line in lines if f":{GROUP}" in line]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a command of fetchc with a state file of the test's own; removes all at the end."""
    require_uprobes()
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)}

    def fetchc(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fetchc", *words]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=60
        )

    try:
        yield fetchc
    finally:
        for name in {line.split()[0][2:] for line in ours()}:
            (TRACING / "events" / name / "enable").write_text("0")
            append(f"-:{name}")


def added(run: Run, *words: str) -> subprocess.CompletedProcess[str]:
    return run("add", *words, "-x", C, "--group", GROUP)


def listed(run: Run, *words: str) -> list[dict[str, Any]]:
    done = run("list", "--format", "json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["diagnostics"] == []
    found: list[dict[str, Any]] = document["definitions"]
    return [one for one in found if one["group"].startswith(GROUP)]


def test_added_listed_removed(run: Run) -> None:
    done = added(run, "r->head->value", "r->text", "-f", "visit")
    assert (done.returncode, done.stdout) == (0, f"{GROUP}/visit\n")
    assert f"switch it on: echo 1 >{TRACING}/events/{GROUP}/visit/enable\n" in done.stderr
    (line,) = ours()
    (one,) = listed(run)
    assert one == {
        "group": GROUP,
        "event": "visit",
        "owner": "added",
        "binary": C,
        "function": "visit",
        "expressions": ["r->head->value", "r->text"],
        "definitions": [line],
        "enabled": False,
        "hits": 0,
    }
    assert line.endswith("r_head_value=+0(+288(%di)):s32 r_text=+0(+136(%di)):string")
    done = run("remove", f"{GROUP}/visit")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{GROUP}/visit\n", "")
    assert ours() == []
    assert listed(run) == []


def test_all_parameters_are_added_by_name(run: Run) -> None:
    done = added(run, "$args", "-f", "triple")
    assert (done.returncode, done.stdout) == (0, f"{GROUP}/triple\n")
    (one,) = listed(run)
    assert one["expressions"] == ["$args"]
    assert [word.partition("=")[0] for word in one["definitions"][0].split()[2:]] == ["n"]


def test_enabled_it_counts_and_is_removed_all_the_same(run: Run, tmp_path: Path) -> None:
    # Who runs the fixture beside this test is not to be counted.
    own = str(shutil.copy(C, tmp_path / "own"))
    assert run("add", "-f", "visit", "--enable", "-x", own, "--group", GROUP).returncode == 0
    done = subprocess.run([own], capture_output=True, text=True, check=True)
    (one,) = listed(run)
    assert one["enabled"] is True
    assert one["hits"] == done.stdout.count("EVENT visit ")
    assert one["hits"] > 0
    assert run("remove", "--all").stdout == f"{GROUP}/visit\n"
    assert ours() == []


def test_the_text_for_people(run: Run) -> None:
    added(run, "r->head->value", "-f", "visit")
    (line,) = ours()
    assert run("list", f"{GROUP}/*").stdout == (
        f"{GROUP}/visit  off        0 hits  added  visit: r->head->value\n    {line}\n"
    )
    assert run("list", "nothing/*").stdout == ""


def test_an_event_that_exists_is_not_added_to(run: Run) -> None:
    assert added(run, "r->head->value", "-f", "visit").returncode == 0
    done = added(run, "r->head->value", "-f", "visit")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"error[FC0706]: an event `{GROUP}/visit` exists already" in done.stderr
    assert added(run, "-f", "visit", "--event", "again").returncode == 0
    assert len(ours()) == 2
    assert [one["event"] for one in listed(run)] == ["visit", "again"]


def test_what_is_not_ours_is_shown_and_not_touched(run: Run) -> None:
    append(f"p:{GROUP}/others {C}:0x1000 a=%di")
    (one,) = listed(run)
    assert (one["owner"], one["expressions"]) == ("other", None)
    for words in (["others"], [f"{GROUP}/others"]):
        done = run("remove", *words)
        assert done.returncode == 4
        assert f"error[FC0711]: `{GROUP}/others` was not added by `fetchc add`" in done.stderr
    assert run("remove", "--all").stdout == ""
    assert len(ours()) == 1


def test_a_definition_that_was_changed_is_not_ours_any_more(run: Run) -> None:
    added(run, "r->head->value", "-f", "visit")
    append(f"-:{GROUP}/visit")
    append(f"p:{GROUP}/visit {C}:0x1000 a=%di")
    (one,) = listed(run)
    assert one["owner"] == "other"
    assert run("remove", "visit").returncode == 4
    assert len(ours()) == 1


def test_unknown_and_doubtful_names(run: Run) -> None:
    assert "error[FC0711]: there is no event `nothing`" in run("remove", "nothing").stderr
    added(run, "-f", "visit")
    run("add", "-x", C, "-f", "visit", "--group", f"{GROUP}b")
    done = run("remove", "visit")
    assert done.returncode == 4
    assert "several events are called `visit`" in done.stderr
    assert len(ours()) == 2
    assert run("remove", f"{GROUP}/visit", "nothing").returncode == 4
    assert len(ours()) == 2
    done = run("remove", f"{GROUP}/visit", f"{GROUP}b/visit", "--format", "json")
    assert json.loads(done.stdout)["removed"] == [f"{GROUP}/visit", f"{GROUP}b/visit"]
    assert ours() == []


def test_a_damaged_list_is_reported_and_not_trusted(run: Run, tmp_path: Path) -> None:
    added(run, "-f", "visit")
    (tmp_path / "fetchc/definitions.json").write_text("damaged")
    done = run("list", f"{GROUP}/*")
    assert done.returncode == 0
    assert "error[FC0712]" in done.stderr
    assert done.stdout.startswith(f"{GROUP}/visit  off        0 hits  not fetchc's\n")
    assert run("remove", "--all").returncode == 4
    assert added(run, "-f", "visit", "--event", "other").returncode == 4
    assert len(ours()) == 1


def test_what_is_refused_is_not_installed(run: Run) -> None:
    done = added(run, "r->head->value", "r->nothing", "-f", "visit")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[FC0302]" in done.stderr
    assert ours() == []


def test_expressions_of_several_points_are_several_events(run: Run) -> None:
    done = added(run, "r->i @ visit", "head->value @ chain")
    assert (done.returncode, done.stdout) == (2, "")
    assert "name several probe points" in done.stderr
    assert ours() == []
    assert added(run, "r->i @ visit", "r->head->value @ visit").stdout == f"{GROUP}/visit\n"


def test_a_go_string_has_its_companion(run: Run) -> None:
    go = str(fixture("go/dnsforward/go1.27"))
    function = "main.(*server).handleRequest"
    done = run("add", "r.Question[0].Name", "-x", go, "-f", function, "--group", GROUP)
    assert done.stdout == f"{GROUP}/handleRequest\n"
    (line,) = ours()
    assert " r_Question_0_Name_len=" in line


def test_added_ones_are_of_this_boot(run: Run, tmp_path: Path) -> None:
    added(run, "-f", "visit")
    file = tmp_path / "fetchc/definitions.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"boot": "another"}))
    (one,) = listed(run)
    assert one["owner"] == "other"


@pytest.mark.parametrize(
    "words",
    [("remove",), ("remove", "--all", "--stale"), ("remove", "x", "--all"), ("list", "a", "b")],
)
def test_usage(words: tuple[str, ...], run: Run) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: fetchc" in done.stderr


def test_without_privilege_the_help_is_shown(tmp_path: Path) -> None:
    require_uprobes()
    script = (
        "import os, sys\n"
        "from fetchc.cli import main\n"
        "import fetchc.cli.list_command, fetchc.diag.render, fetchc.cli.output\n"
        "os.setuid(65534)\n"
        "sys.exit(main(['list']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        "error[FC0701]: tracing is not permitted\n"
        f"   = note: {TRACING} is root's; this runs as user 65534\n"
        "   = help: run it as root, with `sudo`\n"
    )
