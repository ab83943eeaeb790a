"""Where ``offsets --params`` says that parameters are, against the bytes that a caller passes.

gdb stops at the entry and reads the bytes of each piece; the program states what it passes. The
same places are those of the fetch-args that ``compile`` gives for the parameters.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fetchc
from fetchc.answers.json_documents import value_document
from fetchc.cli import main
from fetchc.diag.diagnostic import CompileError
from tests.support.cases import CORPUS
from tests.support.toolchains import require

SOURCE = r"""
#include <string>
struct Pair { long a; double b; };
struct Turned { double b; long a; };
struct Big { long v[3]; };
struct Small { short a; char b; int c; };
extern "C" __attribute__((noinline)) long called(
    Pair pair, Big big, Small small, std::string text, double number, int n, Turned turned, char c,
    short last_register, long first_on_stack, bool flag, Small behind) {
  asm volatile("" ::: "memory");
  return pair.a + big.v[1] + small.c + text.size() + (long)number + n + turned.a + c +
         last_register + first_on_stack + flag + behind.b;
}
int main() {
  return (int)called({0x1122334455, 2.0}, {{7, 8, 9}}, {-3, 'x', 70000}, "abc", 1.5, -9, {1.0, 77},
                     'c', 300, -4, true, {4, 'y', 5});
}
"""
# Bytes of each parameter that are known, by their offset in it.
PASSED = {
    "pair": {0: struct.pack("<q", 0x1122334455)},
    "big": {0: struct.pack("<3q", 7, 8, 9)},
    "small": {0: struct.pack("<hb", -3, ord("x")), 4: struct.pack("<i", 70000)},
    "text": {8: struct.pack("<q", 3)},  # its length
    "number": {},
    "n": {0: struct.pack("<i", -9)},
    "turned": {8: struct.pack("<q", 77)},
    "c": {0: b"c"},
    "last_register": {0: struct.pack("<h", 300)},
    "first_on_stack": {0: struct.pack("<q", -4)},
    "flag": {0: b"\1"},
    "behind": {0: struct.pack("<hb", 4, ord("y")), 4: struct.pack("<i", 5)},
}  # fmt: skip
IN_VECTOR_REGISTERS = {"pair", "number", "turned"}


def gdb_bytes(place: dict[str, Any], size: int) -> str:
    """A command of gdb that prints the bytes at a place."""
    base = place["base"]
    assert base["kind"] == "register"
    name = base["name"]
    value = f"$r{name}" if name.isalpha() else f"${name}"
    if not place["loads"]:
        mask = (1 << 8 * size) - 1
        return f'printf "BYTES %lx\\n", ((unsigned long){value}) & {mask:#x}'
    for load in place["loads"][:-1]:
        value = f"*(unsigned long*)({value}+{load['offset']})"
    start = f"(unsigned char*)({value}+{place['loads'][-1]['offset']})"
    shown = " ".join(["%02x"] * size)
    read = ", ".join([f"*({start}+{at})" for at in range(size)])
    return f'printf "BYTES {shown}\\n", {read}'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("g++")
    if shutil.which("gdb") is None:
        pytest.skip("no gdb: .ci/setup installs it")
    folder = tmp_path_factory.mktemp("parameters")
    (folder / "called.cc").write_text(SOURCE)
    built = ["g++", "-g", "-O1", "-no-pie", "-o", "called", "called.cc"]
    subprocess.run(built, cwd=folder, check=True, timeout=120)
    return folder / "called"


def parameters(program: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["offsets", "--params", "called", "-x", str(program), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    return {row["parameter"]: row["found"][0] for row in document["parameters"]}


def read_by_gdb(program: Path, places: list[tuple[dict[str, Any], int]]) -> list[bytes]:
    script = ["set confirm off", "break *called", "run"]
    script += [gdb_bytes(place, size) for place, size in places] + ["kill", "quit"]
    words = [word for line in script for word in ("-ex", line)]
    ran = subprocess.run(
        ["gdb", "-q", "-nx", "-batch", *words, program], capture_output=True, text=True, timeout=60
    )
    found = re.findall(r"^BYTES (.*)$", ran.stdout, re.MULTILINE)
    assert len(found) == len(places), ran.stdout + ran.stderr
    return [
        bytes.fromhex(line) if place["loads"] else int(line, 16).to_bytes(size, "little")
        for (place, size), line in zip(places, found, strict=True)
    ]


def wrong(program: Path, found: dict[str, Any]) -> list[str]:
    """Parameters of which gdb reads other bytes than the program passes."""
    places = [(piece, piece["size"]) for one in found.values() for piece in one["pieces"]]
    contents = iter(read_by_gdb(program, places))
    names = []
    for name, one in found.items():
        read = {piece["offset"]: next(contents) for piece in one["pieces"]}
        for offset, expected in PASSED[name].items():
            start = max([each for each in read if each <= offset], default=None)
            held = b"" if start is None else read[start][offset - start :]
            if held[: len(expected)] != expected:
                names.append(name)
    return names


def test_the_bytes_are_there(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = parameters(program, capsys)
    assert set(found) == set(PASSED)
    assert wrong(program, found) == []
    assert {name for name, one in found.items() if one["reason"]} == IN_VECTOR_REGISTERS
    for name, one in found.items():
        assert sum(piece["size"] for piece in one["pieces"]) <= one["size"], name


def test_a_wrong_place_is_noticed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = parameters(program, capsys)
    found["n"]["pieces"][0]["base"]["name"] = "ax"
    found["big"]["pieces"][0]["loads"][0]["offset"] += 8
    assert wrong(program, found) == ["big", "n"]


@pytest.mark.parametrize(
    ("binary", "glob"),
    [("c/layouts/bin/gcc-O2-dwarf5", "*"), ("go/dnsforward/bin/go1.27", "main.*"),
     ("go/dnsforward/bin/go1.15", "main.*"), ("cpp/addressbook/bin/g++-O0", "*Contact*")],
)  # fmt: skip
def test_numbers_are_where_their_fetch_args_read(binary: str, glob: str) -> None:
    opened = fetchc.open(CORPUS / binary)
    compared = 0
    for function in opened.spelled(opened.functions(glob)):
        try:
            probe = opened.probe(function)
            found = probe.parameters()
        except CompileError:
            continue
        for each in found:
            try:
                (part,) = probe.compile(each.name).whole.parts
            except (CompileError, ValueError):
                continue  # no name to compile, or more than one fetch-arg
            if part.decode.kind not in ("integer", "bool", "pointer") or len(each.pieces) != 1:
                continue
            if each.type.startswith("chan ") or each.type.endswith("&"):
                continue  # its value is what it refers to, or the number of its elements
            document = value_document(each.pieces[0].value, each.word_bytes)
            assert document == value_document(part.fetch.value, each.word_bytes), each
            compared += 1
    assert compared > 8
