"""The file of what was added: written whole, and not trusted when it is anything else."""

from __future__ import annotations

import json
import multiprocessing
import os
import pwd
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.persistent_probes import AddedEvent, State, state_file

ONE = AddedEvent(
    "g", "e", "/bin/server", "main.f", ("r.id", "-x"), ("p:g/e /bin/server:0x10 a=%di",)
)
TWO = AddedEvent(
    "g", "f", "/bin/server", None, (), ("p:g/f /bin/server:0x20", "p:g/f /bin/server:0x30")
)


def state(tmp_path: Path, boot: str = "b1") -> State:
    return State(str(tmp_path / "fetchc/definitions.json"), boot)


def saved(tmp_path: Path, *kept: AddedEvent) -> Path:
    one = state(tmp_path)
    with one.locked():
        one.save(kept)
    return Path(one.path)


def test_what_was_saved_is_loaded_in_the_same_boot_only(tmp_path: Path) -> None:
    saved(tmp_path, ONE, TWO)
    assert state(tmp_path).load() == [ONE, TWO]
    assert state(tmp_path, "b2").load() == []


def test_no_file_is_nothing(tmp_path: Path) -> None:
    assert state(tmp_path).load() == []


def test_only_the_user_reads_it_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = saved(tmp_path, ONE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(os.listdir(path.parent)) == ["definitions.json", "definitions.json.lock"]


WHOLE = {"form": 1, "boot": "b1", "definitions": []}
ENTRY = {
    "group": "g",
    "event": "e",
    "binary": "/b",
    "function": "f",
    "expressions": [],
    "definitions": [],
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps({}),
        json.dumps(WHOLE | {"form": 2}),
        json.dumps(WHOLE | {"more": 1}),
        json.dumps(WHOLE | {"definitions": {}}),
        json.dumps(WHOLE | {"definitions": [[]]}),
        json.dumps(WHOLE | {"definitions": [{}]}),
        json.dumps(WHOLE | {"definitions": [ENTRY | {"group": 1}]}),
        json.dumps(WHOLE | {"definitions": [ENTRY | {"function": []}]}),
        json.dumps(WHOLE | {"definitions": [ENTRY | {"expressions": "r"}]}),
        json.dumps(WHOLE | {"definitions": [ENTRY | {"definitions": [1]}]}),
        json.dumps(WHOLE)[:-3],
    ],
)
def test_a_damaged_file_is_not_trusted(text: str, tmp_path: Path) -> None:
    path = saved(tmp_path, ONE)
    path.write_text(text)
    with pytest.raises(TracerError) as refused:
        state(tmp_path).load()
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("FC0712", f"{path} is damaged")


def test_bytes_that_are_no_text_are_damage(tmp_path: Path) -> None:
    saved(tmp_path, ONE).write_bytes(b"\xff\xfe")
    with pytest.raises(TracerError, match="is damaged"):
        state(tmp_path).load()


def test_the_whole_entry_alone_is_taken(tmp_path: Path) -> None:
    saved(tmp_path).write_text(json.dumps(WHOLE | {"definitions": [ENTRY]}))
    assert state(tmp_path).load() == [AddedEvent("g", "e", "/b", "f", (), ())]


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "fetchc").write_text("in the way")
    one = state(tmp_path)
    with pytest.raises(TracerError, match="FC0712"), one.locked():
        raise AssertionError("locked all the same")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, ONE)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fetchc.tracer.persistent_probes.os.fsync", full)
    with pytest.raises(TracerError, match="FC0712"):
        state(tmp_path).save([TWO])
    assert state(tmp_path).load() == [ONE]
    assert sorted(os.listdir(path.parent)) == ["definitions.json", "definitions.json.lock"]


def append(path: str, number: int) -> None:
    one = State(path, "b1")
    with one.locked():
        one.save([*one.load(), AddedEvent("g", f"e{number}", "/b", None, (), ())])


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    path = state(tmp_path).path
    context = multiprocessing.get_context("spawn")
    many = [context.Process(target=append, args=(path, number)) for number in range(4)]
    for each in many:
        each.start()
    for each in many:
        each.join()
        assert each.exitcode == 0
    assert {one.event for one in state(tmp_path).load()} == {"e0", "e1", "e2", "e3"}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/state", "/state/fetchc/definitions.json"),
        ("", "/users/me/.local/state/fetchc/definitions.json"),
        ("relative", "/users/me/.local/state/fetchc/definitions.json"),
    ],
)
def test_where_it_is(given: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    monkeypatch.setenv("XDG_STATE_HOME", given)
    assert state_file() == path


@pytest.mark.parametrize("home", ["", "relative", None])
def test_a_home_that_is_no_place(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert (
        state_file() == f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state/fetchc/definitions.json"
    )
    monkeypatch.setattr(os, "getuid", lambda: 1 << 30)
    with pytest.raises(TracerError, match="FC0712: user 1073741824 has no home directory"):
        state_file()
