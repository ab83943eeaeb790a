"""Changes of a file, and the wake-up by them."""

from __future__ import annotations

import select
from contextlib import closing
from pathlib import Path

from fetchc.tracer.file_changes import FileChanges


def test_who_waits_is_woken_by_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "map"
    path.write_text("")
    with closing(FileChanges(str(path))) as changes, path.open("w") as file:
        assert changes.changed()
        assert not changes.changed()
        poll = select.poll()
        poll.register(changes.fileno(), select.POLLIN)
        assert not poll.poll(0)
        file.write("a line\n")
        file.flush()
        assert poll.poll(0)
        assert changes.changed()
        assert not poll.poll(0)
        assert not changes.changed()


def test_a_file_that_is_not_there_never_changes(tmp_path: Path) -> None:
    with closing(FileChanges(str(tmp_path / "none"))) as changes:
        assert changes.fileno() < 0
        assert not changes.changed()
    changes.close()
