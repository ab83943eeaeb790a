"""How .NET runtimes lay out objects: data of targets/runtime/dotnet by name and version."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.record import Record
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = ["ArrayPlaces", "LayoutRules", "Runtime", "StringPlaces", "runtime"]


class LayoutRules(Record):
    """How a runtime lays out the fields of classes and structures; sizes are bytes.

    ``algorithm``: ``coreclr`` sorts fields by size, ``mono`` keeps their order. Sequential layout
    may ask that structures among the fields have it too (``sequential_needs_sequential_members``).
    Where fields are sorted, a structure among them is aligned to ``structure_alignment`` at the
    least and takes a multiple of ``structure_size_multiple``. ``greatest_alignment`` is the
    packing where none is stated. ``vectors`` are types whose size the runtime itself knows:
    ``vector_bytes``; whether that is their alignment says ``vectors_aligned``.
    ``base_rounds_across_modules``: in precompiled images, fields begin at a multiple of 8 where
    the layout of a base depends on another module. ``explicit_size_rounds``: a structure of
    explicit layout takes a multiple of its alignment; else only one that native code has in the
    same form.
    ``least_structure``, ``least_class``: bytes of one of sequential layout without fields.
    """

    algorithm: str
    sequential_needs_sequential_members: bool
    structure_alignment: int
    structure_size_multiple: int
    greatest_alignment: int
    vectors: frozenset[str]
    vectors_aligned: bool
    inline_arrays: bool
    base_rounds_across_modules: bool
    explicit_size_rounds: bool
    least_structure: int
    least_class: int
    vector_bytes: Mapping[str, int]


class StringPlaces(Record):
    """Offsets of a string's length (in UTF-16 units, 4 bytes) and of its text."""

    length: int
    text: int


class ArrayPlaces(Record):
    """Offsets in an array: of its length (4 bytes) and of its elements.

    Of several dimensions, ``lengths`` is where the length of each is, or ``bounds`` where the
    pointer is that leads to them, each with its lower bound after it. Elements begin
    ``elements_per_dimension`` bytes later for each dimension.
    """

    length: int
    elements: int
    lengths: int
    elements_per_dimension: int
    bounds: int | None


class Runtime(Record):
    """One version of a runtime. ``fields`` is the offset of an object's first field.

    ``sequences``: of types that hold counted elements, the field of the count and the names that
    the one of the elements may have. ``windows``: of types that hold a part of an array, the
    fields that say which. ``properties``: of types, properties and the members after
    them. ``differences``: properties that are one member less another one, where both are there;
    where the second is not, the first is it. ``collections``: of types whose elements
    are entries of an array, the members that say which. ``notations``: of structures, the form in
    which their values are written. ``header`` is where objects say what they are of, None where
    that was not measured.
    """

    name: str
    version: tuple[int, int]
    fields: int
    string: StringPlaces
    array: ArrayPlaces
    layout: LayoutRules
    sequences: Mapping[str, tuple[str, ...]]
    windows: Mapping[str, Mapping[str, Any]]
    properties: Mapping[str, Mapping[str, str]]
    differences: Mapping[str, Mapping[str, tuple[str, str]]]
    collections: Mapping[str, Mapping[str, Any]]
    notations: Mapping[str, str]
    header: Mapping[str, Any] | None


def runtime(name: str, version: tuple[int, int]) -> Runtime:
    """The runtime ``coreclr`` or ``mono`` in a version; CompileError FC0905 if unknown."""
    raw = table(f"runtime/dotnet/{name}")
    if version[0] > raw["newest"]:
        raise reject(
            "FC0905",
            f"where objects of .NET {version[0]} have their fields is not known",
            notes=(f"the newest release that fetchc knows is {raw['newest']}",),
        )
    rules: dict[str, Any] = {}
    for step in raw["layout"]:
        if tuple(step["since"]) <= version:
            rules.update(step)
    rules.pop("since")
    rules["vectors"] = frozenset(rules["vectors"])
    array = raw["array"]
    return Runtime(
        name=name,
        version=version,
        fields=raw["object"]["fields"],
        string=StringPlaces(raw["string"]["length"], raw["string"]["text"]),
        array=ArrayPlaces(
            array["length"],
            array["elements"],
            array.get("lengths", 0),
            array.get("elements_per_dimension", 0),
            array.get("bounds"),
        ),
        layout=LayoutRules(**rules, vector_bytes=raw.get("vector_bytes", {})),
        sequences={kind: tuple(names) for kind, names in raw["sequences"].items()},
        windows=_by_type(raw, "windows", version),
        properties=_by_type(raw, "properties", version),
        differences=raw["differences"],
        collections=_by_type(raw, "collections", version),
        notations=raw["notations"],
        header=_header(raw.get("headers", ()), version),
    )


def _by_type(raw: Mapping[str, Any], name: str, version: tuple[int, int]) -> dict[str, Any]:
    # What holds of types in all versions, and in those from some version on.
    found = dict(raw[name])
    for step in raw.get(f"later_{name}", ()):
        if tuple(step["since"]) <= version:
            found.update({kind: step[kind] for kind in step if kind not in ("since", "source")})
    return found


def _header(rows: Iterable[dict[str, Any]], version: tuple[int, int]) -> Mapping[str, Any] | None:
    # Nothing but what was measured: in between the runtime's own structures have moved.
    fitting = [one for one in rows if tuple(one["since"]) <= version < tuple(one["before"])]
    return fitting[0] if fitting else None
