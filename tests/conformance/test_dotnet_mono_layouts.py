"""Where fields are under Mono: our answer against what the running runtime says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import MONO, Assembly, References
from fetchc.debuginfo.dotnet.class_layout import Layouts
from fetchc.debuginfo.dotnet.closed_types import ClosedTypes, Instance
from fetchc.target.dotnet_runtimes import runtime
from tests.support.toolchains import ROOT

FOLDER = ROOT / "corpus/dotnet"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    """Types of our own, compiled for Mono, and the runtime's answers for these and its library."""
    for tool in ("mcs", "mono"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}: .ci/setup installs it")
    folder = tmp_path_factory.mktemp("mono")
    program, library = folder / "layouts.exe", folder / "own.dll"
    own = FOLDER / "aot/aot.cs"
    for output, source, kind in (
        (program, FOLDER / "layouts/mono.cs", "exe"),
        (library, own, "library"),
    ):
        command = ["mcs", f"-target:{kind}", f"-out:{output}", str(source)]
        subprocess.run(command, check=True, timeout=120, capture_output=True)
    done = subprocess.run(
        ["mono", str(program), "mscorlib", str(library)],
        check=True,
        timeout=120,
        capture_output=True,
        encoding="utf-8",
    )
    return folder, [line.split("\t") for line in done.stdout.splitlines()]


def _compared(folder: Path, lines: list[list[str]], name: str) -> tuple[int, list[str]]:
    rules = runtime(name, (6, 8))
    first = Assembly(str(folder / "own.dll"))
    references = References(first, (str(folder), MONO), mono=True)
    types = ClosedTypes(references)
    layouts = Layouts(types, rules.layout)
    assembly, label, offsets = first, "", {"": 0}
    fields, different = 0, []
    for kind, *words in lines:
        if kind == "A":
            assembly = references.assembly(words[0])
        elif kind == "T":
            (label,) = words
            row = assembly.type_named(label)
            assert row, label
            layout = layouts.of(types.number(Instance(assembly, row, ())))
            offsets = {field.name: field.offset + rules.fields for field in layout.fields}
        else:
            fields += 1
            if offsets.get(words[0]) != int(words[1]):
                different.append(f"{label}.{words[0]} at {words[1]}, not {offsets.get(words[0])}")
    return fields, different


def test_every_field_is_where_mono_has_it(printed: tuple[Path, list[list[str]]]) -> None:
    fields, different = _compared(*printed, "mono")
    assert different == []
    assert fields > 5000


def test_the_rules_of_coreclr_are_noticed(printed: tuple[Path, list[list[str]]]) -> None:
    _, different = _compared(*printed, "coreclr")
    assert len(different) > 1000
