"""Where fields are: our answer against the offsets that running runtimes have."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly, References
from fetchc.debuginfo.dotnet.class_layout import Layouts
from fetchc.debuginfo.dotnet.closed_types import ClosedTypes, Instance, Items
from fetchc.target.dotnet_runtimes import LayoutRules, runtime
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, framework, missing

DATA = Path(__file__).parents[2] / "corpus/dotnet/layouts"
# Of the processor on which the offsets were printed: with AVX2.
HARDWARE_VECTOR = 32
HEADER_AND_LOCK = 16
SMALLEST_OBJECT = 24
LIBRARIES = (
    "types", "System.Private.CoreLib", "System.Collections", "System.Private.Uri", "System.Linq",
    "System.Net.Http", "System.Private.Xml", "System.Text.RegularExpressions",
    "System.Net.Sockets", "System.Collections.Concurrent", "System.Text.Json",
)  # fmt: skip
# Version, where its library is, how many fields of how many types the data has of it.
RUNTIMES = {
    "2.1.30": (NETCORE21, (2, 1), 18453, 5580),
    "3.1.23": (NETCORE31, (3, 1), 18947, 5953),
    "9.0.1": (NET9, (9, 0), 20464, 6506),
}


class Asked:
    """A runtime's types by the labels of the data."""

    def __init__(self, folder: Path, rules: LayoutRules) -> None:
        core = Assembly(framework(folder))
        self.references = References(core, (str(folder), str(DATA / "bin")))
        self.types = ClosedTypes(self.references)
        self.layouts = Layouts(self.types, rules, HARDWARE_VECTOR)
        self.known = [name for name in LIBRARIES if self._exists(folder, name)]

    @staticmethod
    def _exists(folder: Path, name: str) -> bool:
        return name == "types" or (folder / f"{name}.dll").exists()

    def definition(self, name: str, assembly: str) -> tuple[Assembly, int]:
        # C# compilers name the type of a fixed buffer differently.
        name = name.replace("<f>e__FixedBuffer", "<f>__FixedBuffer0")
        for one in (assembly, *self.known):
            found = self.references.assembly(one)
            row = found.type_named(name)
            if row:
                return found, row
        raise AssertionError(f"no type {name}")

    def parse(self, label: str, assembly: str) -> int:
        number, rest = self._parse(label.replace("\\,", ","), assembly)
        assert not rest
        return number

    def _parse(self, label: str, assembly: str) -> tuple[int, str]:
        end = next((at for at, letter in enumerate(label) if letter in "{};["), len(label))
        made, row = self.definition(label[:end], assembly)
        rest, arguments = label[end:], []
        more = rest.startswith("{")
        while more:
            number, rest = self._parse(rest[1:], assembly)
            arguments.append(number)
            more = rest.startswith(";")
        if arguments:
            rest = rest.removeprefix("}")
        number = self.types.number(Instance(made, row, tuple(arguments)))
        while rest.startswith("[]"):
            number, rest = self.types.number(Items(number, 0)), rest[2:]
        return number, rest

    def compare(self, lines: Iterator[str]) -> tuple[int, int, list[str]]:
        """How many fields and types there are, and what differs."""
        fields = types = 0
        different: list[str] = []
        assembly, label, offsets = "", "", {"": 0}
        for line in lines:
            kind, *columns = line.rstrip("\n").split("\t")
            if kind == "A":
                assembly = columns[0]
            elif kind == "T":
                types += 1
                label, whole, size = columns
                layout = self.layouts.of(self.parse(label, assembly))
                offsets = {field.name: field.offset for field in layout.fields}
                expected = (whole, size)
                object_size = max(SMALLEST_OBJECT, (layout.size + HEADER_AND_LOCK + 7) // 8 * 8)
                # A string's base size has its first characters in it; static classes have none.
                if size == "-" and label != "System.String" and whole != "0":
                    expected = (str(object_size), size)
                elif size not in "-?":
                    expected = (whole, str(layout.size))
                if expected != (whole, size):
                    different.append(f"{label}: {whole} {size}, not {expected}")
            elif kind == "F":
                fields += 1
                name, offset = columns
                if "FixedBuffer" not in label and offsets.get(name) != int(offset):
                    different.append(f"{label}.{name} at {offset}, not {offsets.get(name)}")
        return fields, types, different


def _lines(version: str) -> Iterator[str]:
    with lzma.open(DATA / f"{version}.tsv.xz", "rt", encoding="utf-8") as stream:
        yield from stream


@pytest.mark.parametrize("version", RUNTIMES)
def test_every_field_is_where_the_runtime_has_it(version: str) -> None:
    folder, number, fields, types = RUNTIMES[version]
    if reason := missing(folder):
        pytest.skip(reason)
    asked = Asked(folder, runtime("coreclr", number).layout)
    assert asked.compare(_lines(version)) == (fields, types, [])


@pytest.mark.parametrize(
    ("version", "rules", "most"), [("3.1.23", (9, 0), 2000), ("3.1.23", (5, 0), 100)]
)
def test_the_rules_of_another_version_are_noticed(
    version: str, rules: tuple[int, int], most: int
) -> None:
    folder = RUNTIMES[version][0]
    if reason := missing(folder):
        pytest.skip(reason)
    _, _, different = Asked(folder, runtime("coreclr", rules).layout).compare(_lines(version))
    assert 0 < len(different) < most
