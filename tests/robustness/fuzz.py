"""Damage at random for a while: ``python -m tests.robustness.fuzz --minutes 10 --reader dwarf``.

Each reader has its bases (``tests/support/fuzzing/bases.py``). A round changes a few bytes of one,
asks all its questions in a child process, and tells of answers that are not proper: an exception,
an error without a place, too much time or memory. What is found goes to ``--keep FOLDER`` as cases
for ``corpus/hostile``. ``--changed`` tells of answers that differ without a word, too: for people
to judge.

``churn``, ``process`` and ``container`` are readers, too, of what lives while fetchc looks at it.
They need root; the first takes the turn of live tests for as long as it lasts.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.fuzzing import churn, strangers
from tests.support.fuzzing.bases import BASES
from tests.support.fuzzing.rounds import child

LIVE = {
    "churn": churn.rounds, "process": strangers.processes, "container": strangers.containers,
}  # fmt: skip
READERS = tuple(dict.fromkeys(name.partition("/")[0] for name in BASES))
TURN = Path("/sys/kernel")  # as tests/conftest.py has it: one probes at a time
SILENCE = 120.0  # seconds without a word from a child: it hangs where no signal reaches it
ROOT = Path(__file__).parents[2]


def finds(
    reader: str, seed: int, first: int, count: int, changed: bool = False
) -> Iterator[dict[str, object] | str]:
    """What the rounds of a child find; a child that dies is a find itself, and the next goes on."""
    end = first + count
    while first < end:
        command = [sys.executable, "-m", "tests.robustness.fuzz", "--child"]
        command += [reader, str(seed), str(first), str(end - first), str(int(changed))]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            label = ""
            while True:
                ready, _, _ = select.select([running.stdout], [], [], SILENCE)
                line = running.stdout.readline() if ready else b""
                if not line:
                    break
                printed = json.loads(line)
                if isinstance(printed, str):
                    label, first = printed, first + 1
                    yield printed
                else:
                    yield printed
            if not ready:
                running.kill()
        if not ready or running.returncode:
            how = "hangs" if not ready else f"died of {running.returncode}"
            yield {"fault": how, "base": reader, "seed": label, "edits": [], "question": []}
            if not label:
                return


def _live(reader: str, seed: int, first: int, count: int) -> None:
    if reader == "churn":
        turn = os.open(TURN, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(turn, fcntl.LOCK_EX)
    rounds = LIVE[reader](seed, first, count)
    try:
        for printed in rounds:
            sys.stdout.write(json.dumps(printed) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:  # who asked has had enough
        rounds.close()
        os._exit(0)


def main() -> int:
    """Rounds until the time is over; 1 where something was found."""
    if sys.argv[1:2] == ["--child"]:
        reader, *numbers = sys.argv[2:]
        seed, first, count, changed = map(int, numbers)
        if reader in LIVE:
            _live(reader, seed, first, count)
        else:
            child(reader, seed, first, count, bool(changed))
        return 0
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--reader", action="append", choices=(*READERS, *LIVE))
    options.add_argument("--seed", type=int, default=int(time.time()))
    options.add_argument("--changed", action="store_true")
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    readers = given.reader or READERS
    known: Counter[str] = Counter()
    rounds = 0
    for reader in readers:
        end = time.monotonic() + 60 * given.minutes / len(readers)
        for printed in finds(reader, given.seed, 0, 1 << 30, given.changed):
            if isinstance(printed, str):
                rounds += 1
                if time.monotonic() > end:
                    break
                continue
            fault = str(printed["fault"])
            known[fault] += 1
            if known[fault] <= (200 if fault == "changed" else 1):
                print(fault, printed["base"], printed["seed"], printed["question"], flush=True)
                if given.keep is not None:
                    given.keep.mkdir(parents=True, exist_ok=True)
                    with (given.keep / f"{reader}.jsonl").open("a") as file:
                        file.write(json.dumps(printed) + "\n")
    print(f"{rounds} rounds with seed {given.seed}; {len(known)} kinds of finds")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
