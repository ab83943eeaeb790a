"""Walks in C for libbpf: the entries that the loader prints are those that the program has.

The programs are those of :mod:`tests.live.test_walked_containers`; each writes what its containers
hold at each call, in JSON by expression.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import fetchc
from tests.live import test_walked_containers as containers
from tests.live.rustc import COMPILERS
from tests.live.rustc import compiled as rust_program
from tests.live.test_bpf_c_programs import attached, quiet
from tests.live.traced import SECONDS
from tests.support.dotnet import ahead_of_time
from tests.support.libbpf_programs import Walked, compiled, walks
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live


def character(shown: str) -> str:
    return chr(int(shown))


def floating(shown: str) -> str:
    return f"{struct.unpack('d', struct.pack('Q', int(shown, 16)))[0]:g}"


# What a loader prints as a number, or as the bits of one.
_AS_NUMBERS = {
    "a.mm[:7]": {"key": character, "value": floating},
    "list(a.dc, 90)": {"value": character},
}
NOT_COMPARED = frozenset(
    (
        # The program does not look at what an element is, as the warning says.
        "o.held[:9].(string)", "list(o.each, 9).(string)", "e.1.Some.0[:].Name.0",
    )
)  # fmt: skip
# A string of libc++ is shown in both of its forms, one of which is any bytes.
_STRINGS = frozenset(
    ("a.m[:]", "a.r[:].x", "a.l[:]", "a.u[:].x", "list(a.vs)", "a.m[3]", "a.m[a.number]", "a.q[:]")
)


def c_lists(folder: Path) -> Path:
    require("gcc")
    (folder / "lists.c").write_text(containers.C)
    command = ["gcc", "-g", "-O1", "-w", "-o", str(folder / "lists"), str(folder / "lists.c")]
    subprocess.run(command, check=True, timeout=SECONDS)
    return folder / "lists"


def cpp_containers(command: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        compiler, *options = command.split()
        require(compiler, *["libc++" for one in options if one.endswith("libc++")])
        source, program = folder / "containers.cc", folder / "containers"
        source.write_text(containers.CPP)
        words = [compiler, *options, "-g", "-w", "-o", str(program), str(source)]
        subprocess.run(words, check=True, timeout=SECONDS)
        return program

    return build


def rust_containers(folder: Path) -> Path:
    if not COMPILERS:
        pytest.skip("no rustc: .ci/setup installs it")
    source = folder / "drawn" / "main.rs"
    source.parent.mkdir()
    source.write_text(containers.RUST)
    compiler = COMPILERS[-1].values[0]
    assert isinstance(compiler, str)
    return rust_program(compiler, source, folder / "drawn_program")


def go_maps(version: str) -> Callable[[Path], Path]:
    return lambda folder: containers.go_program(folder, version, containers.GO)


def collections_of_dotnet(folder: Path) -> Path:
    (folder / "drawn.cs").write_text(containers.CSHARP)
    return ahead_of_time(folder / "drawn.cs", folder / "drawn.exe")


def said(program: Path, seed: int) -> list[dict[str, object]]:
    """What a run says that its containers hold, by call."""
    out, by = program.parent / "said", ["mono"] if program.suffix == ".exe" else []
    subprocess.run([*by, program, str(seed), out], check=True, timeout=SECONDS)
    return [json.loads(line) for line in out.read_text().splitlines()]


def printed(
    program: Path, function: str, at: str | None, labels: Sequence[str], change: str = ""
) -> list[dict[str, Walked]]:
    """What the loader prints of each call of a run with the seed 1, by expression.

    ``change`` is put into the C before the first increment of a number of entries.
    """
    probe = fetchc.open(str(program)).probe(function, at=at)
    asked = [probe.compile(f"v{n}={label}", computes=True) for n, label in enumerate(labels)]
    text = probe.written("bpf-c", asked).text
    if change:
        assert change in text
        text = text.replace(change, f"{change} + 8", 1)
    folder = program.parent
    compiled(folder, text)
    with attached(folder, text) as child:
        try:
            said(program, 1)
            shown = quiet(child).decode()
        finally:
            child.kill()
    return [{label: hit[f"v{n}"] for n, label in enumerate(labels)} for hit in walks(shown, text)]


def wrong(label: str, found: Walked, wanted: object, unordered: frozenset[str]) -> str:
    """How the entries differ from what the program says; empty where they do not."""
    entries, whole = by_name(label, found.entries), expected(wanted)
    if found.changed or found.failed:
        return f"{label}: {found}"
    if not isinstance(wanted, list):
        return "" if entries == whole else f"{label}: {entries} for {whole}"
    bound = re.search(r"\[:([0-9]+)\]|, ([0-9]+)\)", label)
    most = containers.MOST if bound is None else int(bound[1] or bound[2])
    if (found.count, len(entries)) != (len(whole), min(most, len(whole))):
        return f"{label}: {len(entries)} of {found.count}, not of {len(whole)}"
    if label not in unordered:
        return "" if entries == whole[: len(entries)] else f"{label}: {entries} for {whole}"
    left = [one for one in entries if entries.count(one) > whole.count(one)]
    return f"{label}: {left} for {whole}" if left else ""


def expected(wanted: object) -> list[dict[str, str | None]]:
    """The entries that the program has; of a look-up one, or none."""
    listed = wanted if isinstance(wanted, list) else [] if wanted is None else [wanted]
    pairs = [isinstance(one, dict) and set(one) == {"key", "value"} for one in listed]
    return [flat(one if pair else {"value": one}) for one, pair in zip(listed, pairs, strict=True)]


def flat(value: object, name: str = "") -> dict[str, str | None]:
    """Each number and string of a value, as the loader names and prints it."""
    if isinstance(value, dict):
        found: dict[str, str | None] = {}
        for member, inner in value.items():
            found |= flat(inner, f"{name}_{member}".lstrip("_"))
        return found
    if isinstance(value, list):
        return {name: ",".join(map(str, value))}
    if value is None or isinstance(value, str):
        return {name: value}
    return {name: str(int(value) if isinstance(value, bool) else value)}


def by_name(label: str, entries: list[dict[str, str | None]]) -> list[dict[str, str | None]]:
    """Entries without the lengths of their strings."""
    listed = []
    for entry in entries:
        shown = {
            name: value
            for name, value in entry.items()
            if not (name.endswith("_len") and name.removesuffix("_len") in entry)
        }
        for name, read in _AS_NUMBERS.get(label, {}).items():
            shown[name] = read(shown[name] or "")
        listed.append(shown)
    return listed


def check(
    build: Callable[[Path], Path],
    folder: Path,
    function: str,
    at: str | None = None,
    unordered: frozenset[str] = frozenset(),
    left_out: frozenset[str] = NOT_COMPARED,
) -> None:
    require_uprobes()
    program = build(folder)
    calls = said(program, 1)
    labels = [label for label in calls[0] if label not in left_out]
    found = printed(program, function, at, labels)
    assert len(found) == len(calls)
    differences = [
        difference
        for hit, call in zip(found, calls, strict=True)
        for label in labels
        if (difference := wrong(label, hit[label], call[label], unordered))
    ]
    assert differences == []
    assert max(len(one.entries) for hit in found for one in hit.values()) > 20


def test_lists_of_c(tmp_path: Path) -> None:
    check(c_lists, tmp_path, "look")
    # A wrong program is noticed: it reads the next member.
    program = tmp_path / "lists"
    labels = ["list(h->head, next).id"]
    (*_, last) = printed(program, "look", None, labels, "e->v0_place + 8")
    (*_, call) = said(program, 1)
    assert wrong(labels[0], last[labels[0]], call[labels[0]], frozenset())


@pytest.mark.long
@pytest.mark.parametrize("command", ["g++ -O1", "clang++ -fstandalone-debug -stdlib=libc++"])
def test_containers_of_cpp(command: str, tmp_path: Path) -> None:
    left_out = _STRINGS if "libc++" in command else NOT_COMPARED
    check(cpp_containers(command), tmp_path, "look", left_out=left_out)


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.15", "1.22", "1.24", "1.27"])
def test_maps_of_go(version: str, tmp_path: Path) -> None:
    check(go_maps(version), tmp_path, "main.look", None, containers.MAPS_OF_GO)


@pytest.mark.long
def test_containers_of_rust(tmp_path: Path) -> None:
    check(rust_containers, tmp_path, "look", "body", containers.TABLES_OF_RUST)


@pytest.mark.long
def test_collections_of_dotnet_with_mono(tmp_path: Path) -> None:
    check(collections_of_dotnet, tmp_path, "Program.Look")


@pytest.mark.long
def test_what_another_thread_changes_is_marked(tmp_path: Path) -> None:
    require_uprobes()
    require("g++")
    source, program = tmp_path / "changing.cc", tmp_path / "changing"
    source.write_text(containers.CHANGING)
    command = ["g++", "-g", "-O1", "-pthread", "-o", str(program), str(source)]
    subprocess.run(command, check=True, timeout=SECONDS)
    labels = ["list(a.head, next).value", "a.m[:]", "a.l[:]", "list(a.v)"]
    marked, plain, mixed, unmarked = marks(program, labels)
    assert min(marked, plain, mixed) > 0
    assert not unmarked
    # Without the second walk, there are some.
    *_, unmarked = marks(program, labels, ("e->v{}_sum != sum", "sum == 1"))
    assert unmarked


def marks(
    program: Path, labels: Sequence[str], change: tuple[str, str] = ("", "")
) -> tuple[int, int, int, int]:
    """Of the containers how many are marked, how many are not, and which of them are mixtures.

    ``change`` is replaced in the C, with the number of each label.
    """
    probe = fetchc.open(str(program)).probe("look")
    asked = [probe.compile(f"v{n}={label}", computes=True) for n, label in enumerate(labels)]
    text = probe.written("bpf-c", asked).text
    for number in range(len(labels)) if change[0] else ():
        assert change[0].format(number) in text
        text = text.replace(change[0].format(number), change[1])
    compiled(program.parent, text)
    counts = [[0, 0], [0, 0]]  # by whether it is marked, and whether it is a mixture
    for _ in range(20):  # where both threads share a processor, little changes meanwhile
        with attached(program.parent, text) as child:
            try:
                subprocess.run([program], check=True, timeout=SECONDS)
                shown = quiet(child).decode()
            finally:
                child.kill()
        for hit in walks(shown, text):
            for one in hit.values():
                values = [int(entry["value"] or 0) for entry in one.entries]
                assert len(values) == 30
                counts[one.changed][containers.of_no_moment(values)] += 1
        enough = min(sum(counts[True]), sum(counts[False]), counts[True][True]) > 0
        if enough or counts[False][True]:
            break
    return sum(counts[True]), sum(counts[False]), counts[True][True], counts[False][True]
