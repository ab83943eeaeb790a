"""The programs of docs/recipes.md, run as the page has them: they print what it shows."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.toolchains import ROOT, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

PAGE = Path(ROOT) / "docs/recipes.md"
SERVER = "/tmp/fetchc_recipes"  # as the page says it
RECIPE = re.compile(r"^## (.+?)\n.*?^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.M | re.S)
RECIPES = RECIPE.findall(PAGE.read_text())


@pytest.fixture(scope="module", name="server")
def server_() -> None:
    require("cc")
    source = "corpus/c/slow-server/slow_server.c"
    command = ["cc", "-g", "-O2", "-o", SERVER, source]
    subprocess.run(command, check=True, timeout=60, cwd=ROOT)


@pytest.mark.parametrize(
    ("title", "code", "shown"), [pytest.param(*one, id=one[0]) for one in RECIPES]
)
@pytest.mark.usefixtures("server")
def test_a_recipe_prints_what_the_page_shows(
    title: str, code: str, shown: str, request: pytest.FixtureRequest
) -> None:
    if "tracing()" in code:
        require_uprobes()
    if "import pandas" in code and importlib.util.find_spec("pandas") is None:
        pytest.skip("pandas is not installed: `.venv/bin/pip install pandas`")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), title
    if request.config.getoption("--bless"):
        page = PAGE.read_text()
        block = f"{code}```\n\n```text\n"
        PAGE.write_text(page.replace(block + shown, block + done.stdout))
        return
    assert done.stdout == shown


def test_there_are_five() -> None:
    assert len(RECIPES) == 5
