"""Damage at random for a while: ``python -m tests.robustness.fuzz --minutes 10 --reader dwarf``.

Each reader has its bases (``tests/support/fuzzing/bases.py``). A round changes a few bytes of one,
asks all its questions in a child process, and tells of answers that are not proper: an exception,
an error without a place, too much time or memory. What is found goes to ``--keep FOLDER`` as cases
for ``corpus/hostile``. ``--changed`` tells of answers that differ without a word, too: for people
to judge.

``churn``, ``process`` and ``container`` are readers, too, of what lives while fetchc looks at it.
They need root; the first takes turns with live tests, a few rounds each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from tests.conftest import LIVE as PROBING
from tests.support.fuzzing import churn, strangers
from tests.support.fuzzing.bases import BASES
from tests.support.fuzzing.rounds import child
from tests.support.tracefs import turn

LIVE = {
    "churn": churn.rounds, "process": strangers.processes, "container": strangers.containers,
}  # fmt: skip
READERS = tuple(dict.fromkeys(name.partition("/")[0] for name in BASES))
TURN = 20  # rounds of a turn with live tests: some seconds
SILENCE = 120.0  # seconds without a word from a child: it hangs where no signal reaches it
ROOT = Path(__file__).parents[2]


def finds(
    reader: str, seed: int, first: int, count: int, changed: bool = False
) -> Iterator[dict[str, object] | str]:
    """What the rounds of a child find; a child that dies is a find itself, and the next goes on."""
    end = first + count
    while first < end:
        probes = reader == "churn"
        few = min(end - first, TURN) if probes else end - first
        command = [sys.executable, "-m", "tests.robustness.fuzz", "--child"]
        command += [reader, str(seed), str(first), str(few), str(int(changed))]
        with (
            turn(PROBING) if probes else nullcontext(),
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as running,
        ):
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
    rounds: Counter[str] = Counter()
    for reader in readers:
        end = time.monotonic() + 60 * given.minutes / len(readers)
        for printed in finds(reader, given.seed, 0, 1 << 30, given.changed):
            if isinstance(printed, str):
                rounds[reader] += 1
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
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(", ".join(f"{reader} {count}" for reader, count in rounds.items()))
    print(f"{rounds.total()} rounds with seed {given.seed}, {used.ru_utime + used.ru_stime:.0f} s")
    print(f"{len(known)} kinds of finds")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
