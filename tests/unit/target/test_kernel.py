"""Versions of kernels, and the facts about them as a whole."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import CompileError
from fetchc.ir.fetch_rules import PROBES
from fetchc.resources import data_path
from fetchc.target.kernel_versions import kernel, running_version

LINUX = tomllib.loads((Path(data_path("targets")) / "kernel" / "linux.toml").read_text())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("5.10", "5.10"),
        ("v6.1", "6.1"),
        ("6.18.44-fc-v595", "6.18"),
        ("5.10.0-46-cloud-amd64", "5.10"),
        ("4.19-rc2", "4.19"),
        ("7.2.12+deb13-amd64", "7.2"),
    ],
)
def test_versions(text: str, name: str) -> None:
    assert kernel(text).name == name


@pytest.mark.parametrize("text", ["", "6", "six.one", "6.", ".6", "-6.1", "3.4", "2.6.32", "0.0"])
def test_no_versions(text: str) -> None:
    with pytest.raises(CompileError) as refused:
        kernel(text)
    assert refused.value.diagnostics[0].code == "FC0506"


def test_running_version_is_one() -> None:
    assert kernel(running_version()).body_bytes >= 63


@pytest.mark.parametrize(
    ("version", "limits"),
    [
        ("3.5", (63, None, None, None, None)),
        ("4.19", (63, None, None, None, None)),
        ("4.20", (63, 15, None, 64, None)),
        ("5.10", (63, 15, None, 64, 3072)),
        ("7.2", (63, 15, None, 64, 3072)),
        ("7.3", (255, 15, 8, 64, 3072)),
    ],
)
def test_limits_by_version(version: str, limits: tuple[int | None, ...]) -> None:
    rules = kernel(version)
    assert limits == (
        rules.body_bytes,
        rules.instructions,
        rules.nesting,
        rules.array_elements,
        rules.event_bytes,
    )


def test_features() -> None:
    assert not kernel("5.3").has("several_probes_in_event")
    assert kernel("5.4").has("several_probes_in_event")
    assert kernel("5.3").first("several_probes_in_event") == "5.4"


def test_every_fact_has_its_source() -> None:
    facts = [LINUX["costs"], LINUX["names"]]
    for table in ("limits", "bases", "stores", "features"):
        facts += LINUX[table].values()
    assert len(facts) > 35
    for fact in facts:
        assert len(fact["source"]) > 5, fact


def test_tables_agree_with_themselves() -> None:
    families = {name: kinds for name, kinds in LINUX["kinds"].items() if name != "source"}
    kinds = {kind for family in families.values() for kind in family}
    assert kinds == set(PROBES)
    for limit in LINUX["limits"].values():
        versions = [tuple(map(int, first.split("."))) for first, _ in limit["steps"]]
        assert versions == sorted(set(versions))
    for store in LINUX["stores"].values():
        assert set(store["on"]) <= set(LINUX["bases"])
    for rule in (*LINUX["bases"].values(), *LINUX["stores"].values()):
        assert set(rule["kinds"]) <= {*families, *kinds}
        assert set(rule.get("firsts", {})) <= kinds
