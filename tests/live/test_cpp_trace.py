"""Library objects of C++ as the tracer shows them: whole strings, vectors, spans, pairs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.live.traced import trace
from tests.support.programs import fixture
from tests.support.toolchains import require
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

OBJECTS = {
    "of.ints": [4, -5, 6],
    "of.contacts": [
        {"firstName": "Ann", "lastName": "Other", "number": "1", "calls": 11},
        {
            "firstName": "Bob",
            "lastName": "A last name that is not small",
            "number": "2",
            "calls": 12,
        },
    ],
    "of.small": "abc",
    "of.view": "a rather long text that is on the heap",
    "of.span": [4, -5, 6],
    "of.row": [7, 8, -9],
    "of.number": -15,
    "of.flag": True,
    "of.pair": {"first": 16, "second": "second"},
}
ADD = "AddressBook::AddContact(std::string&, std::string&, std::string&)"
SHORT = ADD.replace(", ", ",")


@pytest.mark.parametrize("binary", ["g++-O0", "g++-O2", "clang++-O0", "clang++-O2"])
def test_whole_objects(capfd: pytest.CaptureFixture[str], binary: str) -> None:
    require_uprobes()
    path = fixture(f"cpp/addressbook/{binary}")
    done = trace(capfd, *OBJECTS, "-x", path, "-f", "library", "--format", "jsonl", "--", path)
    assert done.args == [OBJECTS] * 3


def test_the_arguments_of_add_contact(capfd: pytest.CaptureFixture[str]) -> None:
    require_uprobes()
    path = fixture("cpp/addressbook/g++-O2")
    wanted = ["firstName", "lastName", "number", "firstName.size()"]
    done = trace(capfd, *wanted, "-x", path, "-f", ADD, "--format", "jsonl", "--", path)
    printed = [json.loads(line.split(" ", 2)[2]) for line in done.program if "AddContact" in line]
    assert done.args == [{text: values[text] for text in wanted} for values in printed]
    assert sum(values["firstName.size()"] for values in done.args) == 3 * 3 + 15 + 16 + 17


def test_the_sizes_of_all_arguments_of_add_contact(capfd: pytest.CaptureFixture[str]) -> None:
    require_uprobes()
    path = fixture("cpp/addressbook/g++-O2")
    names = ["firstName", "lastName", "number"]
    sums = [word for name in names for word in ("--sum", f"{name}.size()")]
    done = trace(capfd, *sums, "-x", path, "-f", ADD, "--format", "jsonl", "--", path)
    printed = [
        json.loads(line.split(" ", 2)[2]) for line in done.program if f"EVENT {SHORT}" in line
    ]
    sizes = {f"{name}.size()": [len(values[name]) for values in printed] for name in names}
    sizes["(all)"] = [size for known in list(sizes.values()) for size in known]
    assert len(printed) == 6
    assert {each["sum"]: (each["count"], each["total"]) for each in done.objects} == {
        name: (len(known), sum(known)) for name, known in sizes.items()
    }


POINTERS = r"""
#include <list>
#include <vector>
struct item { const char *name; int id; };
struct all {
    std::vector<const char *> v; std::list<const char *> l; std::list<int *> n;
    const wchar_t *w[2]; item *items; short many;
};
__attribute__((noipa)) void look(all &a) { asm volatile("" : : "r"(&a) : "memory"); }
int main()
{
    int numbers[] = {70000, -3};
    item items[] = {{"one", 1}, {"two", 2}, {nullptr, 3}};
    all a{{"first", nullptr, (char *)8, "last"}, {"front", "back"}, {numbers, numbers + 1},
          {L"w\u00fc", L"x"}, items, 3};
    look(a);
}
"""
STRINGS: dict[str, Any] = {
    "a.v": ["first", None, None, "last"],
    "a.v[1:4]": [None, None, "last"],
    "a.w": ["w\u00fc", "x"],
    "a.l.front()": "front",
    "*a.n.front()": 70000,
    "a.items[1:a.many]": [{"name": "two", "id": 2}, {"name": None, "id": 3}],
}
WALKED: dict[str, Any] = {
    "a.l[:]": ["front", "back"],
    "*a.n[:]": [70000, -3],
    "list(a.v)": ["first", None, None, "last"],
    "list(a.items[1:a.many]).name": ["two", None],
}


@pytest.mark.parametrize("engine", ["tracefs", "bpf"])
def test_pointers_to_strings(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, engine: str
) -> None:
    require("g++")
    require_bpf() if engine == "bpf" else require_uprobes()
    program, source = tmp_path / "pointers", tmp_path / "pointers.cc"
    source.write_text(POINTERS)
    subprocess.run(["g++", "-g", "-O1", "-o", program, source], check=True)
    wanted = STRINGS | (WALKED if engine == "bpf" else {})
    where: list[str | Path] = [
        "-x",
        program,
        "-f",
        "look",
        "--engine",
        engine,
        "--format",
        "jsonl",
        "--",
        program,
    ]
    (one,) = trace(capfd, *wanted, *where).objects
    assert one["args"] == wanted
    assert sorted(one["faults"]) == sorted(
        ["a.v[2]", "a.v[1:4][1]", *(["list(a.v)[2]"] if engine == "bpf" else [])]
    )
