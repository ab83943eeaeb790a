"""Kept cases from what the fuzzer found, and their answers anew.

``python -m tests.robustness.keep FINDS.jsonl NUMBER NAME WHY`` adds the find in that line (from 1)
to the file of its reader in ``corpus/hostile``, with the answer that it has now.
``python -m tests.robustness.keep`` writes all answers anew: look at the difference.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.support.fuzzing.asking import fault
from tests.support.fuzzing.cases import FOLDER, Case, answered, cases, saved
from tests.support.fuzzing.edits import Edit

ROOT = os.getcwd()


def now(case: Case) -> Case:
    """The case with the answer of today."""
    with tempfile.TemporaryDirectory() as folder:
        answer, said = answered(case, Path(folder))
        wrong = fault(answer, case.ask)
        os.chdir(ROOT)
    if wrong is not None:
        print(f"{case.name}: {wrong}")
    return replace(case, status=answer.status, said=said)


def found(line: str, name: str, why: str) -> Case:
    """The case of a line that the fuzzer wrote."""
    printed = json.loads(line)
    edits = tuple(
        Edit(one["file"], one["section"], one["at"], bytes.fromhex(one["was"]),
             bytes.fromhex(one["now"]))
        for one in printed["edits"]
    )  # fmt: skip
    return Case(name, why, printed["base"], edits, tuple(printed["question"]), 0, "")


def main() -> int:
    """Add a case, or answer all anew."""
    if len(sys.argv) > 1:
        path, number, name, why = sys.argv[1:]
        case = found(Path(path).read_text().splitlines()[int(number) - 1], name, why)
        file = FOLDER / f"{case.base.partition('/')[0]}.toml"
        kept = cases(file) if file.exists() else []
        file.touch()
        saved(file, [*kept, now(case)])
        return 0
    for file in sorted(FOLDER.glob("*.toml")):
        saved(file, [now(case) for case in cases(file)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
