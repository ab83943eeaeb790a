"""What interfaces hold: the dynamic type by its name, and values of no other type misread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fetchc
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import ALL_GO_VERSIONS, GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = """
package main

import (
	"errors"
	"os"
)

type shape interface{ area() int }
type square struct {
	side  int
	label string
}
type circle struct{ radius int32 }
type weight uint8
type holder struct{ inner *circle }

func (s square) area() int  { return s.side * s.side }
func (c *circle) area() int { return int(c.radius) }
func (w weight) area() int  { return int(w) }
func (h holder) area() int  { return h.inner.area() }

type boxed struct {
	serial int
	inside shape
	why    error
}

//go:noinline
func show(serial int, s shape, v interface{}, err error, b *boxed) int {
	if s == nil {
		return 0
	}
	return s.area()
}

func main() {
	_, missing := os.Open("/nonexistent/file")
	plain := errors.New("a plain error")
	c := &circle{9}
	show(0, square{7, "seven"}, 70000, plain, &boxed{0, c, nil})
	show(1, c, "a text", missing, &boxed{1, weight(200), plain})
	show(2, weight(200), c, nil, &boxed{2, nil, missing})
	show(3, nil, nil, plain, &boxed{3, square{1, "x"}, nil})
	show(4, holder{c}, weight(3), missing, nil)
	show(5, square{-1, ""}, []byte("xyz"), nil, &boxed{5, holder{c}, plain})
}
"""

WANTED = {
    "serial": [0, 1, 2, 3, 4, 5],
    "s.(square).side": [
        7, {"type": "*main.circle"}, {"type": "main.weight"}, {"type": "nil"},
        {"type": "main.holder"}, -1,
    ],
    "s.(square).label": [
        "seven", {"type": "*main.circle"}, {"type": "main.weight"}, {"type": "nil"},
        {"type": "main.holder"}, "",
    ],
    "s.(*circle).radius": [
        {"type": "main.square"}, 9, {"type": "main.weight"}, {"type": "nil"},
        {"type": "main.holder"}, {"type": "main.square"},
    ],
    "s.(holder).inner.radius": [
        {"type": "main.square"}, {"type": "*main.circle"}, {"type": "main.weight"},
        {"type": "nil"}, 9, {"type": "main.square"},
    ],
    "s.(square)": [
        {"side": 7, "label": "seven"}, {"type": "*main.circle"}, {"type": "main.weight"},
        {"type": "nil"}, {"type": "main.holder"}, {"side": -1, "label": ""},
    ],
    "v.(string)": [
        {"type": "int"}, "a text", {"type": "*main.circle"}, {"type": "nil"},
        {"type": "main.weight"}, {"type": "[]uint8"},
    ],
    "v.(int)": [
        70000, {"type": "string"}, {"type": "*main.circle"}, {"type": "nil"},
        {"type": "main.weight"}, {"type": "[]uint8"},
    ],
    "v.([]uint8)": [
        {"type": "int"}, {"type": "string"}, {"type": "*main.circle"}, {"type": "nil"},
        {"type": "main.weight"}, [120, 121, 122],
    ],
    "err.(*errors.errorString).s": [
        "a plain error", {"type": "PATH"}, {"type": "nil"}, "a plain error",
        {"type": "PATH"}, {"type": "nil"},
    ],
    "err.(*PATH).Path": [
        {"type": "*errors.errorString"}, "/nonexistent/file", {"type": "nil"},
        {"type": "*errors.errorString"}, "/nonexistent/file", {"type": "nil"},
    ],
    # 2 is the number that Linux has for a file that does not exist.
    "err.(*PATH).Err.(syscall.Errno)": [
        {"type": "*errors.errorString"}, {"name": "ENOENT", "value": 2}, {"type": "nil"},
        {"type": "*errors.errorString"}, {"name": "ENOENT", "value": 2}, {"type": "nil"},
    ],
    "s == nil": [False, False, False, True, False, False],
    "v == nil": [False, False, False, True, False, False],
    "err != nil && serial > 0": [False, True, False, True, True, False],
    "b.inside != nil": [True, True, False, True, None, True],
    "b.inside.(weight)": [
        {"type": "*main.circle"}, 200, {"type": "nil"}, {"type": "main.square"}, None,
        {"type": "main.holder"},
    ],
    "b.why.(*errors.errorString).s": [
        {"type": "nil"}, "a plain error", {"type": "PATH"}, {"type": "nil"}, None,
        "a plain error",
    ],
}  # fmt: skip


def expected(version: str) -> dict[str, list[object]]:
    # os.PathError is another name of fs.PathError since 1.16.
    package = "os" if version == "1.15" else "fs"
    wanted = json.loads(json.dumps(WANTED).replace("PATH", f"{package}.PathError"))
    text = json.dumps(wanted).replace(f'"type": "{package}.', f'"type": "*{package}.')
    found: dict[str, list[object]] = json.loads(text)
    return found


def values(binary: Path, texts: list[str], follow: int = 0) -> dict[str, list[object]]:
    probe = fetchc.open(str(binary)).probe("main.show")
    asked = [probe.asked(text, follow) for text in texts]
    halves = [asked[0::2], [*asked[1::2], asked[0]]]
    _, events = watched(
        lambda group: [probe.plan(half, group, f"half{n}") for n, half in enumerate(halves)],
        [binary],
    )
    found: dict[str, list[object]] = {}
    for name in ("half0", "half1"):
        rows = sorted(
            (one for one in events if one.name == name), key=lambda e: str(e.args["serial"])
        )
        assert len(rows) == 6
        for label in rows[0].args:
            found[label] = [row.args[label] for row in rows]
            missing = [row.args["serial"] for row in rows if label in row.faults]
            if not follow:  # a pointer that is followed is null where it is nil
                assert missing == [n for n, one in enumerate(found[label]) if one is None]
    return found


@pytest.mark.parametrize("version", ALL_GO_VERSIONS)
def test_values_of_other_types_are_shown_by_their_type(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program, wanted = go_program(version, tmp_path, SOURCE, name="dynamic"), expected(version)
    assert values(program, list(wanted)) == wanted


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_a_program_may_be_loaded_anywhere(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, SOURCE, "-buildmode=pie", name="dynamic")
    wanted = expected(version)
    assert values(program, list(wanted)) == wanted


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_whole_interfaces_have_their_types_name(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, SOURCE, name="dynamic")
    found = values(program, ["serial", "s", "v", "b.inside"])
    names = ["main.square", "*main.circle", "main.weight", "nil", "main.holder", "main.square"]
    assert [one["type"] for one in found["s"] if isinstance(one, dict)] == names
    assert [one["data"] == 0 for one in found["s"] if isinstance(one, dict)] == [
        name == "nil" for name in names
    ]
    assert found["b.inside"][4] is None


SQUARE = {"side": 7, "label": "seven"}
HELD: dict[str, list[tuple[object, ...]]] = {
    "s": [
        ("main.square", SQUARE), ("*main.circle", {"radius": 9}), ("main.weight", 200), ("nil",),
        ("main.holder", {"inner": "circle"}), ("main.square", {"side": -1, "label": ""}),
    ],
    # Nothing says what the program puts into an `any`, and the own error has no words.
    "v": [
        ("int", 70000), ("string", "a text"), ("*main.circle",), ("nil",), ("main.weight",),
        ("[]uint8",),
    ],
    "err": [
        ("*errors.errorString", "a plain error"), ("*main.failure", {"code": 5, "what": "own"}),
        ("nil",), ("*errors.errorString", "a plain error"),
        ("*main.failure", {"code": 5, "what": "own"}), ("nil",),
    ],
}  # fmt: skip


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_what_interfaces_lead_to(version: str, tmp_path: Path) -> None:
    require_uprobes()
    source = SOURCE.replace("_, missing := os.Open", "os.Open")
    source = source.replace('errors.New("a plain error")', 'errors.New("a plain error")\n' + MADE)
    program = go_program(version, tmp_path, source + FAILURE, name="dynamic")
    found = values(program, ["serial", "s", "v", "err", "b.inside", "b"], 1)
    for label, wanted in HELD.items():
        for one, (name, *held) in zip(found[label], wanted, strict=True):
            assert isinstance(one, dict)
            value = one.get("value")
            if isinstance(value, dict) and "inner" in value:
                value = {"inner": "circle"} if value["inner"] > 0 else value
            assert (one["type"], [value] if "value" in one else []) == (name, held)
    circle = found["b.inside"][0]
    assert isinstance(circle, dict)
    assert circle["value"] == {"radius": 9}
    inside = [one["inside"] for one in found["b"] if isinstance(one, dict)]
    assert ["value" in one for one in inside] == [False] * 5  # one pointer is followed, to `b`
    deeper = values(program, ["serial", "b"], 2)["b"][1]
    assert isinstance(deeper, dict)
    assert deeper["inside"]["value"] == 200
    plain = values(program, ["serial", "s"])["s"]
    assert not any("value" in one for one in plain if isinstance(one, dict))


MADE = '\tmissing := error(&failure{5, "own"})'
FAILURE = """
type failure struct {
	code uint16
	what string
}

func (f *failure) Error() string { return f.what }
"""
