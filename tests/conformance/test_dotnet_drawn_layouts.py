"""Where fields of drawn classes and structures are: our answer against running runtimes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fetchc.debuginfo.dotnet.assemblies import MONO, Assembly, References
from fetchc.debuginfo.dotnet.class_layout import Layouts
from fetchc.debuginfo.dotnet.closed_types import ClosedTypes, Instance, Items
from fetchc.target.dotnet_runtimes import LayoutRules, Runtime, runtime
from tests.support.csharp_types import Source, sources
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, host, missing
from tests.support.toolchains import ROOT

MEASURE = ROOT / "corpus/dotnet/layouts/measure.cs"
RUNTIMES = {
    "2.1": (NETCORE21, ("coreclr", (2, 1))),
    "3.1": (NETCORE31, ("coreclr", (3, 1))),
    "9.0": (NET9, ("coreclr", (9, 0))),
    "Mono": (Path(MONO), ("mono", (6, 8))),
}
EXAMPLES = int(os.environ.get("FETCHC_CSHARP", "4"))  # programs, of up to 40 types each


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], list[list[str]]]:
    """What a runtime prints of the types of an assembly."""
    for tool in ("mcs", "mono"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}: .ci/setup installs it")
    if reason := missing(NETCORE21):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("measure")
    _compile(MEASURE, folder / "measure.exe", [])
    _compile(MEASURE, folder / "measure.dll", _references())

    def run(name: str, library: Path) -> list[list[str]]:
        runtime_folder, _ = RUNTIMES[name]
        words = ["mono", str(folder / "measure.exe")]
        if name != "Mono":
            version = "9.0.1" if runtime_folder == NET9 else runtime_folder.name
            config = folder / f"{version}.json"
            named = {"name": "Microsoft.NETCore.App", "version": version}
            config.write_text(json.dumps({"runtimeOptions": {"framework": named}}))
            words = [host(runtime_folder, folder), "exec", "--runtimeconfig", str(config)]
            words.append(str(folder / "measure.dll"))
        done = subprocess.run(
            [*words, str(library)],
            env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
            timeout=60,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, f"{done.returncode} {done.stderr} {library.read_bytes()[:2]!r}"
        return [line.split("\t") for line in done.stdout.splitlines()]

    return run


def _references() -> list[str]:
    paths = [*sorted(NETCORE21.glob("System*.dll")), NETCORE21 / "netstandard.dll"]
    return ["-nostdlib", "-noconfig", *[f"-r:{path}" for path in paths]]


def _compile(source: Path, output: Path, words: list[str]) -> None:
    kind = "library" if output.name == "drawn.dll" else "exe"
    fixed = ["mcs", "-nologo", "-unsafe", "-langversion:latest", f"-target:{kind}"]
    done = subprocess.run(
        [*fixed, f"-out:{output}", *words, str(source)],
        timeout=120,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Ours:
    """Layouts by the rules, of types by the runtime's labels."""

    def __init__(self, library: Path, folder: Path, rules: Runtime, layout: LayoutRules) -> None:
        own = Assembly(str(library))
        mono = rules.name == "mono"
        self.rules = rules
        self.references = References(own, (str(library.parent), str(folder)), mono=mono)
        self.types = ClosedTypes(self.references)
        self.layouts = Layouts(self.types, layout)
        self.own = own

    def _definition(self, name: str) -> tuple[Assembly, int]:
        core = self.references.core()
        for one in (self.own, core):
            if row := one.type_named(name):
                return one, row
        return self.references.type_named("System.Collections", name)

    def parse(self, label: str) -> tuple[int, str]:
        """The type that a label begins with, and what is left of the label."""
        end = next((at for at, letter in enumerate(label) if letter in "{};["), len(label))
        made, row = self._definition(label[:end])
        rest, arguments = label[end:], list[int]()
        while rest.startswith(("{", ";")) and (rest[0] == "{" or arguments):
            number, rest = self.parse(rest[1:])
            arguments.append(number)
        if arguments:
            rest = rest.removeprefix("}")
        number = self.types.number(Instance(made, row, tuple(arguments)))
        while rest.startswith("[]"):
            number, rest = self.types.number(Items(number, 0)), rest[2:]
        return number, rest

    def different(self, lines: list[list[str]]) -> list[str]:
        """What is not where the runtime has it."""
        header = self.rules.fields if self.rules.name == "mono" else 0
        found, label, offsets = [], "", dict[str, int]()
        for kind, *words in lines:
            if kind == "T":
                label, size = words
                number, rest = self.parse(label)
                assert not rest
                layout = self.layouts.of(number)
                offsets = {one.name: one.offset + header for one in layout.fields}
                if size not in ("-", str(layout.size)):
                    found.append(f"{label} has {size} bytes, not {layout.size}")
            elif kind == "F" and offsets.get(words[0]) != int(words[1]):
                found.append(f"{label}.{words[0]} at {words[1]}, not {offsets.get(words[0])}")
        return found


def _held(
    source: Source, name: str, layout: LayoutRules, measure: Callable[[str, Path], list[list[str]]]
) -> tuple[int, list[str]]:
    """How many types the runtime has loaded of a source, and what differs by rules for layouts."""
    folder, version = RUNTIMES[name]
    with tempfile.TemporaryDirectory(prefix="fetchc-csharp-") as scratch:
        text, library = Path(scratch, "drawn.cs"), Path(scratch, "drawn.dll")
        text.write_text(source.text)
        _compile(text, library, [] if name == "Mono" else _references())
        lines = measure(name, library)
        loaded = sum(line[0] == "T" for line in lines)
        assert loaded + sum(line[0] == "X" for line in lines) == source.asked
        return loaded, Ours(library, folder, runtime(*version), layout).different(lines)


@pytest.mark.parametrize("name", RUNTIMES)
def test_fields_are_where_the_runtime_has_them(
    name: str, measure: Callable[[str, Path], list[list[str]]]
) -> None:
    folder, version = RUNTIMES[name]
    if name != "Mono" and (reason := missing(folder)):
        pytest.skip(reason)
    rules = runtime(*version)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(sources())
    def hold(source: Source) -> None:
        loaded, different = _held(source, name, rules.layout, measure)
        assert different == [], "\n".join([*different, source.text])
        # The others are such that the runtime refuses to load them.
        assert loaded >= source.asked // 2

    hold()


EXAMPLE = """using System;
public class B { byte b; }
public class C : B { long l; string s; short t; DateTime d; }
public class Asked { public C f0; public DateTimeOffset f1; }
"""


@pytest.mark.parametrize(
    ("name", "wrong"), [("3.1", ("mono", (6, 8))), ("Mono", ("coreclr", (9, 0)))]
)
def test_the_rules_of_another_runtime_are_noticed(
    name: str, wrong: tuple[str, tuple[int, int]], measure: Callable[[str, Path], list[list[str]]]
) -> None:
    source = Source(EXAMPLE, 2)
    assert _held(source, name, runtime(*RUNTIMES[name][1]).layout, measure) == (2, [])
    assert _held(source, name, runtime(*wrong).layout, measure)[1]
