"""What the running kernel says to a probe definition: installed, judged, taken away again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
_COMMAND = "  Command: "


@dataclass(frozen=True)
class Verdict:
    """``errno`` is 0 for a definition that was accepted; ``text`` is error_log's, if any.

    ``caret`` is the column of the line that the log points at.
    """

    errno: int
    text: str
    caret: int | None = None


@dataclass(frozen=True)
class Uprobes:
    """The list of uprobes; every definition written through it is of one group of ours."""

    group: str

    def judge(self, line: str) -> Verdict:
        """Write one definition, and remove at once what came of it."""
        try:
            self.add(line)
        except OSError as error:
            return Verdict(error.errno or -1, *self._logged(line))
        self.clear()
        return Verdict(0, "")

    def listed(self) -> Iterator[str]:
        """Names of the events of our group."""
        for line in _text("uprobe_events").splitlines():
            name = line.split()[0].partition(":")[2]
            if name.startswith(self.group + "/"):
                yield name

    def clear(self) -> None:
        """Remove every event of our group."""
        for name in set(self.listed()):
            self.add(f"-:{name}")

    def add(self, line: str) -> None:
        """Write one line, a definition of our group or a removal; OSError if it is refused."""
        # One write system call: the kernel takes a line from one write only.
        descriptor = os.open(TRACEFS / "uprobe_events", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, os.fsencode(line) + b"\n")
        finally:
            os.close(descriptor)

    def _logged(self, line: str) -> tuple[str, int | None]:
        # The log holds eight entries of all users; ours is known by its command.
        text, caret, last, ours = "", None, "", False
        for entry in _text("error_log").splitlines():
            if " error: " in entry:
                last = entry.partition(" error: ")[2]
            elif entry.startswith(_COMMAND):
                ours = entry.removeprefix(_COMMAND) == line
                text = last if ours else text
            elif ours and entry.strip() == "^":
                caret, ours = entry.index("^") - len(_COMMAND), False
        return text, caret


def _text(name: str) -> str:
    return os.fsdecode((TRACEFS / name).read_bytes())


def why_not() -> str | None:
    """The reason why this process cannot define uprobes, or None."""
    if os.geteuid() != 0:
        return "defining uprobes needs root"
    if not (TRACEFS / "README").exists() and TRACEFS.is_dir():
        mount = ["mount", "-t", "tracefs", "tracefs", str(TRACEFS)]
        subprocess.run(mount, check=False, capture_output=True)
    if not (TRACEFS / "uprobe_events").exists():
        return f"no uprobe_events under {TRACEFS}"
    if not os.access(TRACEFS / "uprobe_events", os.W_OK):
        return "uprobe_events cannot be written"
    return None
