"""Tables of where members are by the version of their module, as agents of Go programs read them.

Three forms: ``builds`` is fetchc's own, by build ID as well; ``otel-go`` is that of the
instrumentation of OpenTelemetry (``offset_results.json``), ``obi`` that of OBI and
go-offsets-tracker (``offsets.json``). A table is read from a file, and what was found is added.
Source: open-telemetry/opentelemetry-go-instrumentation, internal/pkg/structfield;
grafana/go-offsets-tracker, pkg/offsets (schema.go).
"""

from __future__ import annotations

import json
import re

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

__all__ = [
    "FORMS",
    "Build",
    "Member",
    "VersionTable",
    "Wanted",
    "difference",
    "form_of",
    "module_of",
    "read_members",
    "semantic_version",
    "standard_version",
]

STANDARD = "std"
"""The module of Go's standard library."""

FORMS = ("builds", "otel-go", "obi")
SCHEMA = "fetchc.builds/1"


class Member(Record):
    """A member of a structure of a package of a module.

    ``module`` is empty of programs that Go did not link, ``package`` of types that have none.
    """

    module: str
    package: str
    struct: str
    field: str

    @property
    def type(self) -> str:
        """The structure's name with its package, as debug information has it."""
        return f"{self.package}.{self.struct}" if self.package else self.struct

    def __lt__(self, other: Member) -> bool:
        return self._key < other._key

    @property
    def _key(self) -> tuple[str, ...]:
        return self.module, self.package, self.struct, self.field


class Build(Record):
    """One program: a name for people, its machine, the version of each module.

    ``asked`` says which members were looked up: what the table has none of is in no build that
    was asked for it.
    """

    binary: str
    arch: str
    modules: tuple[tuple[str, str], ...]
    asked: str = ""


class VersionTable:
    """By member and version the offset, None where no build is known to have the member.

    ``builds`` are by build ID, ``of_builds`` the offset in each of them: None where the structure
    is there and the member is not. ``steps``: an offset holds for the versions up to the next one
    that is named, too.
    """

    def __init__(self, steps: bool = False) -> None:
        self._steps = steps
        self._unseen: set[tuple[Member, str]] = set()  # whose structure no build is known to have
        self.offsets: dict[Member, dict[str, int | None]] = {}
        self.builds: dict[str, Build] = {}
        self.of_builds: dict[Member, dict[str, int | None]] = {}

    def add(self, member: Member, version: str, offset: int | None, build: str = "") -> str:
        """Add what a build says; what is wrong with that, empty where nothing is.

        The offset that the table has of the version already stays; None gives way to an offset,
        so that the order of the builds does not decide whether there is one.
        """
        if build:
            self.of_builds.setdefault(member, {})[build] = offset
        versions = self.offsets.setdefault(member, {})
        try:
            before = self.offset(member, version)
        except KeyError:
            before = offset
        unseen = (member, version) in self._unseen
        self._unseen.discard((member, version))
        if before is None or before == offset:
            versions[version] = offset
        if unseen or before == offset:
            return ""
        name = f"{member.type}.{member.field}"
        return f"{name} of {version} is at {_shown(offset)}, in the table at {_shown(before)}"

    def add_absent(self, member: Member, version: str) -> None:
        """Say that a build of the version has the member's package and not its structure.

        A linker leaves out types that a program does not use, so another build may have it: what
        that one says counts.
        """
        versions = self.offsets.setdefault(member, {})
        if version not in versions:
            versions[version] = None
            self._unseen.add((member, version))

    def seen(self, member: Member) -> set[str]:
        """The versions of which a build with the member's structure is known."""
        return {one for one in self.offsets[member] if (member, one) not in self._unseen}

    def offset(self, member: Member, version: str) -> int | None:
        """The offset; raises KeyError where the table has none of the version."""
        versions = self.offsets[member]
        if not self._steps or version in versions:
            return versions[version]
        ordered = sorted(versions, key=_version_key)
        before = [one for one in ordered if _version_key(one) < _version_key(version)]
        if len(before) in (0, len(ordered)):
            raise KeyError(version)
        return versions[before[-1]]

    def text(self, form: str) -> str:
        """The file's content; raises ValueError for what the form cannot hold."""
        return json.dumps(_WRITERS[form](self), indent=2) + "\n"

    @classmethod
    def read(cls, path: str, text: str, form: str) -> VersionTable:
        """The table of a file; raises DebugInfoError FC0904 where it is not of that form."""
        content = _content(path, text)
        table = cls(form == "obi")
        try:
            _READERS[form](table, content)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as wrong:
            what = f"it is no table of the form {form}: {_why(wrong)}"
            help = f"say which form it has: --format {'|'.join(FORMS)}"
            raise DebugInfoError("FC0904", path, what, help=help) from None
        return table


def _content(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise DebugInfoError("FC0904", path, f"it is no JSON: {wrong}") from None


def _why(wrong: Exception) -> str:
    match wrong:
        case KeyError(args=(key,)):
            return f"`{key}` is missing"
        case ValueError():
            return str(wrong)
        case _:
            return "a value is of another type than there"


def form_of(path: str, text: str) -> str:
    """Which form a file has; raises DebugInfoError FC0904 where it has none of them."""
    match _content(path, text):
        case list():
            return "otel-go"
        case {"schema": _}:
            return "builds"
        case {"data": _}:
            return "obi"
        case _:
            what = f"it is no table of offsets: of none of the forms {', '.join(FORMS)}"
            raise DebugInfoError("FC0904", path, what)


def difference(table: VersionTable, other: VersionTable) -> list[str]:
    """Where ``other``, found in a program, is not as ``table`` says, a line each.

    What the table has of that very build counts, then what it has of the version.
    """
    lines = []
    for member in sorted(other.offsets):
        by_build = table.of_builds.get(member, {})
        of_build = [by_build[one] for one in other.of_builds.get(member, {}) if one in by_build]
        for version, offset in sorted(other.offsets[member].items(), key=_order):
            if offset in of_build:
                continue
            name = f"{member.type}.{member.field} of {version}"
            try:
                stated = table.offset(member, version)
            except KeyError:
                lines.append(f"{name} is not in the table; the program has it at {_shown(offset)}")
                continue
            if stated != offset:
                lines.append(f"{name} is at {_shown(offset)}, the table says {_shown(stated)}")
    return lines


def _shown(offset: int | None) -> str:
    return "none" if offset is None else f"+{offset}"


# ------------------------------------------------------------------------------
# Versions and modules

_SEMANTIC = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?([-+.0-9A-Za-z]*)\Z")
_STANDARD = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?((?:beta|rc)\d+)?\Z")


def semantic_version(text: str) -> str:
    """The version without a leading ``v``; raises ValueError for what is none."""
    if not _SEMANTIC.match(text):
        raise ValueError(f"`{text}` is no version such as 1.2.3")
    return text.removeprefix("v")


def standard_version(toolchain: str) -> str:
    """The standard library's version, ``1.22.10`` of ``go1.22.10``; empty where none is said.

    That of a release which has no third number ends in 0, as semantic versions do.
    """
    found = _STANDARD.match(toolchain.partition(" ")[0])
    if found is None:
        return ""
    major, minor, patch, early = found.groups()
    return f"{major}.{minor}.{patch or 0}" + (f"-{early}" if early else "")


def module_of(package: str, modules: Sequence[str]) -> str:
    """The module of a package: the longest path that it begins with, ``std`` of Go's own library.

    The main module is the first one. A package of none of them (of a program that was built
    without modules) is a module of its own.
    """
    own = [one for one in modules if package == one or package.startswith(f"{one}/")]
    if own:
        return max(own, key=len)
    if package == "main":
        return modules[0] if modules else package
    return package if "." in package.partition("/")[0] else STANDARD


def _order(item: tuple[str, object]) -> tuple[object, ...]:
    return _version_key(item[0])


def _version_key(version: str) -> tuple[object, ...]:
    # Source: semver.org, 11: numbers as numbers, a version before its release.
    found = _SEMANTIC.match(version)
    if found is None:
        return (0, version)
    major, minor, patch, rest = found.groups()
    early = rest.partition("+")[0]
    parts = tuple(
        (0, int(each), "") if each.isdecimal() else (1, 0, each)
        for each in early.lstrip("-.").split(".")
    )
    return (1, int(major), int(minor), int(patch or 0), not early, parts)


# ------------------------------------------------------------------------------
# fetchc's own form


def _grouped(versions: dict[str, int | None]) -> list[tuple[int | None, list[str]]]:
    # By offset, None first; names of versions in their order.
    found: dict[int | None, list[str]] = {}
    for version, offset in sorted(versions.items(), key=_order):
        found.setdefault(offset, []).append(version)
    return sorted(found.items(), key=lambda item: (item[0] is not None, item[0] or 0))


def _write_versions(table: VersionTable, member: Member) -> list[dict[str, Any]]:
    return [
        {"offset": offset, "versions": versions}
        for offset, versions in _grouped(table.offsets[member])
    ]


def _read_versions(table: VersionTable, member: Member, groups: Any) -> None:
    # A file does not tell whether the structure was there where the member was not.
    for group in groups:
        offset = _offset(group["offset"])
        for version in map(_text, group["versions"]):
            if offset is None:
                table.add_absent(member, version)
            else:
                table.add(member, version, offset)


def _write_builds(table: VersionTable) -> Any:
    fields = []
    for member in sorted(table.offsets):
        builds = _grouped(table.of_builds.get(member, {}))
        fields.append(
            {
                "module": member.module,
                "package": member.package,
                "struct": member.struct,
                "field": member.field,
                "versions": _write_versions(table, member),
                "builds": [{"offset": offset, "builds": sorted(ids)} for offset, ids in builds],
            }
        )
    builds_by_id = {
        key: {
            "binary": one.binary,
            "arch": one.arch,
            "modules": dict(one.modules),
            "asked": one.asked,
        }
        for key, one in sorted(table.builds.items())
    }
    return {"schema": SCHEMA, "builds": builds_by_id, "fields": fields}


def _read_builds(table: VersionTable, content: Any) -> None:
    if content["schema"] != SCHEMA:
        raise ValueError(f"the schema is {content['schema']!r}, not {SCHEMA!r}")
    for key, one in content["builds"].items():
        modules = tuple(one["modules"].items())
        table.builds[key] = Build(one["binary"], one["arch"], modules, _text(one["asked"]))
    for row in content["fields"]:
        member = Member(*[_text(row[key]) for key in ("module", "package", "struct", "field")])
        _read_versions(table, member, row["versions"])
        for group in row["builds"]:
            offset = _offset(group["offset"])
            for build in map(_text, group["builds"]):
                table.of_builds.setdefault(member, {})[build] = offset
                version = dict(table.builds[build].modules).get(member.module)
                if offset is None and version is not None:
                    table.add(member, version, None)  # the structure was there


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no string")
    return value


def _package_and_struct(type_name: Any) -> tuple[str, str]:
    package, dot, struct = _text(type_name).rpartition(".")
    if not dot:
        raise ValueError(f"`{type_name}` names no package")
    return package, struct


def _offset(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"{value!r} is no offset")
    return None if value is None else int(value)


# ------------------------------------------------------------------------------
# OpenTelemetry: modules, packages, structs, fields, offsets, each with its versions


def _write_otel(table: VersionTable) -> Any:
    modules: dict[str, dict[str, dict[str, list[Any]]]] = {}
    for member in sorted(table.offsets):
        structs = modules.setdefault(member.module, {}).setdefault(member.package, {})
        one = {"field": member.field, "offsets": _write_versions(table, member)}
        structs.setdefault(member.struct, []).append(one)
    return [
        {
            "module": module,
            "packages": [
                {
                    "package": package,
                    "structs": [
                        {"struct": struct, "fields": fields} for struct, fields in structs.items()
                    ],
                }
                for package, structs in packages.items()
            ],
        }
        for module, packages in modules.items()
    ]


def _read_otel(table: VersionTable, content: Any) -> None:
    if not isinstance(content, list):
        raise ValueError("it does not begin with a list of modules")
    for module in content:
        for package in module["packages"]:
            for struct in package["structs"]:
                for field in struct["fields"]:
                    names = (module["module"], package["package"], struct["struct"], field["field"])
                    member = Member(*map(_text, names))
                    _read_versions(table, member, field["offsets"])


# ------------------------------------------------------------------------------
# OBI: by type and field the versions from which on an offset holds


def _write_obi(table: VersionTable) -> Any:
    data: dict[str, dict[str, Any]] = {}
    for member in sorted(table.offsets, key=lambda one: (one.type, one.field)):
        versions = sorted(table.offsets[member].items(), key=_order)
        steps: list[dict[str, Any]] = []
        present = [(version, offset) for version, offset in versions if offset is not None]
        for version, offset in present:
            if not steps or steps[-1]["offset"] != offset:
                steps.append({"offset": offset, "since": version})
        if present:
            data.setdefault(member.type, {})[member.field] = {
                "versions": {"oldest": present[0][0], "newest": present[-1][0]},
                "offsets": steps,
            }
    return {"data": data}


def _read_obi(table: VersionTable, content: Any) -> None:
    # Between two steps every version is meant; only the ends are known by name.
    for type_name, fields in content["data"].items():
        package, struct = _package_and_struct(type_name)
        for field, one in fields.items():
            member = Member("", package, struct, _text(field))
            steps = [(_text(step["since"]), _offset(step["offset"])) for step in one["offsets"]]
            for version, offset in steps:
                table.add(member, version, offset)
            ends = one["versions"]
            for version in (_text(ends["oldest"]), _text(ends["newest"])):
                before = [at for since, at in steps if _version_key(since) <= _version_key(version)]
                if before:
                    table.add(member, version, before[-1])


_WRITERS: dict[str, Callable[[VersionTable], Any]] = {
    "builds": _write_builds,
    "otel-go": _write_otel,
    "obi": _write_obi,
}
_READERS: dict[str, Callable[[VersionTable, Any], None]] = {
    "builds": _read_builds,
    "otel-go": _read_otel,
    "obi": _read_obi,
}


# ------------------------------------------------------------------------------
# What is to be looked up: OBI's tracker_input.json

_CONDITION = re.compile(r"\[([^],]*)(?:,([^],]*))?\](.*)\Z")


class Wanted(Record):
    """A member by the names of its package, type and field, and the versions that may have it."""

    package: str
    struct: str
    field: str
    first: str = ""
    last: str = ""

    def holds(self, version: str) -> bool:
        """Whether a program of that version is to be asked for it."""
        key = _version_key(version)
        after = not self.first or _version_key(self.first) <= key
        return after and (not self.last or key <= _version_key(self.last))


def read_members(path: str, text: str) -> list[Wanted]:
    """The members that a ``tracker_input.json`` names; raises DebugInfoError FC0904."""
    try:
        return list(_wanted(json.loads(text)))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as wrong:
        what = f"it names no fields as tracker_input.json does: {_why(wrong)}"
        raise DebugInfoError("FC0904", path, what) from None


def _wanted(content: Any) -> Iterator[Wanted]:
    for library in content.values():
        for type_name, fields in library["fields"].items():
            package, struct = _package_and_struct(type_name)
            for field in fields:
                found = _CONDITION.match(_text(field))
                first, last, name = found.groups() if found else ("", "", field)
                yield Wanted(package, struct, name, (first or "").strip(), (last or "").strip())
