"""The faults of .ci/mutants.toml can be planted: each line stands once where it is said to be."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DATA = tomllib.loads((CHECKOUT / ".ci/mutants.toml").read_text())


@pytest.mark.parametrize("mutant", DATA["mutant"], ids=lambda mutant: str(mutant["name"]))
def test_a_fault_can_be_planted(mutant: dict[str, str]) -> None:
    text = (CHECKOUT / mutant["file"]).read_text()
    assert text.count(mutant["old"]) == 1
    assert mutant["old"] != mutant["new"]
    assert mutant["tests"] in DATA["tests"]


def test_names_and_tests() -> None:
    names = [mutant["name"] for mutant in DATA["mutant"]]
    assert len(set(names)) == len(names) > 12
    for node in (node for nodes in DATA["tests"].values() for node in nodes):
        path, _, function = node.partition("::")
        assert f"def {function.partition('[')[0]}(" in (CHECKOUT / path).read_text()
