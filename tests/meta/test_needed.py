"""The list of modules that the command loads ahead: those that every compile needs, in order.

``python -m tests.meta.test_needed`` prints the list as it should be.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.cli.needed import NEEDED

CHECKOUT = Path(__file__).parents[2]
MISSING = 12  # modules that the list may lack until somebody makes it anew

# With arguments of its own `main` leaves importing to import statements.
PROBE = """
import sys
sys.path.insert(0, {checkout!r})
from fetchc.cli import main
before = set(sys.modules)
status = main(sys.argv[1:])
sys.stdout.flush()
own = ["fetchc.cli." + name for name in ("modules", "needed", "commands", "options")]
own.append("fetchc.record")
print(*[n for n in sys.modules if n.startswith("fetchc.") and n not in before and n not in own])
sys.exit(status)
"""
GO = "main.(*server).handleRequest"
COMPILES = (
    ("r->head->value", "corpus/c/layouts/bin/gcc-O2-dwarf5", "visit"),
    ("r->head->value", "corpus/c/layouts/bin/clang-O0-dwarf4", "visit"),
    ("r->Question[0].Qtype", "corpus/go/dnsforward/bin/go1.15", GO),
    ("r->Question[0].Qtype", "corpus/go/dnsforward/bin/go1.27", GO),
)


def loaded(expression: str, binary: str, function: str) -> list[str]:
    """What a compile loads besides what the command line does, in the order of its imports."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(checkout=str(CHECKOUT)),
         "compile", expression, "-x", binary, "-f", function, "--no-cache"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()[-1].split()


def needed() -> list[str]:
    """What all of them load, in the first one's order.

    Without what a package imports itself, which stands in front of it.
    """
    first, *others = [loaded(*each) for each in COMPILES]
    found: list[str] = []
    for name in first:
        package = name.rpartition(".")[0]
        if package in (*found, "fetchc", "fetchc.cli") and all(name in other for other in others):
            found.append(name)
    return found


@pytest.fixture(scope="module")
def wanted() -> list[str]:
    return needed()


def test_nothing_is_loaded_that_some_compile_does_without(wanted: list[str]) -> None:
    assert [name for name in NEEDED if name not in wanted] == []


def test_nearly_all_is_loaded_that_every_compile_needs(wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in NEEDED]
    assert len(missing) <= MISSING, "python -m tests.meta.test_needed prints the list"


def test_each_stands_behind_its_package() -> None:
    known = {"fetchc", "fetchc.cli"}
    for name in NEEDED:
        assert name.rpartition(".")[0] in known
        known.add(name)


def test_the_command_loads_it_before_all_else() -> None:
    code = (
        "import sys, fetchc.cli.modules as modules\n"
        "from fetchc.cli.needed import NEEDED\n"
        "plain = modules.load\n"
        "def load(names):\n"
        "    plain(names)\n"
        "    print(all(name in sys.modules for name in NEEDED))\n"
        "modules.load = load\n"
        "from fetchc.cli import main\n"
        f"sys.argv = ['fetchc', 'compile', '1', '-x', {COMPILES[0][1]!r}, '-f', 'visit']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True)
    assert done.stdout.splitlines()[0] == b"True"


if __name__ == "__main__":
    print(*[f'    "{name}",' for name in needed()], sep="\n")
