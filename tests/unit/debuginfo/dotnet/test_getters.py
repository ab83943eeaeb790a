"""Properties by the code of their getters: those that are fields, and those that are more."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from tests.support.dotnet import NETCORE31, ahead_of_time, compiled, missing

SOURCE = """
using System.Collections.Generic;
public enum Level : int { Low = -1 }
public struct Place { public int X, Y; public int Across { get { return Y; } } }
public class Node {
    int first = 1; int count; string name; int[] many; List<int> list; Dictionary<int, int> map;
    Place place; Node next; Level level; int minus; byte small; char letter; volatile int moving;
    public int Count { get { return count; } }
    public string Name { get { return name; } set { name = value; } }
    public int Length { get { return name.Length; } }
    public int Many { get { return many.Length; } }
    public int Listed { get { return list.Count; } }
    public int Mapped { get { return map.Count; } }
    public int Y { get { return place.Y; } }
    public int Across { get { return place.Across; } }
    public int NextCount { get { return next.Count; } }
    public int ThenY { get { return next.next.place.Y; } }
    public int Level { get { return (int)level; } }
    public uint Minus { get { return (uint)minus; } }
    public int Small { get { return small; } }
    public IEnumerable<int> Some { get { return list; } }
    public int Moving { get { return moving; } }
    public int Letter { get { return letter; } }
    public long Long { get { return count; } }
    public int Less { get { return count - 1; } }
    public int Next { get { return count++; } }
    public bool Any { get { return count == 0; } }
    public Node Self { get { return this; } }
    public int Fixed { get { return 7; } }
    public int ViaVirtual { get { return Open; } }
    public virtual int Open { get { return count; } }
    public virtual int Shut { get { return count; } }
    public int First() { return first; }
}
public class Below : Node {
    int count;
    public int Own { get { return count; } }
    public sealed override int Shut { get { return count; } }
    public int OfBase { get { return base.Open; } }
}
public sealed class Last : Below { }
public abstract class Without { public abstract int Each { get; } }
public interface IEach { int Each { get; } }
public class Held<T> {
    T held; int n;
    public T Value { get { return held; } }
    public int N { get { return n; } }
}
public class Program { static Held<string> a; static Held<int> b; static void Main() { } }
"""
# The fields by their names, or a part of the reason.
FOUND = {
    "Node": {
        "Count": "count", "Name": "name", "Length": "name.Length", "Many": "many.Length",
        "Listed": "list._size", "Y": "place.Y", "Across": "place.Y", "NextCount": "next.count",
        "ThenY": "next.next.place.Y", "Level": "level", "Minus": "minus", "Small": "small",
        "Some": "list", "Moving": "moving",
    },
    "Below": {"Count": "count", "Own": "count", "Shut": "count", "OfBase": "count"},
    "Last": {"Open": "count", "Shut": "count"},
    "Place": {"Across": "Y"},
    "Held<string>": {"Value": "held", "N": "n"},
}  # fmt: skip
NOT = {
    "Node": {
        **dict.fromkeys(
            ("Letter", "Long", "Less", "Next", "Any", "Self", "Fixed", "ViaVirtual"), "computes"
        ),
        "Open": "virtual",
        "Shut": "virtual",
    },
    "Below": {"Open": "virtual"},
    "Without": {"Each": "each class"},
    "IEach": {"Each": "each class"},
}

# What Mono compiles: an automatic property that one class has anew, and another one hides.
AUTOMATIC = """
public class Base {
    public virtual string Name { get; set; }
    public virtual int Alone { get; set; }
    public string Plain { get; set; }
}
public class First : Base { public override string Name { get; set; } }
public class Second<T> : First { public override string Name { get { return "second"; } } }
public class Hiding : Base { public new virtual int Alone { get; set; } }
public class Program {
    static int Take(Base of, First first, Hiding hiding) { return of.Name.Length; }
    static void Main() { }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> DotnetProgram:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    source = tmp_path_factory.mktemp("getters") / "getters.cs"
    source.write_text(SOURCE)
    return DotnetProgram(str(compiled(source, source.with_suffix(".dll"))), (str(NETCORE31),))


def cases(of: dict[str, dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(kind, name, warnings) for kind, each in of.items() for name, warnings in each.items()]


@pytest.mark.parametrize(("kind", "name", "fields"), cases(FOUND))
def test_a_getter_that_returns_a_field(
    kind: str, name: str, fields: str, program: DotnetProgram
) -> None:
    (found,) = program.types_named(kind, None)
    made = program.dotnet.property_of(found, name)
    assert made is not None
    assert made.why == ""
    assert ".".join(step.name for step in made.path) == fields


@pytest.mark.parametrize(("kind", "name", "why"), cases(NOT))
def test_a_getter_that_does_more(kind: str, name: str, why: str, program: DotnetProgram) -> None:
    (found,) = program.types_named(kind, None)
    made = program.dotnet.property_of(found, name)
    assert made is not None
    assert why in made.why


def offset(program: DotnetProgram, kind: str, name: str) -> int:
    (found,) = program.types_named(kind, None)
    made = program.dotnet.property_of(found, name)
    assert made is not None
    return made.path[-1].offset


def test_a_field_is_that_of_the_class_whose_getter_it_is(program: DotnetProgram) -> None:
    # Both classes have a `count`.
    assert offset(program, "Below", "Count") == offset(program, "Node", "Count")
    assert offset(program, "Below", "OfBase") == offset(program, "Node", "Count")
    assert offset(program, "Below", "Own") > offset(program, "Below", "Count")
    assert offset(program, "Last", "Shut") == offset(program, "Below", "Own")


def test_the_value_is_what_the_getter_returns(program: DotnetProgram) -> None:
    (node,) = program.types_named("Node", None)
    kinds = {}
    for name in ("Level", "Minus", "Small"):
        made = program.dotnet.property_of(node, name)
        assert made is not None
        kinds[name] = str(getattr(program.type(made.path[-1].type), "name", ""))
    assert kinds == {"Level": "int", "Minus": "uint", "Small": "byte"}


def test_what_is_no_property(program: DotnetProgram) -> None:
    (node,) = program.types_named("Node", None)
    assert program.dotnet.property_of(node, "First") is None
    assert program.dotnet.property_of(node, "count") is None


def test_a_field_in_whose_place_others_have_another_one(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    source = tmp_path_factory.mktemp("automatic") / "automatic.cs"
    source.write_text(AUTOMATIC)
    image = ahead_of_time(source, source.with_suffix(".exe"))
    probe = fetchc.open(str(image)).probe("Program.Take", kernel="6.1")

    def notes(expression: str) -> list[str]:
        warnings = probe.compile(expression).warnings
        return [note for one in warnings if one.code == "FC0620" for note in one.notes]

    assert notes("of.Name") == [
        "`First`, `Second` have a `Name` of their own, which is read elsewhere"
    ]
    assert notes("first.Name") == ["`Second` has a `Name` of its own, which is read elsewhere"]
    assert notes("of.Alone") == notes("of.Plain") == notes("hiding.Alone") == []
