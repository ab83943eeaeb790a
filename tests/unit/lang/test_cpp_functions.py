"""Names of C++ functions as people write them, against the names that compilers make."""

from __future__ import annotations

import pytest

from fetchc.lang.cpp_function_names import meant, names, parts, shortened
from fetchc.program.demangle import demangled

ADD = "_ZN11AddressBook10AddContactERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi"
ADD_THREE = (
    "_ZN11AddressBook10AddContactERNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES6_S6_"
)
SYMBOLS = [
    ADD,
    ADD_THREE,
    "_ZN11AddressBookC1Ev",
    "_ZN11AddressBookD1Ev",
    "_ZNK11AddressBook5TotalIdEET_S1_",
    "_ZNK11AddressBook5TotalIiEET_S1_",
    "_ZN2ns12_GLOBAL__N_16hiddenEi",
    "_ZN2ns1SclEi",  # ns::S::operator()(int)
    "_ZN2ns1ScvmEv",  # ns::S::operator unsigned long()
    "_ZlsRSoRK11AddressBook",  # operator<<(std::ostream&, AddressBook const&)
    "_ZN5other10AddContactEi",
    "_Z4applyPFiPKcES0_",  # apply(int (*)(char const*), char const*)
    "_Z3mapSt3mapIiSt6vectorIlSaIlEESt4lessIiESaISt4pairIKiS2_EEE",
    "_ZN11AddressBook10AddContactEi.constprop.0",
    "_ZNK4ConvcvNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEv",
    "_ZN4TmplIiLi4ELb1EE4convIdEET_S2_",  # double Tmpl<int, 4, true>::conv<double>(double)
    "_ZN4TmplIiLi5ELb1EE4convIdEET_S2_",
    "_ZThn16_N7DiamondD0Ev",  # non-virtual thunk to Diamond::~Diamond()
    "_ZN7DiamondD0Ev",
    "_Z5aloneIZ4mainEUliE_EiT_.isra.0",
    "_Z5alonei.cold",
    "_ZZN5Maker4makeEiRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEENKUliE_clEi",
    "_ZN5Table2atEi",
    "_ZNK5Table2atEi",
    "_ZNKR5Table3rowEv",  # Table::row() const &
    "_ZNO5Table3rowEv",  # Table::row() &&
    "_ZNR5Table3rowEv",  # Table::row() &
    "_ZNK5Table4sizeEv",
    "main",
]


@pytest.mark.parametrize(
    ("wanted", "symbols"),
    [
        ("AddressBook::AddContact", [ADD, ADD_THREE]),
        ("AddressBook::AddContact(std::string const&, int)", [ADD]),
        ("AddressBook::AddContact(const std::string &,int)", [ADD]),
        ("AddContact(std::string&, std::string&, std::string&)", [ADD_THREE]),
        ("AddContact(int)", ["_ZN5other10AddContactEi"]),
        ("AddressBook::AddContact(std::string, int)", []),
        ("AddressBook::AddContact()", []),
        ("AddressBook::AddressBook()", ["_ZN11AddressBookC1Ev"]),
        ("AddressBook::~AddressBook", ["_ZN11AddressBookD1Ev"]),
        ("Total<int>", ["_ZNK11AddressBook5TotalIiEET_S1_"]),
        ("Total", ["_ZNK11AddressBook5TotalIdEET_S1_", "_ZNK11AddressBook5TotalIiEET_S1_"]),
        ("AddressBook::Total(double)", ["_ZNK11AddressBook5TotalIdEET_S1_"]),
        ("ns::hidden", ["_ZN2ns12_GLOBAL__N_16hiddenEi"]),
        ("ns::(anonymous namespace)::hidden(int)", ["_ZN2ns12_GLOBAL__N_16hiddenEi"]),
        ("ns::S::operator()", ["_ZN2ns1SclEi"]),
        ("S::operator()(int)", ["_ZN2ns1SclEi"]),
        ("ns::S::operator unsigned long", ["_ZN2ns1ScvmEv"]),
        ("operator<<(std::ostream&, const AddressBook&)", ["_ZlsRSoRK11AddressBook"]),
        ("map(std::map<int, std::vector<long>>)", [SYMBOLS[12]]),
        ("map(std::map<int, std::vector<int>>)", []),
        ("Conv::operator std::string", [SYMBOLS[14]]),
        ("Conv::operator std::string() const", [SYMBOLS[14]]),
        ("Conv::operator std::wstring", []),
        ("Tmpl<int>::conv<double>", [SYMBOLS[15], SYMBOLS[16]]),
        ("Tmpl<int, 5>::conv", [SYMBOLS[16]]),
        ("Tmpl<int, 4, true>::conv", [SYMBOLS[15]]),
        ("Tmpl<long>::conv", []),
        ("Diamond::~Diamond", ["_ZN7DiamondD0Ev"]),
        ("non-virtual thunk to Diamond::~Diamond()", ["_ZThn16_N7DiamondD0Ev"]),
        ("alone", ["_Z5aloneIZ4mainEUliE_EiT_.isra.0"]),
        ("Maker::make::{lambda(int)#1}::operator()", [SYMBOLS[21]]),
        ("make::{lambda(int)#1}::operator()(int)", [SYMBOLS[21]]),
        ("Other::make::{lambda(int)#1}::operator()", []),
        ("alone(int) [clone .cold]", ["_Z5alonei.cold"]),
        ("AddressBook::AddContact [clone .constprop.0]", [SYMBOLS[13]]),
        ("AddressBook::AddContact [clone .isra.0]", []),
        ("Book::AddContact", []),
        ("Table::at", ["_ZN5Table2atEi", "_ZNK5Table2atEi"]),
        ("Table::at(int) const", ["_ZNK5Table2atEi"]),
        ("Table::at(int)", ["_ZN5Table2atEi"]),
        ("Table::row() const&", ["_ZNKR5Table3rowEv"]),
        ("Table::row()&&", ["_ZNO5Table3rowEv"]),
        ("Table::row() &", ["_ZNR5Table3rowEv"]),
        ("Table::size()", ["_ZNK5Table4sizeEv"]),
        ("Table::size() const noexcept", ["_ZNK5Table4sizeEv"]),
        ("contact", []),
        ("main", []),
    ],
)
def test_what_a_name_stands_for(wanted: str, symbols: list[str]) -> None:
    assert meant(wanted, SYMBOLS) == sorted(symbols)


@pytest.mark.parametrize("symbol", [each for each in SYMBOLS if each.startswith("_Z")])
def test_the_whole_name_and_the_short_one_lead_back(symbol: str) -> None:
    shown = demangled(symbol)
    assert shown is not None
    assert symbol in meant(shown, SYMBOLS)
    assert symbol in meant(shortened(shown), SYMBOLS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("void ns::f<int>(int) const", ("ns::f<int>", "int", " const")),
        ("ns::S::operator()(int)", ("ns::S::operator()", "int", "")),
        ("ns::S::operator()", ("ns::S::operator()", None, "")),
        ("S::operator unsigned long() const", ("S::operator unsigned long", "", " const")),
        ("std::vector<int> h<int>(int (*)(char))", ("h<int>", "int (*)(char)", "")),
        ("f(int) [clone .cold]", ("f", "int", " [clone .cold]")),
        ("(anonymous namespace)::f(int)", ("(anonymous namespace)::f", "int", "")),
        ("f", ("f", None, "")),
    ],
)
def test_parts(text: str, expected: tuple[str, str | None, str]) -> None:
    assert parts(text) == expected


def test_what_compilers_add_keeps_its_mark() -> None:
    shown = demangled("_ZThn16_N7DiamondD0Ev")
    assert shown is not None
    assert shortened(shown) == "non-virtual thunk to Diamond::~Diamond()"


def test_short_names() -> None:
    shown = demangled(ADD)
    assert shown is not None
    assert shortened(shown) == "AddressBook::AddContact(std::string const&, int)"
    within = "(anonymous namespace)::f((anonymous namespace)::Anon*, int)"
    assert shortened(within) == within


@pytest.mark.parametrize("name", ["main", "", "_Z", "_ZZZZ", "_Z\0f", "_Z3fo", "_Zé", "\udcff"])
def test_what_is_no_name_of_cpp_stays_unread(name: str) -> None:
    assert demangled(name) is None
    assert meant(name, ["main", name]) == []


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z4concITk3NumiTk3NumlEDaT_T0_", "conc<int, long>(int, long)"),
        ("_Z1dITkSt8integraliEiT_", "d<int>(int)"),
        ("_Z4TkfnITk3NumiEiT_", None),  # the letters of a name: nothing is cut out of it
        ("_Z1aITk99999999999PiEiT_", None),
    ],
)
def test_concepts_of_parameters_are_left_out(symbol: str, name: str | None) -> None:
    # As clang 18 and later write them. Runtimes that know concepts may write them.
    found = demangled(symbol)
    if name is None:
        assert found is None or "Tkfn<" in found
    else:
        assert found is not None
        assert found.endswith(name) or "Num" in found or "integral" in found


def test_a_symbol_that_names_a_type_is_spelled_whole() -> None:
    assert names("typeinfo for A (int)") == ("typeinfo for A (int)",) * 2
