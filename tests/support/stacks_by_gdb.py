"""Run by gdb: the addresses of the whole stack at each hit of a breakpoint, as JSON.

``FETCHC_GDB`` names a folder with ``questions`` (the file whose load the breakpoint waits for, the
address, how many hits); ``answers`` is written there.
"""

import json
import os
from typing import Any

import gdb  # type: ignore[import-untyped]

FOLDER = os.environ["FETCHC_GDB"]
SETTINGS = (
    "pagination off",
    "width 0",
    "confirm off",
    "backtrace past-main on",
    "backtrace past-entry on",
    "backtrace limit 2000",
    "debuginfod enabled off",
    "breakpoint pending on",
    "startup-with-shell off",
)


# A signal at the breakpoint would have it hit twice.
GO = ("GOMAXPROCS 1", "GODEBUG asyncpreemptoff=1")
# Of calls that are on no stack: what was inlined, and who called in place of a return.
NOT_THERE = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


def stack() -> list[int]:
    """Of the thread that is stopped, innermost first."""
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        if frame.type() not in NOT_THERE and frame.pc():
            found.append(int(frame.pc()))
        try:
            frame = frame.older()
        except gdb.error:
            break
    return found


def main(address: int, most: int, early: bool) -> None:
    """Run the program up to the wanted hits."""
    for setting in SETTINGS:
        gdb.execute(f"set {setting}")
    gdb.execute("handle all nostop noprint pass")
    gdb.execute("unset environment")
    for setting in GO:
        gdb.execute(f"set environment {setting}")
    stacks: list[list[int]] = []

    class Hit(gdb.Breakpoint):  # type: ignore[misc]
        """Takes the stack, and goes on."""

        def stop(self) -> bool:
            """Stop where that was the last one."""
            stacks.append(stack())
            return len(stacks) >= most

    if early:  # a library, which is not there yet: the loader says when
        gdb.execute("set stop-on-solib-events 1")
        gdb.execute("run", to_string=True)
        while not any(one[0] <= address < one[1] for one in mapped()):
            gdb.execute("continue", to_string=True)
        gdb.execute("set stop-on-solib-events 0")
        Hit(f"*{address:#x}")
        gdb.execute("continue", to_string=True)
    else:
        Hit(f"*{address:#x}")
        gdb.execute("run", to_string=True)
    answers: dict[str, Any] = {"stacks": stacks}
    with open(os.path.join(FOLDER, "answers"), "w", encoding="utf-8") as file:
        json.dump(answers, file)
    if gdb.selected_inferior().pid:
        gdb.execute("kill", to_string=True)


def mapped() -> list[tuple[int, int]]:
    """The code that the program has."""
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [
        (int(one[0].split("-")[0], 16), int(one[0].split("-")[1], 16))
        for one in lines
        if "x" in one[1]
    ]


with open(os.path.join(FOLDER, "questions"), encoding="utf-8") as questions:
    main(**json.load(questions))
