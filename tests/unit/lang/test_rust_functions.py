"""Names of Rust's functions: symbols of both schemes, and what people write for them."""

from __future__ import annotations

import pytest

from fetchc.lang.rust_function_names import meant, of_type, without_arguments
from fetchc.program.demangle import demangled, is_mangled
from fetchc.program.demangle_rust import is_rust, rust_name

GET_16 = "_RNvMNtCsk6fxyIaUQKP_3all4deepINtB2_5ThingtE3getB4_"
GET_64 = "_RNvMNtCsk6fxyIaUQKP_3all4deepINtB2_5ThingyE3getB4_"
POINT_WALK = "_RNvXs_NtCsk6fxyIaUQKP_3all4deepNtB6_5PointNtB4_4Walk4walk"
THING_WALK = "_RNvXs0_NtCsk6fxyIaUQKP_3all4deepINtB5_5ThinghENtB5_4Walk4walkB7_"
GENERIC = "_RINvNtCsk6fxyIaUQKP_3all4deep7genericmEB4_"
GENERIC_TEXT = "_RINvNtCsk6fxyIaUQKP_3all4deep7genericReEB4_"
CLOSURE = "_RNCNvCsk6fxyIaUQKP_3all4main0B3_"
OLD_RUN = "_ZN3all3run17haeb82683ea8b7fceE"
OLD_GET = "_ZN3all4deep14Thing$LT$T$GT$3get17h7ae24d37eba1ef4fE"
OLD_WALK = "_ZN46_$LT$all..Point$u20$as$u20$all..deep..Walk$GT$4walk17h17844477bce48e3eE"
OLD_CLOSURE = "_ZN3all4main28_$u7b$$u7b$closure$u7d$$u7d$17h415b8bd2c32bc819E"
ALL = [GET_16, GET_64, POINT_WALK, THING_WALK, GENERIC, GENERIC_TEXT, CLOSURE]
OLD = [OLD_RUN, OLD_GET, OLD_WALK, OLD_CLOSURE]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (OLD_RUN, "all::run"),
        (OLD_GET, "all::deep::Thing<T>::get"),
        (OLD_WALK, "<all::Point as all::deep::Walk>::walk"),
        (OLD_CLOSURE, "all::main::{{closure}}"),
        (OLD_RUN + ".llvm.1234", "all::run"),
        (GET_16, "all::deep::Thing<u16>::get"),
        (POINT_WALK, "<all::Point as all::deep::Walk>::walk"),
        (THING_WALK, "<all::deep::Thing<u8> as all::deep::Walk>::walk"),
        (GENERIC, "all::deep::generic::<u32>"),
        (GENERIC_TEXT, "all::deep::generic::<&str>"),
        (CLOSURE, "all::main::{closure#0}"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_RNvNtCs1234_7mycrate3foo3barNvCs1_4main", "mycrate::foo::bar"),
        ("_RIC3fooDG_NtC3foo1TEL_E", "foo::<dyn foo::T>"),
        ("_RIC3fooDINtC3foo1TpEp4ItemmEL_E", "foo::<dyn foo::T<_, Item = u32>>"),
        ("_RINvC3foo1fAtj8_E", "foo::f::<[u16; 8]>"),
        ("_RINvC3foo1fFUKCmEuE", 'foo::f::<unsafe extern "C" fn(u32)>'),
        ("_RINvC3foo1fTtmEKb1_KlnffE", None),
        ("_RINvC3foo1fTtmEKb1_Klnff_E", "foo::f::<(u16, u32), true, -255>"),
        ("_RNvC1au8gdel_5qa", "a::gödel"),
        ("_RNvYmNtC1a1T1f", "<u32 as a::T>::f"),
        ("_RNvC1a", None),
        ("_RNvB0_1f", None),
        ("_R", None),
        ("_RNvC9a", None),
        ("_ZN3all17h0123456789abcdefE", "all"),
        ("_ZN9all17h0123456789abcdefE", None),
    ],
)
def test_a_symbol_is_the_name_of_the_source(symbol: str, name: str | None) -> None:
    assert rust_name(symbol) == name


@pytest.mark.parametrize("symbol", ["_R" + "B" * 3000, "_R" + "R" * 3000, "_R" + "NvC" * 2000])
def test_a_hostile_name_is_none(symbol: str) -> None:
    assert rust_name(symbol) is None


@pytest.mark.parametrize(("count", "name"), [(3, "a::{}::<_>"), (2000, None)])
def test_constants_that_refer_to_constants_have_an_end(count: int, name: str | None) -> None:
    # Within an identifier stands `p`, which is one, and then references to what is in front.
    start = 6 + len(str(6 * count))
    inside = "pqqqqq"
    for number in range(count - 1):
        inside += f"B{_in_base_62(start + 6 * number)}".ljust(6, "q")
    symbol = f"_RINvC1a{len(inside)}{inside}KB{_in_base_62(start + 6 * (count - 1))}E"
    assert rust_name(symbol) == (None if name is None else name.format(inside))


def _in_base_62(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    written, left = "_", number - 1
    while left >= 62:
        left, digit = divmod(left, 62)
        written = digits[digit] + written
    return digits[left] + written


def test_what_is_no_name_of_rust() -> None:
    assert not is_rust("_ZN3all3runEv")
    assert not is_rust("main")
    assert not is_rust("_R_reserved")
    assert is_mangled(GET_16)
    assert demangled(GET_16) == "all::deep::Thing<u16>::get"
    assert demangled(OLD_RUN) == "all::run"
    assert demangled("_RNvC9a") is None


@pytest.mark.parametrize(
    ("wanted", "symbols"),
    [
        ("all::deep::Thing<u16>::get", [GET_16]),
        ("<all::deep::Thing<u16>>::get", [GET_16]),
        ("Thing::get", [GET_16, GET_64]),
        ("deep::Thing<u64>::get", [GET_64]),
        ("Point::walk", [POINT_WALK]),
        ("<Point as Walk>::walk", [POINT_WALK]),
        ("<all::Point as all::deep::Walk>::walk", [POINT_WALK]),
        ("<Point as Talk>::walk", []),
        ("Walk::walk", [THING_WALK, POINT_WALK]),
        ("generic::<u32>", [GENERIC]),
        ("all::deep::generic<&str>", [GENERIC_TEXT]),
        ("generic", [GENERIC_TEXT, GENERIC]),
        ("main::{closure#0}", [CLOSURE]),
        ("main::{{closure}}", [CLOSURE]),
        ("et", []),
        ("", []),
    ],
)
def test_a_name_means_functions(wanted: str, symbols: list[str]) -> None:
    assert sorted(meant(wanted, ALL)) == sorted(symbols)


def test_names_of_the_legacy_scheme() -> None:
    assert meant("run", OLD) == [OLD_RUN]
    assert meant("Thing<T>::get", OLD) == [OLD_GET]
    assert meant("Thing::get", OLD) == [OLD_GET]
    assert meant("Thing<u16>::get", OLD) == []
    assert meant("<all::Point as Walk>::walk", OLD) == [OLD_WALK]
    assert meant("main::{{closure}}", OLD) == [OLD_CLOSURE]


def test_the_receiver_tells_instances_of_the_legacy_scheme_apart() -> None:
    assert without_arguments("all::deep::Thing<u16>::get") == "all::deep::Thing::get"
    assert of_type("Thing<u16>::get", "&all::deep::Thing<u16>")
    assert of_type("Thing<u16>::get", "&mut all::deep::Thing<u16>")
    assert not of_type("Thing<u16>::get", "&all::deep::Thing<u64>")
    assert not of_type("get", "&all::deep::Thing<u64>")
