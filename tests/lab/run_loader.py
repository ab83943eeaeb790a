"""What runs in a guest of the kernel lab: a loader, while the program that it traces runs.

The words are the loader, the program and its words. What the loader prints is printed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys

_QUIET_SECONDS = 3  # its events come at once; emulation is slow


def main() -> None:
    loader, *program = sys.argv[1:]
    child = subprocess.Popen([loader], stdout=subprocess.PIPE, bufsize=0)
    assert child.stdout is not None
    if child.stdout.read(9) != b"attached\n":
        raise SystemExit("the loader has ended")
    subprocess.run(program, check=True)
    while select.select([child.stdout], [], [], _QUIET_SECONDS)[0]:
        if not (printed := child.stdout.read(4096)):
            raise SystemExit("the loader has ended")
        os.write(1, printed)
    child.kill()
    child.wait()


if __name__ == "__main__":
    main()
