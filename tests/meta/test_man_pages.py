"""docs/man is what its generator makes today, and groff has nothing to say about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/man").iterdir())


def test_pages_are_fresh() -> None:
    program = (
        "import sys, json; sys.path.insert(0, '.ci'); import man_pages;"
        "print(json.dumps(man_pages.pages()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    texts = json.loads(done.stdout)
    assert {str(page.relative_to(ROOT)): page.read_text() for page in PAGES} == texts, (
        "docs/man is stale: run python .ci/man_pages.py"
    )


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_accepts_the_pages() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rLL=78n", *PAGES],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    shown = re.sub(r".\x08|\x1b\[\d*m", "", done.stdout)
    assert "--histogram '$latency'" in shown
