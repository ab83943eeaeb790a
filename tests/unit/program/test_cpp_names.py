"""Names of C++ types as people and compilers write them: equal where they mean one type."""

from __future__ import annotations

import pytest

from fetchc.program.cpp_names import canonical, is_instance, spelling_key

TEXT = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("std::vector<int, std::allocator<int> >", "std::vector<int>"),
        (
            f"std::map<int, {TEXT}, std::less<int>, "
            f"std::allocator<std::pair<int const, {TEXT} > > >",
            "std::map<int,std::string>",
        ),
        (
            "std::unordered_map<const char *, F, std::hash<const char *>, "
            "std::equal_to<const char *>, std::allocator<std::pair<const char *const, F> > >",
            "std::unordered_map<char const*,F>",
        ),
        ("std::unique_ptr<int [], std::default_delete<int []> >", "std::unique_ptr<int[]>"),
        # Not what the standard has there, or not there.
        (
            "std::map<int, F, std::less<void>, std::allocator<std::pair<int const, F> > >",
            "std::map<int,F,std::less<void>>",
        ),
        ("Pool<std::allocator<char> >", "Pool<std::allocator<char>>"),
        (
            "std::_Head_base<1, std::default_delete<F>, true>",
            "std::_Head_base<1,std::default_delete<F>,true>",
        ),
        ("std::tuple<F *, std::default_delete<F> >", "std::tuple<F*,std::default_delete<F>>"),
    ],
)
def test_arguments_that_are_seldom_written(text: str, wanted: str) -> None:
    assert canonical(text) == wanted


def test_instances_that_differ_in_an_allocator_alone_are_two() -> None:
    assert is_instance("Pool<std::allocator<char> >", "Pool<std::allocator<double>>") == 0
    assert is_instance("Pool<std::allocator<char> >", "Pool<std::allocator<char>>") == 2


@pytest.mark.parametrize(
    ("gcc", "clang"),
    [
        ("long int", "long"),
        ("long unsigned int [4]", "unsigned long[4]"),
        ("const volatile int", "volatile const int"),
        ("std::pair<int const, F>", "std::pair<const int, F>"),
        (f"std::optional<{TEXT} >", "std::optional<std::__cxx11::basic_string<char> >"),
    ],
)
def test_spellings_of_one_type(gcc: str, clang: str) -> None:
    assert spelling_key(gcc) == spelling_key(clang)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("struct s", "s"),
        ("long int", "int"),
        ("std::vector<int>", "std::__1::vector<int>"),
        ("char const*", "char*"),
        ("[]uint8", "[]int8"),
        ("*const u8", "*mut u8"),
    ],
)
def test_unlike_types(one: str, other: str) -> None:
    assert spelling_key(one) != spelling_key(other)
