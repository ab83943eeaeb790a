"""Programs of C# types that Hypothesis draws: classes, structures, generic ones, enumerations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

__all__ = ["Source", "sources"]

NUMBERS = {
    "bool": 1, "byte": 1, "sbyte": 1, "char": 2, "short": 2, "ushort": 2, "int": 4, "uint": 4,
    "long": 8, "ulong": 8, "float": 4, "double": 8,
}  # fmt: skip
LIBRARY = (
    "decimal", "IntPtr", "DateTime", "TimeSpan", "Guid", "DateTimeOffset", "int?", "long?", "byte?",
    "DateTime?", "Guid?", "KeyValuePair<byte, long>", "KeyValuePair<string, byte>",
)  # fmt: skip
REFERENCES = ("string", "object", "int[]", "Action", "List<int>")
UNDER = ("byte", "sbyte", "short", "ushort", "int", "uint", "long", "ulong")
HEAD = """using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
#pragma warning disable 169, 649, 414
"""
INLINE = """namespace System.Runtime.CompilerServices {
    [AttributeUsage(AttributeTargets.Struct)]
    public sealed class InlineArrayAttribute : Attribute {
        public InlineArrayAttribute(int length) {}
    }
}
"""


@dataclass
class Source:
    """The text of an assembly, and how many types its class ``Asked`` asks for."""

    text: str
    asked: int


@dataclass
class _Drawn:
    """What was declared so far, by kind, for later declarations to use."""

    text: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    generic: list[tuple[str, int]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@st.composite
def sources(draw: Callable[..., object], least: int = 20, most: int = 40) -> Source:
    """An assembly of ``least`` to ``most`` declarations."""
    one = _Drawing(draw)
    for number in range(one.number(least, most)):
        one.declare(number)
    drawn = one.drawn
    fields = [f"    public {kind} f{at};" for at, kind in enumerate(dict.fromkeys(drawn.asked))]
    asked = ["public class Asked {", *fields, "}"]
    return Source("\n".join([HEAD + INLINE, *drawn.text, *asked, ""]), len(fields))


class _Drawing:
    def __init__(self, draw: Callable[..., object]) -> None:
        self._draw = draw
        self.drawn = _Drawn()

    def number(self, low: int, high: int) -> int:
        made = self._draw(st.integers(low, high))
        assert isinstance(made, int)
        return made

    def one_of(self, listed: tuple[str, ...] | list[str]) -> str:
        made = self._draw(st.sampled_from(listed))
        assert isinstance(made, str)
        return made

    def declare(self, number: int) -> None:
        kinds = ("class", "struct", "explicit", "enum", "generic class", "generic struct", "inline")
        match self.one_of(kinds):
            case "class":
                self._class(f"C{number}")
            case "struct":
                self._struct(f"S{number}")
            case "explicit":
                self._explicit(f"E{number}")
            case "enum":
                name = f"N{number}"
                self.drawn.text.append(f"public enum {name} : {self.one_of(UNDER)} {{ A, B }}")
                self.drawn.values.append(name)
            case "inline":
                name, element = f"I{number}", self.one_of((*NUMBERS, *LIBRARY, *REFERENCES))
                length = self.number(1, 5)
                attribute = f"[System.Runtime.CompilerServices.InlineArray({length})]"
                self.drawn.text.append(f"{attribute} public struct {name} {{ {element} first; }}")
                self.drawn.values.append(name)
                self.drawn.asked.append(name)
            case kind:
                self._generic(f"G{number}", kind.removeprefix("generic "))

    def _type(self, parameters: tuple[str, ...] = ()) -> str:
        drawn = self.drawn
        kinds = [tuple(NUMBERS), LIBRARY, REFERENCES]
        kinds += [tuple(each) for each in (drawn.values, drawn.classes, parameters) if each]
        if drawn.generic:
            kinds.append(("generic",))
        chosen = self._draw(st.sampled_from(kinds))
        assert isinstance(chosen, tuple)
        name = self.one_of(chosen)
        return self._instance() if name == "generic" else name

    def _instance(self) -> str:
        at = self.number(0, len(self.drawn.generic) - 1)
        name, count = self.drawn.generic[at]
        simple = [*NUMBERS, *LIBRARY[:5], *REFERENCES, *self.drawn.values]
        return f"{name}<{', '.join(self.one_of(simple) for _ in range(count))}>"

    def _fields(self, most: int, parameters: tuple[str, ...] = ()) -> list[str]:
        made = [f"{self._type(parameters)} f{at};" for at in range(self.number(0, most))]
        if self.number(0, 5) == 0:
            made.insert(0, "static int shared;")
        return made

    def _class(self, name: str) -> None:
        drawn, base, layout = self.drawn, "", ""
        if drawn.classes and self.number(0, 2):
            base = f" : {self.one_of(drawn.classes)}"
        if self.number(0, 4) == 0:
            layout = "[StructLayout(LayoutKind.Sequential)] "
        inside = " ".join(self._fields(8))
        drawn.text.append(f"{layout}public class {name}{base} {{ {inside} }}")
        drawn.classes.append(name)
        drawn.asked.append(name)

    def _struct(self, name: str) -> None:
        layout = self.one_of(("", "", "Auto", "Sequential", "Pack", "Size"))
        pack = self.one_of(("1", "2", "4", "8"))
        printed = {
            "": "",
            "Pack": f"[StructLayout(LayoutKind.Sequential, Pack = {pack})] ",
            "Size": f"[StructLayout(LayoutKind.Sequential, Size = {self.number(1, 64)})] ",
        }.get(layout, f"[StructLayout(LayoutKind.{layout})] ")
        inside = " ".join(self._fields(7))
        self.drawn.text.append(f"{printed}public struct {name} {{ {inside} }}")
        self.drawn.values.append(name)
        self.drawn.asked.append(name)

    def _explicit(self, name: str) -> None:
        inside = []
        for at in range(self.number(1, 5)):
            kind = self.one_of(tuple(NUMBERS))
            inside.append(f"[FieldOffset({self.number(0, 24)})] {kind} f{at};")
        size = f", Size = {self.number(1, 48)}" if self.number(0, 2) == 0 else ""
        printed = f"[StructLayout(LayoutKind.Explicit{size})] "
        self.drawn.text.append(f"{printed}public struct {name} {{ {' '.join(inside)} }}")
        self.drawn.values.append(name)
        self.drawn.asked.append(name)

    def _generic(self, name: str, kind: str) -> None:
        count = self.number(1, 2)
        parameters = ("T", "U")[:count]
        inside = " ".join(self._fields(5, parameters))
        self.drawn.text.append(f"public {kind} {name}<{', '.join(parameters)}> {{ {inside} }}")
        self.drawn.generic.append((name, count))
        for _ in range(3):
            instance = self._instance()
            self.drawn.asked.append(instance)
