"""Whether a class is passed by reference: what gcc's classes declare against what clang states."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program.types import StructType
from tests.support.toolchains import require

CLASSES = """
struct Plain { int a; long b; };
struct CopyUser { int a; CopyUser(); CopyUser(const CopyUser &); };
struct CopyDefault { int a; CopyDefault() = default; CopyDefault(const CopyDefault &) = default; };
struct CopyDefaultOut { int a; CopyDefaultOut(); CopyDefaultOut(const CopyDefaultOut &); };
inline CopyDefaultOut::CopyDefaultOut() = default;
inline CopyDefaultOut::CopyDefaultOut(const CopyDefaultOut &) = default;
struct DtorUser { int a; ~DtorUser(); };
struct DtorDefault { int a; ~DtorDefault() = default; };
struct MoveOnly {
    int a; MoveOnly() = default; MoveOnly(const MoveOnly &) = delete;
    MoveOnly(MoveOnly &&) = default;
};
struct MoveUser {
    int a; MoveUser() = default; MoveUser(const MoveUser &) = default; MoveUser(MoveUser &&);
};
struct Virtual { int a; virtual void f(); };
inline void Virtual::f() {}
struct VirtualBase : virtual Plain { int c; };
struct Holds { CopyUser x; };
struct HoldsArray { DtorUser x[2]; };
struct HoldsConst { const Plain p; };
struct Derived : DtorUser { int z; };
struct DerivedPlain : Plain { char z; };
struct Assign { int a; Assign &operator=(const Assign &); };
struct Templated { int a; Templated() = default; template <class T> Templated(T &&t) : a(t) {} };
struct Empty {};
struct FromAnother { int a; FromAnother(Plain &p) : a(p.a) {} FromAnother(int) : a(0) {} };
union Either { int a; float f; };
struct Static { static CopyUser s; int a; };
struct Bits { unsigned b : 5; };
struct Referring { int &r; CopyUser *p; };
struct OddCopy { int a; OddCopy() = default; OddCopy(const OddCopy &, int k = 0); };
struct AllDeleted {
    int a; AllDeleted() = default; AllDeleted(const AllDeleted &) = delete;
    AllDeleted(AllDeleted &&) = delete;
};
namespace ns { template <class T> struct Box { T held; Box(const Box &) = default; ~Box(); }; }
struct Boxed { ns::Box<int> box; };
struct Nested { struct Inner { ~Inner() {} } inner; };
struct Nameless { union { int a; float b; }; struct { int x; } s; };
struct NamelessHolds { struct { CopyUser x; } s; };
inline int seven = 7;
inline CopyUser &copied() { return *(CopyUser *)&seven; }
inline auto of_nothing = [](int n) { return n; };
inline auto of_number = [x = seven](int n) { return n + x; };
inline auto of_reference = [&r = copied()](int n) { return n + r.a; };
inline auto of_copy = [c = copied()](int n) { return n + c.a; };
inline auto of_moved = [m = MoveOnly()](int n) { return n + m.a; };
inline auto of_closure = [f = of_number](auto n) { return f(n); };
inline int use_closure = of_closure(1);
struct ClosureOfNothing { decltype(of_nothing) f; };
struct ClosureOfNumber { decltype(of_number) f; };
struct ClosureOfReference { decltype(of_reference) f; };
struct ClosureOfCopy { decltype(of_copy) f; };
struct ClosureOfMoved { decltype(of_moved) f; };
struct ClosureOfClosure { decltype(of_closure) f; };
"""
NAMES = [
    "Plain CopyUser CopyDefault CopyDefaultOut DtorUser DtorDefault MoveOnly MoveUser Virtual",
    "VirtualBase Holds HoldsArray HoldsConst Derived DerivedPlain Assign Templated Empty",
    "FromAnother Either Static Bits Referring OddCopy AllDeleted Boxed Nested",
    "Nameless NamelessHolds ClosureOfNothing ClosureOfNumber ClosureOfReference ClosureOfCopy",
    "ClosureOfMoved ClosureOfClosure",
]
OWN = " ".join(NAMES).split()
UNSAID = {"OddCopy", "AllDeleted"}  # refused rather than guessed
LIBRARY = """
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
struct Library {
    std::string a; std::vector<int> b; std::unique_ptr<int> c; std::shared_ptr<int> d;
    std::map<int, std::string> e; std::unordered_map<int, int> f; std::deque<int> g;
    std::optional<int> h; std::optional<std::string> i; std::pair<int, char> j;
    std::tuple<int, std::string> k; std::string_view l; std::array<int, 3> m;
    std::function<int(int)> n; std::variant<int, float> o; std::weak_ptr<int> p;
    std::vector<int>::iterator q; std::map<int, std::string>::iterator r; std::tuple<int, int> s;
    std::reference_wrapper<int> t{x}; static int x;
};
inline int library(Library *of) { return of->b.size() + of->e.size(); }
"""
USES = "".join(f"int take_{name}({name} *p) {{ return sizeof *p; }}\n" for name in OWN)
SOURCE = (
    LIBRARY
    + CLASSES
    + USES
    + "void *made() { return new VirtualBase; }\nint main() { return library((Library *)0); }\n"
)


def built(where: Path, compiler: str, *flags: str) -> DwarfProgram:
    require(compiler)
    (where / "classes.cc").write_text(SOURCE)
    made = where / f"{compiler}{''.join(flags)}"
    command = [compiler, "-w", "-c", "-std=c++17", "-g", *flags, "classes.cc", "-o", "classes.o"]
    subprocess.run(command, cwd=where, check=True, timeout=120)
    subprocess.run(
        [compiler, "-Wl,--unresolved-symbols=ignore-all", "classes.o", "-o", made],
        cwd=where,
        check=True,
        timeout=120,
    )
    return DwarfProgram(str(made))


def answers(program: DwarfProgram) -> Iterator[tuple[str, bool | None, bool | None]]:
    """Each class of the program: its name, what the compiler states, what the class declares."""
    for name in program.type_names():
        for type_id in program.types_named(name, None):
            made = program.type(type_id)
            if isinstance(made, StructType):
                yield name, made.by_reference, program.cpp.passed_by_reference(type_id)


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    program = built(tmp_path_factory.mktemp("clang"), "clang++", "-gdwarf-5", "-fstandalone-debug")
    found = {name: said for name, said, _ in answers(program) if said is not None}
    assert len(found) > 100
    return found


@pytest.mark.parametrize("flags", [("-gdwarf-4",), ("-gdwarf-5",), ("-gdwarf-5", "-O2")])
def test_what_gcc_declares_is_what_clang_states(
    flags: tuple[str, ...], stated: dict[str, bool], tmp_path: Path
) -> None:
    compared = {}
    for name, said, derived in answers(built(tmp_path, "g++", *flags)):
        assert said is None
        if name in stated:
            compared[name] = (derived, stated[name])
    assert set(OWN) <= set(compared)
    assert len(compared) > 100
    wrong = {name: both for name, both in compared.items() if both[0] not in (None, both[1])}
    assert wrong == {}
    unsaid = {name for name, both in compared.items() if both[0] is None}
    assert unsaid & set(OWN) == UNSAID
    assert len(unsaid) < len(compared) / 20, unsaid


def test_an_older_gcc_does_not_tell_what_is_defaulted(tmp_path: Path) -> None:
    program = built(tmp_path, "g++", "-gdwarf-4", "-gstrict-dwarf")
    known = {name: derived for name, _, derived in answers(program) if name in OWN}
    assert known["Plain"] is False
    assert known["Virtual"] is True
    assert known["CopyDefault"] is None
    assert known["DtorUser"] is None


def test_what_clang_states_is_taken(stated: dict[str, bool]) -> None:
    assert (stated["Plain"], stated["CopyUser"]) == (False, True)
