"""Run one command and print what it took, as JSON.

Started as a program of its own for every measurement: a process inherits the peak memory
of the one that started it, so that must be small. What is below the peak of bare Python
(about 9 MB) cannot be distinguished.
"""

import os
import sys
import time


def main(command: list[str]) -> int:
    """Exit status of the command, CPU seconds, peak KiB and elapsed seconds, on one line."""
    nothing = os.open(os.devnull, os.O_RDWR)
    redirected = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in (0, 1, 2)]
    begin = time.monotonic()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=redirected)
    _, status, used = os.wait4(child, 0)
    elapsed = time.monotonic() - begin
    cpu = used.ru_utime + used.ru_stime
    print(os.waitstatus_to_exitcode(status), cpu, used.ru_maxrss, elapsed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
