"""Where names are, against gdb: functions of real programs, drawn, at their entry and within.

``FETCHC_LONG=1`` builds Debian source packages, too, with gcc and with clang, with
-fsanitize=address and -flto: ``FETCHC_PACKAGES=hello,gzip`` names them, ``FETCHC_SEEDS`` draws
other functions.

Every name that either of the two knows at an address is compared, place by place. What differs is
in ``gdb_places.toml``: the kinds of difference with the reason, and for the builds that are named
there each single one. ``--bless`` writes these anew; a difference of no kind stays a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import fetchc
from fetchc.driver import probe_points
from fetchc.program import entities
from fetchc.program.entities import Absent, Constant, InMemory, Pieces, Place
from fetchc.quantities import ByteOffset, DwarfRegister
from tests.support.debian_sources import built
from tests.support.gdb_scope import Frames, ask, drawn, length_of, place_of
from tests.support.seeds import seeds
from tests.support.toolchains import require

DATA = Path(__file__).with_name("gdb_places.toml")
SEED = 20
FUNCTIONS = 205
PER_PROGRAM = 120  # functions of a package's program
SUBJECTS = {
    "libc": (Path("/lib/x86_64-linux-gnu/libc.so.6"), 2),
    "python": (Path("/usr/bin/python3.11"), 1),
}

PACKAGES = os.environ.get("FETCHC_PACKAGES", "hello,gzip,sed").split(",")
BUILDS = {
    "gcc": "-g -O2",
    "gcc-address": "-g -O2 -fsanitize=address",
    "gcc-lto": "-g -O2 -flto",
    "clang": "-g -O2 -fstandalone-debug",
    "clang-lto": "-g -O2 -fstandalone-debug -flto",
}

PLACES = {kind.__name__ for kind in get_args(Place)} - {"Absent"}
GDB_WORDS = ("unlisted", "computed", "nowhere", "implicit pointer", "implicit value")
UNLISTED = Absent("no location", "unlisted")

Shown = tuple[str, str, Place]  # name, kind, place
Printed = Callable[[fetchc.Program, int], list[Shown]]
Difference = tuple[str, dict[str, str]]  # where and what, and its features


@pytest.fixture(autouse=True)
def _anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    # Places are compared, where no uprobe can be as well.
    monkeypatch.setattr(probe_points, "unprobeable", lambda *_: None)


def printed(program: fetchc.Program, address: int) -> list[Shown]:
    """What `fetchc variables` says."""
    shown = program.probe(None, hex(address), kernel="6.1").variables()  # any NOP, too
    return [(each.name, each.kind, each.place) for each in shown]


def sort_of(place: Place | None) -> str:
    """What kind of answer a place is; a refusal by its code, gdb's by its words."""
    if place is None:
        return "error"
    if isinstance(place, Absent):
        word = place.reason.split(" to ")[0]
        return word if word in GDB_WORDS else place.code
    return type(place).__name__


def plain(place: Place, length: int | None) -> Place:
    """A place without what the two spell differently: signs of constants, reasons."""
    match place:
        case Absent():
            return Absent("no location", "")
        case Constant(value):
            return Constant(value if length is None else value % (1 << 8 * length))
        case Pieces(pieces):
            parts = [entities.Piece(p.offset, p.size, plain(p.place, None)) for p in pieces]
            return Pieces(tuple(parts))
        case _:
            return place


def compared(
    answer: dict[str, Any], shown: list[Shown], frames: Frames
) -> Iterator[tuple[dict[str, str], str]]:
    """Features of every difference at one address, and the name."""
    address = answer["address"]
    ours: dict[str, tuple[str, Place]] = {}
    for name, kind, place in shown:
        ours.setdefault(name, (kind, place))
    cold = ".cold" in answer["symbol"]
    where = "entry" if address == answer["entry"] and not cold else "body"
    for name, texts in answer["names"].items():
        kind, place = ours.pop(name, ("", UNLISTED))
        said = [(text and place_of(text, address, frames), text) for text in texts]
        first, text = said[0]
        features = {"where": where, "kind": kind, "gdb": sort_of(first) if text else "unasked"}
        features |= {"part": "cold"} if cold else {}
        features |= {"copy": "none"} if text and text.startswith("optimized out") else {}
        if place is UNLISTED:
            enumerator = text is not None and text.startswith("a constant with value")
            features |= {"ours": "unlisted"} | ({"gdb": "enumerator"} if enumerator else {})
        else:
            # Same names of blocks around it come into it where the first has no place.
            same = [
                plain(one, length_of(words)) == plain(place, length_of(words))
                for one, words in said
                if one is not None and words is not None
            ]
            if text is not None and first is not None and same[0]:
                continue
            reason = place.reason if isinstance(place, Absent) else ""
            features |= {"ours": sort_of(place), "reason": reason}
            features |= {"outer": "yes"} if any(same) else {}
            if isinstance(place, InMemory) and isinstance(first, InMemory):
                between = first.offset - place.offset
                lower = place.register == first.register and between in frames.depths(address)
                features |= {"frame": "built"} if lower else {}
        yield features, name
    for name, (kind, place) in ours.items():
        yield {"where": where, "kind": kind, "gdb": "unlisted", "ours": sort_of(place)}, name


def differences(
    binary: Path, questions: list[dict[str, object]], folder: Path, say: Printed
) -> tuple[list[Difference], int, int]:
    """All differences, the number of functions asked for, and of names."""
    answers = ask(binary, questions, folder)
    frames, program = Frames(binary), fetchc.open(str(binary))
    found: list[Difference] = []
    names = 0
    for answer in answers:
        names += len(answer["names"])
        offset = answer["address"] - answer["entry"]
        for features, name in compared(answer, say(program, answer["address"]), frames):
            found.append((f"{answer['symbol']}+{offset:#x} {name}", features))
    return found, len({answer["entry"] for answer in answers}), names


def explained(features: dict[str, str], kinds: list[dict[str, Any]]) -> str | None:
    """The first kind whose every condition holds: a word of a list, or part of the reason."""
    for kind in kinds:
        conditions = kind["when"]
        if all(
            re.search(wanted, features.get(key, ""))
            if key == "reason"
            else features.get(key, "") in wanted
            for key, wanted in conditions.items()
        ):
            return str(kind["name"])
    return None


def subject(name: str) -> tuple[Path, Path, str, int]:
    """The file, its separate debug information, its build-id, instructions within a function."""
    if shutil.which("gdb") is None:
        pytest.skip("no gdb: .ci/setup installs it")
    binary, points = SUBJECTS[name]
    if not binary.exists():
        pytest.skip(f"no {binary} here")
    build = fetchc.open(str(binary)).build_id
    assert build is not None
    debug = Path(f"/usr/lib/debug/.build-id/{build[:2]}/{build[2:]}.debug")
    if not debug.exists():
        pytest.skip(f"no debug information of {binary}: .ci/setup installs it")
    return binary, debug, build, points


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_difference_is_explained(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    binary, debug, build, points = subject(name)
    data = tomllib.loads(DATA.read_text())
    questions = drawn(debug, SEED, FUNCTIONS + 20, points)
    found, functions, names = differences(binary, questions, tmp_path, printed)
    assert functions >= 200
    assert names > 2000
    kinds = [(what, features, explained(features, data["kind"])) for what, features in found]
    assert [entry for entry in kinds if entry[2] is None] == []
    listed: dict[str, list[str]] = {}
    for what, _, kind in kinds:
        assert kind is not None
        listed.setdefault(kind, []).append(what)
    if request.config.getoption("--bless"):
        bless(build, name, listed)
    elif build in data["build"]:
        assert listed == data["build"][build]["differences"]
    assert sum(map(len, listed.values())) < names / 4


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where source packages are downloaded and built."""
    return tmp_path_factory.mktemp("debian")


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("package", PACKAGES)
def test_every_difference_of_a_debian_program_is_explained(
    package: str,
    build: str,
    seed: int,
    sources: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("no gdb: .ci/setup installs it")
    compiler = build.partition("-")[0]
    require(compiler)
    binary = built(package, compiler, BUILDS[build], sources)
    questions = drawn(binary, seed, PER_PROGRAM, 2)
    found, functions, names = differences(binary, questions, tmp_path, printed)
    kinds = tomllib.loads(DATA.read_text())["kind"]
    left = [(what, features) for what, features in found if explained(features, kinds) is None]
    counts = summary(names, [features for _, features in found], len(left))
    with capsys.disabled():
        print(f"\n{package} {build} seed {seed}, {functions} functions: {counts}")
    print(f"{len(left)} differences of no known kind", *left, sep="\n  ")
    assert names > 0
    assert left == []


def summary(names: int, found: list[dict[str, str]], wrong: int) -> str:
    """How many names are equal, refused where gdb has a place, and unexplained."""
    refused = Counter(
        features["ours"]
        for features in found
        if features["ours"].startswith("FC") and features["gdb"] in PLACES
    )
    codes = ", ".join(f"{code} {count}" for code, count in sorted(refused.items()))
    equal = names - sum(features["gdb"] != "unlisted" for features in found)
    return f"{names} names, {equal} equal, refused: {codes or 'none'}; unexplained {wrong}"


def bless(build: str, name: str, listed: dict[str, list[str]]) -> None:
    """Write the differences of this build, in place of those of an older one."""
    text = DATA.read_text()
    pattern = rf'\n\[build\.\w+\]\nof = "{name}"\n.*?(?=\n\[build\.\w+\]\n|\Z)'
    text = re.sub(pattern, "", text, flags=re.DOTALL).rstrip("\n")
    lines = [f'\n\n[build.{build}]\nof = "{name}"\n\n[build.{build}.differences]']
    for kind in sorted(listed):
        items = "".join(f'    "{what}",\n' for what in listed[kind])
        lines.append(f"{kind} = [\n{items}]")
    DATA.write_text(text + "\n".join(lines) + "\n")


def _wrong_register(place: Place) -> Place:
    if isinstance(place, entities.InRegister):
        return entities.InRegister(DwarfRegister(place.register ^ 1))
    return place


def _moved(place: Place) -> Place:
    if isinstance(place, entities.InMemory):
        return entities.InMemory(place.register, ByteOffset(place.offset + 8))
    return place


@pytest.mark.parametrize("lie", [_wrong_register, _moved])
def test_the_comparison_sees_a_wrong_place(tmp_path: Path, lie: Callable[[Place], Place]) -> None:
    def liar(program: fetchc.Program, address: int) -> list[Shown]:
        return [(name, kind, lie(place)) for name, kind, place in printed(program, address)]

    binary, debug, _, points = subject("libc")
    kinds = tomllib.loads(DATA.read_text())["kind"]
    questions = drawn(debug, SEED, 12, points)
    right = differences(binary, questions, tmp_path, printed)[0]
    wrong = differences(binary, questions, tmp_path, liar)[0]
    assert [one for one in right if explained(one[1], kinds) is None] == []
    assert len([one for one in wrong if explained(one[1], kinds) is None]) > 3


def test_the_comparison_sees_a_name_that_is_left_out(tmp_path: Path) -> None:
    def forgetful(program: fetchc.Program, address: int) -> list[Shown]:
        return [entry for entry in printed(program, address) if entry[1] != "parameter"]

    binary, debug, _, points = subject("libc")
    kinds = tomllib.loads(DATA.read_text())["kind"]
    wrong = differences(binary, drawn(debug, SEED, 12, points), tmp_path, forgetful)[0]
    assert len([one for one in wrong if explained(one[1], kinds) is None]) > 3


def test_reasons_are_the_words_of_refusals() -> None:
    # The long hunt alone would see that a refusal has other words by now.
    product = Path(fetchc.__file__).parent
    sources = "".join([path.read_text() for path in product.rglob("*.py")])
    kinds = tomllib.loads(DATA.read_text())["kind"]
    reasons = [kind["when"]["reason"] for kind in kinds if "reason" in kind["when"]]
    words = [one for reason in reasons for one in reason.split("|")]
    assert len(words) > 3
    assert [one for one in words if one not in sources] == []
