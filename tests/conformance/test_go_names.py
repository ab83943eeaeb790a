"""Names of Go that mean one thing by the language's rules, and what of them is refused.

Random packages, several of one name, have types and variables of one name; structures embed others,
and methods hide what those promote. ``FETCHC_SEEDS=1000-1040`` draws others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest

import fetchc
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.go.rtype_names import descriptors_of, linker_name
from fetchc.debuginfo.open_file import open_binary
from tests.support.go_programs import go_program
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS

CALLED = ("dup", "item")
TYPES = ("Item", "Part")


class Packages:
    """Import paths with the sizes of their types, in bytes, and the source of all of them."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        paths = [f"m/{above}/{name}" for above in "abc" for name in CALLED]
        self.types: dict[str, dict[str, int]] = {}
        for path in random.sample(paths, 4):
            listed = random.sample(TYPES, random.choice([1, 2]))
            self.types[path] = {name: 8 * random.randrange(1, 60) for name in listed}
        self.versioned = "m/dup.v2"  # which calls itself dup, too
        self.types[self.versioned] = {"Item": 8 * random.randrange(60, 90)}

    def write(self, folder: Path) -> str:
        """The packages below ``folder``; the source of ``main``."""
        imports, calls = [], []
        for number, (path, sizes) in enumerate(self.types.items()):
            lines = [f"package {_called(path)}"]
            for name, size in sizes.items():
                lines += ["", f"type {name} struct {{ A [{size // 8}]int }}"]
                lines += [f"var Of{name} [{size // 8}]int", f"var Kept{name} interface{{}}"]
                lines += ["", "//go:noinline", f"func (i *{name}) Look(n int) int {{"]
                lines += [f"\tKept{name} = i", f"\treturn i.A[n] + Of{name}[n]", "}"]
                calls.append(f"\tn += (&p{number}.{name}{{}}).Look(0)")
            lines += ["", "//go:noinline", "func Probe(n int) int { return n + 1 }"]
            place = folder / "src" / path
            place.mkdir(parents=True)
            (place / "file.go").write_text("\n".join([*lines, ""]))
            imports.append(f'import p{number} "{path}"')
            calls.append(f"\tn += p{number}.Probe(0)")
        body = ["func main() {", "\tn := 0", *calls, "\tprintln(n, probe(n))", "}"]
        probe = ["//go:noinline", "func probe(n int) int { return n + 1 }"]
        return "\n".join(["package main", *imports, *probe, *body, ""])

    def meant(self, package: str, called: str, name: str) -> list[tuple[str, int]]:
        """The paths and sizes that ``called.name`` can mean in code of ``package``."""
        own = self.types.get(package, {})
        if package and called == _called(package) and name in own:
            return [(package, own[name])]
        every = [path for path in self.types if _called(path) == called]
        return [(path, self.types[path][name]) for path in every if name in self.types[path]]


def _called(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


@pytest.mark.parametrize("stripped", [False, True], ids=["described", "stripped"])
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_packages_of_one_name_are_not_mixed_up(
    version: str, seed: int, stripped: bool, tmp_path: Path
) -> None:
    packages = Packages(seed)
    source = packages.write(tmp_path)
    flags = ("-ldflags=-s -w",) if stripped else ()
    program = fetchc.open(str(go_program(version, tmp_path, source, *flags, name="names")))
    counts = {"right": 0, "refused": 0}
    for package in ("", *packages.types):
        point = program.probe(f"{package}.Probe" if package else "main.probe", kernel="6.1")
        for called, name in ((called, name) for called in CALLED for name in TYPES):
            meant = packages.meant(package, called, name)
            asked = [f"sizeof({called}.{name})", f"sizeof((*{called}.{name})($arg1).A)"]
            asked += [] if stripped else [f"sizeof({called}.Of{name})"]
            for text in asked:
                try:
                    found = point.compile(text).fetcharg
                except fetchc.CompileError as refusal:
                    (said,) = refusal.diagnostics
                    assert len(meant) != 1, (package, text, said)
                    if len(meant) > 1:
                        assert said.code == "FC0208"
                        assert all(f"`{path}." in said.notes[0] for path, _ in meant)
                        assert said.help
                        assert said.help.startswith("write the whole path: `m/")
                        counts["refused"] += 1
                    continue
                assert [found] == [f"\\{size}:u64" for _, size in meant], (package, text)
                counts["right"] += 1
        for path, sizes in packages.types.items():
            for name, size in sizes.items():
                assert point.compile(f"sizeof({path}.{name})").fetcharg == f"\\{size}:u64"
    print(f"seed {seed}, Go {version}: {counts}")
    assert min(counts.values()) > 2


@pytest.mark.parametrize("stripped", [False, True], ids=["described", "stripped"])
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_labels_tell_types_of_one_name_apart(
    version: str, seed: int, stripped: bool, tmp_path: Path
) -> None:
    packages = Packages(seed)
    source = packages.write(tmp_path)
    flags = ("-ldflags=-s -w",) if stripped else ()
    built = str(go_program(version, tmp_path, source, *flags, name="names"))
    go = open_binary(built).go
    assert go is not None
    types = go.runtime_types()
    known = descriptors_of(Elf(built), "x86_64")
    assert types is not None
    assert known is not None
    counts = {"alone": 0, "path": 0}
    for one in known.every():
        label = types.label(one.address - known.start)
        whole = linker_name(known, one).replace("%2e", ".")
        found = re.search(r"\b(m/[\w./]+)\.(\w+)", whole)
        if found is None:
            assert label == one.name
            continue
        alone = len(packages.meant("", _called(found[1]), found[2])) == 1
        assert label == (one.name if alone else whole)
        counts["alone" if alone else "path"] += 1
    print(f"seed {seed}, Go {version}: {counts}")
    assert counts["path"] > 3


class Embedding:
    """Structures that embed the one before; each has fields and methods of some of the names."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.fields: list[list[str]] = []
        self.methods: list[list[str]] = []
        for _ in range(6):
            names = [f"N{number}" for number in range(8)]
            self._random.shuffle(names)
            self.fields.append(names[:3])
            self.methods.append(names[3:5])

    def source(self) -> str:
        """The program; the probed function takes a pointer to the outermost structure."""
        lines = ["package main", "", "var sink int", "var kept interface{}"]
        for level, (fields, methods) in enumerate(zip(self.fields, self.methods, strict=True)):
            inner = [f"T{level - 1}"] if level else []
            members = "; ".join([f"{name} int" for name in fields] + inner)
            lines.append(f"type T{level} struct {{ {members} }}")
            for name in methods:
                star = self._random.choice(["*", ""])
                body = f"sink += t.{fields[0]}; return sink"
                lines += ["//go:noinline", f"func (t {star}T{level}) {name}() int {{ {body} }}"]
        calls = [
            f"t.{'.'.join(f'T{n}' for n in range(len(self.fields) - 2, level - 1, -1))}."
            for level in range(len(self.fields) - 1)
        ] + ["t."]
        # The linker leaves out those that are not called, which the types still tell of.
        calls = ["\tkept = t"] + [
            f"\tsink += {way}{name}()"
            for way, names in zip(calls, self.methods, strict=True)
            for name in names
            if self._random.random() < 0.5
        ]
        last = len(self.fields) - 1
        lines += ["", "//go:noinline", f"func probe(t *T{last}) {{", *calls, "}"]
        return "\n".join([*lines, f"func main() {{ probe(&T{last}{{}}); println(sink) }}", ""])

    def selected(self) -> Iterator[tuple[str, int, bool]]:
        """Each name, the level of its shallowest field, and whether a method hides that."""
        for name in sorted({name for level in self.fields for name in level}):
            depth = max(n for n, names in enumerate(self.fields) if name in names)
            yield name, depth, any(name in names for names in self.methods[depth + 1 :])

    @cache  # noqa: B019
    def offset(self, level: int, name: str) -> int:
        """Where the field of that level is in the outermost structure."""
        before = 24 * (len(self.fields) - 1 - level)
        return before + 8 * self.fields[level].index(name)


@pytest.mark.parametrize("stripped", [False, True], ids=["described", "stripped"])
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("version", GO_VERSIONS)
def test_a_method_hides_what_is_embedded_below(
    version: str, seed: int, stripped: bool, tmp_path: Path
) -> None:
    shapes = Embedding(seed)
    flags = ("-ldflags=-s -w",) if stripped else ()
    built = go_program(version, tmp_path, shapes.source(), *flags, name="embedding")
    point = fetchc.open(str(built)).probe("main.probe", kernel="6.1")
    whole = f"(*main.T{len(shapes.fields) - 1})($arg1)" if stripped else "t"
    pointer = point.compile(whole).fetcharg.partition(":")[0]
    hidden_ones = 0
    for name, level, hidden in shapes.selected():
        way = ".".join([*(f"T{n}" for n in range(len(shapes.fields) - 2, level - 1, -1)), name])
        there = f"+{shapes.offset(level, name)}({pointer}):s64"
        assert point.compile(f"{whole}.{way}").fetcharg == there
        if not hidden:
            assert point.compile(f"{whole}.{name}").fetcharg == there
            continue
        hidden_ones += 1
        with pytest.raises(fetchc.CompileError) as caught:
            point.compile(f"{whole}.{name}")
        (said,) = caught.value.diagnostics
        assert said.code == "FC0208"
        assert said.help == f"write the path to the member: `.{way}`"
    print(f"seed {seed}, Go {version}: {hidden_ones} hidden")
    assert hidden_ones
