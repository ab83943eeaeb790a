"""Types of C++'s library as people write them, in any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fetchc
from fetchc.cli import main
from fetchc.program.cpp_names import canonical, short_types
from tests.support.programs import fixture

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        (STRING, "std::string"),
        (f"const {STRING} &", "const std::string &"),
        ("std::vector<int, std::allocator<int> >::iterator", "std::vector<int>::iterator"),
        (
            f"std::map<{STRING}, Order, std::less<{STRING} >, "
            f"std::allocator<std::pair<const {STRING}, Order> > >",
            "std::map<std::string, Order>",
        ),
        (
            "std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, "
            "std::allocator<std::pair<int const, int> > >",
            "std::unordered_map<int, int>",
        ),
        ("std::__1::vector<int, std::__1::allocator<int>>", "std::vector<int>"),
        ("std::vector<int, Pool<int> >", "std::vector<int, Pool<int> >"),
        ("std::map<int, int, std::greater<int> >", "std::map<int, int, std::greater<int>>"),
        ("`Box<std::vector<int, std::allocator<int> > >` of 24", "`Box<std::vector<int> >` of 24"),
        ("no std:: at all, std::size_t, a < b", "no std:: at all, std::size_t, a < b"),
        ("cut off: std::vector<int, std::all", "cut off: std::vector<int, std::all"),
        ("std::array<char, 3ul>", "std::array<char, 3ul>"),
    ],
)
def test_short(whole: str, short: str) -> None:
    found = short_types(whole)
    assert found.replace("> >", ">>") == short.replace("> >", ">>")
    assert short_types(found) == found


@given(st.text("std::vec<>,' abc()*", max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    assert short_types(text).count("abc") <= text.count("abc")


@pytest.mark.parametrize("name", ["cpp/addressbook/g++-O2", "cpp/addressbook/clang++-O0"])
def test_short_names_mean_the_same_type(name: str) -> None:
    program = fetchc.open(fixture(name))
    types = [one for one in program.types() if one.startswith("std::") and "<" in one]
    assert len(types) > 10
    for each in types:
        assert canonical(short_types(each)) == canonical(each), each


def test_all_of_it_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["types", "AddressBook", "-x", str(fixture("cpp/addressbook/g++-O2"))]
    assert main(words) == 0
    assert "std::allocator" not in capsys.readouterr().out
    assert main([*words, "--full-types"]) == 0
    assert "std::allocator" in capsys.readouterr().out
