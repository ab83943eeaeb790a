"""Library objects of C++ as the tracer shows them: whole strings, vectors, spans, pairs."""

from __future__ import annotations

import json

import pytest

from tests.live.traced import trace
from tests.support.programs import fixture
from tests.support.tracefs import require_uprobes

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
