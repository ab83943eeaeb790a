"""Draws containers of C++ and Go, of all kinds and sizes, and expressions for their elements.

A type is its text, as in :mod:`fetchc.conformance.go_drawing`. The program fills the containers
with numbers at the edges of their types and with strings, and removes some elements again. For
each call it prints the values of its expressions as :func:`fetchc.conformance.shown_values.said`
reads them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random

from fetchc.conformance.shown_values import ShownProbe
from fetchc.record import Record

__all__ = ["BOUNDS", "MOST", "SIZES", "Containers", "cpp_containers", "go_containers"]

MOST = 32  # elements that a trace shows where no number is written
BOUNDS = (1, 5, 40, 90)
# A map of Go before 1.24 is being moved to other buckets when it has got its 53rd entry.
SIZES = (0, 1, 2, 3, MOST - 1, MOST, MOST + 1, 53, 100)
_LARGE = 1000  # in several tables of Go
_STRUCTURES, _HELD = 4, 3


class Containers(Record):
    """A program, and the functions that are probed; each takes a structure of containers."""

    source: str
    probes: tuple[ShownProbe, ...]


class _Container(Record):
    # ``place`` is what the program calls it, too; ``key`` is empty where there are only elements.
    place: str
    type: str
    kind: str
    key: str
    element: str


class _Drawing(ABC):
    # One program: what differs between the languages is in the methods that they have.

    numbers: tuple[str, ...]
    text: str
    nested: tuple[str, ...]

    def __init__(self, random: Random) -> None:
        self.random = random
        self.structures: dict[str, list[tuple[str, str]]] = {}
        for number in range(_STRUCTURES):
            members = [self.element(0.25) for _ in range(random.randrange(1, 5))]
            named = [(f"F{at}", member) for at, member in enumerate(members)]
            self.structures[f"E{number}"] = [("ID", random.choice(self.whole)), *named]

    @property
    def whole(self) -> list[str]:
        """The integers."""
        return [one for one in self.numbers if not one.startswith(("float", "double"))]

    def element(self, structure: float = 0.5) -> str:
        """A type of elements or members; so often a structure, where there is one."""
        if self.structures and self.random.random() < structure:
            return self.random.choice(list(self.structures))
        if self.random.random() < 0.15:
            return self.random.choice(self.nested)
        return self.random.choice([*self.numbers, self.text, self.text])

    def probe(self, number: int, many: int) -> tuple[list[_Container], ShownProbe, list[str]]:
        """The containers of a function, and ``many`` expressions with what writes their values."""
        held = [self.container(f"h.c{at}") for at in range(_HELD)]
        asked: dict[str, str] = {}
        for _ in range(many):
            text, written = self.expression(self.random.choice(held))
            asked[text] = written
        name = f"look{number}"
        probe = ShownProbe(self.function(name), name, None, tuple(asked))
        return held, probe, list(asked.values())

    def sizes(self) -> list[int]:
        """How many elements the containers have at each call."""
        return self.random.sample((*SIZES, _LARGE), 5)

    def expression(self, of: _Container) -> tuple[str, str]:
        """One question, and what writes its value."""
        which = self.random.random()
        path, type = self.path(of.element)
        if which < 0.1 and (counted := self.count(of)):
            return f"len({of.place})", counted
        if which < 0.4 and self.is_found(of):
            key = self.key(of.key)
            return f"{of.place}[{key}]{path}", self.found(of, key, path, type)
        if which < 0.3 and self.is_indexed(of):
            at = self.random.choice((0, 1, 2, 7, MOST))
            return f"{of.place}[{at}]{path}", self.at(of, at, path, type)
        most = self.random.choice((MOST, *BOUNDS))
        bound = "" if most == MOST else str(most)
        if self.is_indexed(of) or self.random.random() < 0.3:
            text = f"list({of.place}{', ' * bool(bound)}{bound})"
        else:
            text = f"{of.place}[:{bound}]"
        return text + path, self.walked(of, most, path, type)

    def path(self, type: str) -> tuple[str, str]:
        """Members from an element to the value of an expression, and its type."""
        path = ""
        while type.lstrip("*") in self.structures and self.random.random() < 0.6:
            member, type = self.random.choice(self.structures[type.lstrip("*")])
            path += f".{member}"
        return path, type

    def key(self, type: str) -> str:
        """A constant that may be a key, in the words of the language and of fetchc."""
        if type == self.text:
            return self.random.choice(('""', '"b"', '"ccc"', '"dddddddddddddddddd"', '"none"'))
        if type in ("bool", "char"):
            return self.random.choice(("true", "false") if type == "bool" else ("'a'", "'q'"))
        signed = not type.startswith("u")
        return str(self.random.choice((0, 1, 2, 3, 5, 8, 12, *([-1, -2] * signed))))

    @abstractmethod
    def container(self, place: str) -> _Container: ...
    @abstractmethod
    def function(self, name: str) -> str: ...
    @abstractmethod
    def is_found(self, of: _Container) -> bool: ...
    @abstractmethod
    def is_indexed(self, of: _Container) -> bool: ...
    @abstractmethod
    def count(self, of: _Container) -> str: ...
    @abstractmethod
    def found(self, of: _Container, key: str, path: str, type: str) -> str: ...
    @abstractmethod
    def at(self, of: _Container, at: int, path: str, type: str) -> str: ...
    @abstractmethod
    def walked(self, of: _Container, most: int, path: str, type: str) -> str: ...


# ------------------------------------------------------------------------------
# C++

_CPP_HEADER = r"""
#include <cstdio>
#include <deque>
#include <forward_list>
#include <limits>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;
typedef unsigned long ulong; typedef signed char schar;
static unsigned long state = @SEED@;
static unsigned long next()
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return state >> 33;
}
template <class T, class = void> struct Of;
template <class T> struct Of<T, std::enable_if_t<std::is_arithmetic_v<T>>> {
    static T drawn()
    {
        unsigned long n = next();
        if constexpr (std::is_same_v<T, char>) return 'a' + n % 26;
        if constexpr (std::is_floating_point_v<T>) return T(long(n % 99) - 50) / 4;
        const T edges[] = {T(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
        return n % 16 < 3 ? edges[n % 16] : T(n % 173);
    }
    static std::string shown(T value)
    {
        if constexpr (std::is_same_v<T, bool>) return value ? "true" : "false";
        if constexpr (std::is_same_v<T, char>) return std::string("\"") + value + '"';
        return std::to_string(value);
    }
};
template <> struct Of<std::string> {
    static std::string drawn()
    {
        unsigned long n = next();
        return std::string(n % 11 ? n % 24 : n % 200, 'a' + n % 24);
    }
    static std::string shown(const std::string &value) { return '"' + value + '"'; }
};
template <> struct Of<const char *> {
    static const char *drawn() { return next() % 8 ? "a string" + next() % 9 : nullptr; }
    static std::string shown(const char *value)
    {
        return value ? std::string("\"") + value + '"' : "null";
    }
};
template <class K, class V> struct Of<std::pair<const K, V>> {
    static std::pair<const K, V> drawn() { return {Of<K>::drawn(), Of<V>::drawn()}; }
};
template <class A, class B> struct Of<std::pair<A, B>> {
    static std::pair<A, B> drawn() { return {Of<A>::drawn(), Of<B>::drawn()}; }
    static std::string shown(const std::pair<A, B> &value)
    {
        std::string first = Of<A>::shown(value.first);
        return "{\"first\": " + first + ", \"second\": " + Of<B>::shown(value.second) + "}";
    }
};
template <class T> struct Of<std::vector<T>> {
    static std::vector<T> drawn()
    {
        std::vector<T> all;
        for (unsigned many = next() % 4; many--;) all.push_back(Of<T>::drawn());
        return all;
    }
    static std::string shown(const std::vector<T> &value)
    {
        std::string each;
        for (const T &one : value) each += (each.empty() ? "" : ", ") + Of<T>::shown(one);
        return "[" + each + "]";
    }
};
template <class C> static void fill(C &all, unsigned many)
{
    for (unsigned tries = 0; all.size() < many && tries < 9 * many; tries++) {
        all.insert(all.end(), Of<typename C::value_type>::drawn());
        if (next() % 4 == 0 && !all.empty()) all.erase(all.begin());
    }
}
template <class T> static void fill(std::forward_list<T> &all, unsigned many)
{
    while (many--) all.push_front(Of<T>::drawn());
}
template <class A> struct Adapted : A { using A::c; };
template <class T> static void fill(std::queue<T> &all, unsigned many)
{
    fill(static_cast<Adapted<std::queue<T>> &>(all).c, many);
}
template <class T> static void fill(std::stack<T> &all, unsigned many)
{
    fill(static_cast<Adapted<std::stack<T>> &>(all).c, many);
}
template <class C> static const C &inside(const C &all) { return all; }
template <class T> static auto &inside(const std::queue<T> &all)
{
    return static_cast<const Adapted<std::queue<T>> &>(all).c;
}
template <class T> static auto &inside(const std::stack<T> &all)
{
    return static_cast<const Adapted<std::stack<T>> &>(all).c;
}
template <class C, class F> static std::string walked(const C &all, int most, F one)
{
    std::string each;
    for (auto &&element : inside(all)) each += (each.empty() ? "" : ", ") + one(element);
    return "{\"walked\": [" + each + "], \"most\": " + std::to_string(most) + "}";
}
static std::string entry(const std::string &key, const std::string &value)
{
    return "{\"key\": " + key + ", \"value\": " + value + "}";
}
template <class C, class K, class F> static std::string found(const C &all, K key, F one)
{
    auto at = all.find(key);
    return at == all.end() ? "null" : one(at->second);
}
template <class C, class F> static std::string at(const C &all, unsigned index, F one)
{
    return index < all.size() ? one(all[index]) : "null";
}
"""


class _Cpp(_Drawing):
    numbers = (
        *("schar", "uchar", "short", "ushort", "int", "uint", "long", "ulong"),
        *("bool", "char", "float", "double"),
    )
    text = "std::string"
    nested = (
        *("std::vector<short>", "std::vector<std::string>", "std::pair<schar, std::string>"),
        *("const char *", "std::vector<const char *>"),
    )
    _MAPS = ("map", "multimap", "unordered_map", "unordered_multimap")
    _SETS = ("set", "multiset", "unordered_set", "unordered_multiset")
    _LISTS = ("vector", "deque", "list", "forward_list", "stack", "queue")

    @property
    def whole(self) -> list[str]:
        return [one for one in super().whole if one not in ("bool", "char")]

    def container(self, place: str) -> _Container:
        kind = self.random.choice([*self._MAPS, *self._SETS, *self._LISTS, "vector"])
        element, key = self.element(), ""
        if kind in self._MAPS:
            key = self.random.choice([*self.whole, "bool", "char", self.text, self.text])
            if kind == "map" and self.random.random() < 0.15:
                key = self.random.choice(list(self.structures))
        if kind.startswith("unordered") and kind in self._SETS:
            element = self.random.choice([*self.whole, self.text])
        if kind == "vector" and element == "bool":
            element = "char"  # bits are not listed
        arguments = f"{key}, {element}" if key else element
        return _Container(place, f"std::{kind}<{arguments}>", kind, key, element)

    def function(self, name: str) -> str:
        return name

    def is_found(self, of: _Container) -> bool:
        return of.kind in ("map", "unordered_map") and of.key not in self.structures

    def is_indexed(self, of: _Container) -> bool:
        return of.kind == "vector"

    def count(self, of: _Container) -> str:
        if of.kind == "forward_list":
            return ""
        return f"std::to_string({of.place}.size())"

    def found(self, of: _Container, key: str, path: str, type: str) -> str:
        return f"found({of.place}, {of.key}({key}), {self._shown('e', path, type)})"

    def at(self, of: _Container, at: int, path: str, type: str) -> str:
        return f"at({of.place}, {at}, {self._shown('e', path, type)})"

    def walked(self, of: _Container, most: int, path: str, type: str) -> str:
        shown = self._shown("e", path, type)
        if of.key:
            one = f"entry(Of<{of.key}>::shown(e.first), Of<{type}>::shown(e.second{path}))"
            shown = f"[](auto &&e) {{ return {one}; }}"
        return f"walked({of.place}, {most}, {shown})"

    def _shown(self, name: str, path: str, type: str) -> str:
        return f"[](auto &&{name}) {{ return Of<{type}>::shown({name}{path}); }}"

    def declared(self, name: str) -> str:
        """A structure, with an order for trees, and how one is made and written."""
        members = self.structures[name]
        made = ", ".join(f"Of<{type}>::drawn()" for _, type in members)
        shown = ' + ", " + '.join(
            f'"\\"{member}\\": " + Of<{type}>::shown(v.{member})' for member, type in members
        )
        listed = "".join(f" {type} {member};" for member, type in members)
        return (
            f"struct {name} {{{listed} bool operator<(const {name} &o) const "
            f"{{ return ID < o.ID; }} }};\n"
            f"template <> struct Of<{name}> {{ static {name} drawn() {{ return {{{made}}}; }} "
            f"static std::string shown(const {name} &v) "
            f'{{ return std::string("{{") + {shown} + "}}"; }} }};'
        )


def cpp_containers(random: Random, functions: int, expressions: int) -> Containers:
    """A program of C++ 17 with ``functions`` that are asked ``expressions`` at most."""
    drawing = _Cpp(random)
    lines = [_CPP_HEADER.replace("@SEED@", str(random.randrange(1 << 32)))]
    lines += [drawing.declared(name) for name in drawing.structures]
    probes, calls = [], []
    for number in range(functions):
        held, probe, written = drawing.probe(number, expressions)
        probes.append(probe)
        members = " ".join(f"{one.type} {one.place.removeprefix('h.')};" for one in held)
        lines += [
            f"struct H{number} {{ {members} }};",
            f'extern "C" __attribute__((noinline)) void look{number}(H{number} &h) '
            '{ __asm__ volatile("" : : "r"(&h) : "memory"); }',
            f"static void call{number}(unsigned many) {{ H{number} h;",
            *[f"    fill({one.place}, many);" for one in held],
            f'    std::printf("look{number} [");',
            '    std::printf("%s", (' + ' + ", " + '.join(written) + ").c_str());",
            f'    std::printf("]\\n"); look{number}(h); }}',
        ]
        calls += [f"call{number}({many});" for many in drawing.sizes()]
    lines += ["int main() {", *calls, "}", ""]
    return Containers("\n".join(lines), tuple(probes))


# ------------------------------------------------------------------------------
# Go

_GO_HEADER = """package main

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

func init() { runtime.LockOSThread() } // main runs on the first thread, which is traced

var state uint64 = @SEED@

func next() int {
	state = state*6364136223846793005 + 1442695040888963407
	return int(state >> 33)
}

func draw(v reflect.Value) {
	n := next()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(n%2 == 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n%99-50) / 4)
	case reflect.String:
		size := n % 24
		if n%11 == 0 {
			size = n % 200
		}
		v.SetString(strings.Repeat(string(rune('a'+n%24)), size))
	case reflect.Struct:
		for at := 0; at < v.NumField(); at++ {
			draw(v.Field(at))
		}
	case reflect.Array:
		for at := 0; at < v.Len(); at++ {
			draw(v.Index(at))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n%4, n%4))
		for at := 0; at < v.Len(); at++ {
			draw(v.Index(at))
		}
	case reflect.Ptr:
		if n%8 != 0 {
			v.Set(reflect.New(v.Type().Elem()))
			draw(v.Elem())
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := uint(v.Type().Bits())
		v.SetInt([]int64{-1, -1 << (bits - 1), 1<<(bits-1) - 1, int64(n % 100)}[least(n%16, 3)])
	default:
		v.SetUint([]uint64{1<<uint(v.Type().Bits()) - 1, uint64(n % 173)}[least(n%16, 1)])
	}
}

func least(one, other int) int {
	if one < other {
		return one
	}
	return other
}

func fill(pointer interface{}, many int) {
	v := reflect.ValueOf(pointer).Elem()
	if many == 0 && next()%2 == 0 {
		return // nil
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), many, many+next()%3))
		for at := 0; at < many; at++ {
			draw(v.Index(at))
		}
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for tries := 0; v.Len() < many && tries < 9*many; tries++ {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		draw(key)
		draw(value)
		v.SetMapIndex(key, value)
		if next()%4 == 0 {
			v.SetMapIndex(v.MapKeys()[0], reflect.Value{})
		}
	}
}

func show(v reflect.Value) string {
	each := []string{}
	switch v.Kind() {
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Ptr:
		return fmt.Sprint(v.Pointer())
	case reflect.Struct:
		for at := 0; at < v.NumField(); at++ {
			each = append(each, strconv.Quote(v.Type().Field(at).Name)+": "+show(v.Field(at)))
		}
		return "{" + strings.Join(each, ", ") + "}"
	case reflect.Array, reflect.Slice:
		for at := 0; at < v.Len(); at++ {
			each = append(each, show(v.Index(at)))
		}
		return "[" + strings.Join(each, ", ") + "]"
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("%g", v.Float())
	}
	return fmt.Sprint(v)
}

func part(v reflect.Value, path string) string {
	for _, name := range strings.Split(path, ".")[1:] {
		if v.Kind() == reflect.Ptr {
			if v.IsNil() {
				return "null"
			}
			v = v.Elem()
		}
		v = v.FieldByName(name)
	}
	return show(v)
}

func walked(all interface{}, most int, path string) string {
	v, each := reflect.ValueOf(all), []string{}
	if v.Kind() == reflect.Slice {
		for at := 0; at < v.Len(); at++ {
			each = append(each, part(v.Index(at), path))
		}
		return fmt.Sprintf(`{"walked": [%s], "most": %d}`, strings.Join(each, ", "), most)
	}
	for _, key := range v.MapKeys() {
		value := v.MapIndex(key)
		if value.Type().Size() == 0 {
			each = append(each, show(key))
		} else {
			each = append(each, `{"key": `+show(key)+`, "value": `+part(value, path)+"}")
		}
	}
	return fmt.Sprintf(`{"unordered": [%s], "most": %d}`, strings.Join(each, ", "), most)
}

func found(all, key interface{}, path string) string {
	v := reflect.ValueOf(all).MapIndex(reflect.ValueOf(key))
	if !v.IsValid() {
		return "null"
	}
	return part(v, path)
}

func at(all interface{}, index int, path string) string {
	v := reflect.ValueOf(all)
	if index >= v.Len() {
		return "null"
	}
	return part(v.Index(index), path)
}
"""


class _Go(_Drawing):
    numbers = (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("int", "uint", "bool", "float32", "float64"),
    )
    text = "string"
    nested = ("[]int16", "[]string", "[3]int16", "[]byte", "struct { A uint8; B string }")

    @property
    def whole(self) -> list[str]:
        return [one for one in super().whole if one != "bool"]

    def container(self, place: str) -> _Container:
        element = self.element()
        if element in self.structures and self.random.random() < 0.4:
            element = f"*{element}"
        if self.random.random() < 0.25:
            return _Container(place, f"[]{element}", "slice", "", element)
        which = self.random.random()
        if which < 0.1:
            element = self.random.choice(("struct{}", "[3]int16", "[17]uint64"))
        key = self.random.choice([*self.whole, "bool", self.text, self.text, self.text])
        if self.random.random() < 0.2:
            named = [one for one in self.structures if self._is_compared(one)]
            key = self.random.choice([*named, "[2]int32", "[17]int64"])
        return _Container(place, f"map[{key}]{element}", "map", key, element)

    def _is_compared(self, type: str) -> bool:
        # Whether a value can be a key: without slices in it.
        members = self.structures.get(type, ())
        return "[]" not in type and all(self._is_compared(each) for _, each in members)

    def function(self, name: str) -> str:
        return f"main.{name}"

    def is_found(self, of: _Container) -> bool:
        return of.key in [*self.whole, "bool", self.text] and of.element != "struct{}"

    def is_indexed(self, of: _Container) -> bool:
        return of.kind == "slice"

    def count(self, of: _Container) -> str:
        return f"fmt.Sprint(len({of.place}))"

    def found(self, of: _Container, key: str, path: str, type: str) -> str:
        return f'found({of.place}, {of.key}({key}), "{path}")'

    def at(self, of: _Container, at: int, path: str, type: str) -> str:
        return f'at({of.place}, {at}, "{path}")'

    def walked(self, of: _Container, most: int, path: str, type: str) -> str:
        return f'walked({of.place}, {most}, "{path}")'


def go_containers(random: Random, functions: int, expressions: int) -> Containers:
    """As :func:`cpp_containers`."""
    drawing = _Go(random)
    lines = [_GO_HEADER.replace("@SEED@", str(random.randrange(1 << 32)))]
    for name, structure in drawing.structures.items():
        listed = "; ".join(f"{member} {type}" for member, type in structure)
        lines.append(f"type {name} struct {{ {listed} }}")
    probes, calls = [], []
    for number in range(functions):
        held, probe, written = drawing.probe(number, expressions)
        probes.append(probe)
        members = "; ".join(f"{one.place.removeprefix('h.')} {one.type}" for one in held)
        lines += [
            f"type H{number} struct {{ {members} }}",
            f"//go:noinline\nfunc look{number}(h *H{number}) int {{ return len(h.c0) }}",
            f"func call{number}(many int) {{ h := &H{number}{{}}",
            *[f"    fill(&{one.place}, many)" for one in held],
            f'    fmt.Println("look{number}", "["+strings.Join([]string{{',
            *[f"        {one}," for one in written],
            f'    }}, ", ")+"]")\n    look{number}(h) }}',
        ]
        calls += [f"call{number}({many})" for many in drawing.sizes()]
    lines += ["func main() {", *calls, "}", ""]
    return Containers("\n".join(lines), tuple(probes))
