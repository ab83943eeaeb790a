"""Names made from expressions, functions and paths."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.emit.probe_definition import argument_name, event_name, group_name, is_identifier
from fetchc.target.kernel_versions import kernel

KERNEL = kernel("6.18")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("r->Question[0].Name", "r_Question_0_Name"),
        ("len(r.Question)", "len_r_Question"),
        ("*p", "p"),
        ("p[-1]", "p_1"),
        ("(struct sk_buff *)p->next", "struct_sk_buff_p_next"),
        ("$retval", "retval"),
        ("%di", "di"),
        ("0x10", "_0x10"),
        ("\u03c0", "value"),
        ("_", "value"),
        ("", "value"),
        ("arg1", "arg1_"),
        ("$comm", "comm_"),
        ("common_pid", "common_pid_"),
        ("first->second->third->fourth->fifths", "second_third_fourth_fifths"),
        ("a" * 40, "a" * 31),
    ],
)
def test_arguments(expression: str, name: str) -> None:
    assert argument_name(expression, KERNEL) == name


def test_arguments_differ() -> None:
    taken: list[str] = []
    for _ in range(12):
        taken.append(argument_name("n" * 31, KERNEL, taken))
    assert len(set(taken)) == 12
    assert taken[1] == "n" * 29 + "_2"
    assert {len(name) for name in taken} == {31}


class Counted(set[str]):
    """Names, with how often one was looked for."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def test_a_free_name_behind_many_is_found_soon() -> None:
    taken = Counted(["n", *(f"n_{number}" for number in range(2, 100_000))])
    assert argument_name("n", KERNEL, taken) == "n_100000"
    assert taken.asked < 50


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("main.(*server).handleRequest", "handleRequest"),
        ("github.com/miekg/dns.(*Msg).Unpack", "Unpack"),
        ("net/http.(*conn).serve", "serve"),
        ("main.main.func1", "main_func1"),
        ("main.main.func1.2", "main_func1_2"),
        ("main.glob..func1", "glob_func1"),
        ("main.init.0", "init_0"),
        ("main.Map[int,string]", "Map"),
        ("main.Map[go.shape.int].func1", "Map_func1"),
        ("main.(*T).Get-fm", "Get_fm"),
        ("ns::Cls<int>::method<a::b>(int, char const*)", "method"),
        ("void ns::f<int>(int)", "f"),
        ("(anonymous namespace)::fn(int)", "fn"),
        ("Foo::~Foo()", "Foo"),
        ("Foo::operator int()", "operator_int"),
        ("std::vector<int>::operator[](unsigned long)", "operator"),
        ("do_work.constprop.0", "do_work_constprop_0"),
        ("System.Collections.Generic.List`1[System.Int32]::Add", "Add"),
        ("_IO_new_fclose", "_IO_new_fclose"),
        ("rec", "rec_"),
        ("enable", "enable_"),
        ("main.(*gate).filter", "filter_"),
        ("r1", "r1_"),
        ("record", "record"),
        ("\u03bb", "probe"),
        ("", "probe"),
        ("x" * 100, "x" * 63),
    ],
)
def test_events(function: str, name: str) -> None:
    assert event_name(function) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/local/bin/dnsforward", "fetchc_dnsforward"),
        ("/lib/x86_64-linux-gnu/libc.so.6", "fetchc_libc_so_6"),
        ("/a/my prog#1", "fetchc_my_prog_1"),
        ("/proc/1/exe", "fetchc_exe"),
        ("/\udce9", "fetchc_"),
        ("/" + "x" * 200, "fetchc_" + "x" * 56),
    ],
)
def test_groups(path: str, name: str) -> None:
    assert group_name(path) == name


@given(st.text(), st.sets(st.text(alphabet="ab_2", max_size=4)))
def test_any_text_gives_a_name(text: str, taken: set[str]) -> None:
    name = argument_name(text, KERNEL, taken)
    assert is_identifier(name)
    assert len(name) <= 31
    assert name not in taken
    assert name not in KERNEL.reserved_names
    assert not re.fullmatch("arg[0-9]+", name)
    event = event_name(text, taken)
    assert is_identifier(event)
    assert len(event) <= 63
    assert event not in taken
    assert not re.fullmatch("r[0-9a-f]+", event)
    assert is_identifier(group_name(text))
