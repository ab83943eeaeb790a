"""The fields that a kernel event records, each with a type and a place for event probes.

A kernel that runs tells of them in tracefs (``events/GROUP/NAME/format``). Of any other kernel the
BTF knows the records of most trace events (``struct trace_event_raw_NAME``).
Source: Documentation/trace/events.rst; include/trace/stages/stage1_struct_define.h of Linux;
get_event_field, kernel/trace/trace_probe_tmpl.h and trace_eprobe.c.
"""

from __future__ import annotations

import os
import re

from fetchc.program.entities import Absent, Indirect, Named, Variable
from fetchc.program.types import (
    ArrayType,
    CharType,
    IntType,
    NamedType,
    PointerType,
    QualifiedType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.btf.kernel_program import BtfProgram
    from fetchc.program.entities import Place
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

    Field = tuple[Variable, Place]

__all__ = ["TRACEFS", "fields_by_format", "fields_by_types", "running_events"]

TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
RECORD = "trace_event_raw_"
_FIELD = re.compile(
    r"\tfield:(?P<type>[^;]+?) ?(?P<name>\w+)(?P<array>\[[^\]]*\])?;"
    r"\toffset:\d+;\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);"
)
_DYNAMIC = re.compile(r"__(?:data|rel)_loc (?P<element>.+)\[\]\Z")
_SYSCALLS = "syscalls"  # the group whose pointers are all the program's
_DEEPEST = 64
_WORDS = (2, 4, 8)  # bytes of an array that is read whole, as a number


def running_events() -> Iterator[str]:
    """``GROUP:NAME`` of the running kernel's events; none where it does not show them."""
    for root in TRACEFS:
        try:
            with open(os.path.join(root, "available_events"), encoding="utf-8") as file:
                yield from file.read().split()
        except OSError:
            continue
        return


def fields_by_format(program: BtfProgram, group: str, name: str) -> tuple[Field, ...] | None:
    """The fields that the running kernel tells of; None where it does not, or has no such event."""
    for root in TRACEFS:
        try:
            with open(
                os.path.join(root, "events", group, name, "format"), encoding="utf-8"
            ) as file:
                text = file.read()
        except OSError:
            continue
        return tuple(_read(program, text, group == _SYSCALLS))
    return None


def _read(program: BtfProgram, text: str, of_user: bool) -> Iterator[Field]:
    for number, line in enumerate(text.split("\n")):
        matched = _FIELD.match(line)
        if matched is None or matched["name"].startswith("common_"):
            continue
        type_id = _type(program, matched, of_user)
        place = _place(program, type_id, matched["name"], _is_array(matched))
        yield Variable(matched["name"], type_id, "parameter", DieOffset(number), 0), place


def _is_array(matched: re.Match[str]) -> bool:
    return matched["array"] is not None or _DYNAMIC.match(matched["type"]) is not None


def _type(program: BtfProgram, matched: re.Match[str], of_user: bool) -> TypeId:
    dynamic = _DYNAMIC.match(matched["type"])
    words = matched["type"] if dynamic is None else dynamic["element"]
    size, signed = int(matched["size"]), matched["signed"] == "1"
    if dynamic is not None or matched["array"]:
        element = _plain(program, words, 0, signed)
        each = _size(program, element)
        count = size // each if each and dynamic is None else None
        whole = None if count is None else ByteSize(count * (each or 0))
        return program.intern(ArrayType("", element, count, whole))
    # `const char *const *`: what the pointers themselves are does not matter.
    target, stars = words.partition("*")[0].strip(), words.count("*")
    if not stars:
        return _plain(program, words, size, signed)
    found = program.types_named(target, None)
    type_id = found[0] if found else program.intern(VoidType())
    for _ in range(stars):
        if of_user:
            type_id = program.intern(QualifiedType("__user", type_id))
        type_id = program.intern(PointerType("", ByteSize(program.word_bytes), type_id))
    return type_id


def _plain(program: BtfProgram, words: str, size: int, signed: bool) -> TypeId:
    # System calls have all their numbers in words: the declared type says what counts.
    found = program.types_named(words, None)
    if found and (not size or (_size(program, found[0]) or size + 1) <= size):
        return found[0]
    return program.intern(IntType(words, ByteSize(size or 1), signed))


def _bare(program: BtfProgram, type_id: TypeId) -> Type:
    for _ in range(_DEEPEST):
        found = program.type(type_id)
        if not isinstance(found, NamedType | QualifiedType):
            return found
        type_id = found.target
    return program.type(type_id)


def _size(program: BtfProgram, type_id: TypeId) -> int | None:
    size = getattr(_bare(program, type_id), "size", None)
    return None if size is None else int(size)


def _place(program: BtfProgram, type_id: TypeId, name: str, is_array: bool) -> Place:
    if not is_array:
        pointed = _bare(program, type_id)
        texts = isinstance(pointed, PointerType) and _is_character(program, pointed.target)
        return Named("event_text_pointer" if texts else "event_field", f"${name}")
    array = program.type(type_id)
    assert isinstance(array, ArrayType)
    if _is_character(program, array.element):
        return Named("event_field", f"${name}", text=True)
    if array.count is None:
        return Absent(
            "computed", "the record says where it is, and an event probe takes no such array"
        )
    size = array.count * (_size(program, array.element) or 0)
    if size in _WORDS and program.little_endian:
        return Named("event_field", f"${name}")  # all of it, as one number
    if size > program.word_bytes:
        return Indirect(Named("event_array", f"${name}"), ByteOffset(0))
    return Absent("in pieces", "it is an array, and an event probe can read only its first element")


def _is_character(program: BtfProgram, type_id: TypeId) -> bool:
    found = _bare(program, type_id)
    return isinstance(found, CharType) and found.name == "char"


def fields_by_types(program: BtfProgram, name: str) -> tuple[Field, ...] | None:
    """The fields of an event by the structure of its record; None where there is none."""
    records = program.types_named(f"struct {RECORD}{name}", None)
    if len(records) != 1:
        return None
    record = program.type(records[0])
    assert isinstance(record, StructType)
    found: list[Field] = []
    for number, member in enumerate(record.members):
        if member.name in ("ent", "__data"):
            continue
        plain = member.name.removeprefix("__data_loc_").removeprefix("__rel_loc_")
        place: Place
        if plain != member.name:
            why = "the BTF says where it is in the record, and not what: the running kernel does"
            place = Absent("computed", why)
        else:
            is_array = isinstance(program.type(member.type), ArrayType)
            place = _place(program, member.type, plain, is_array)
        found.append((Variable(plain, member.type, "parameter", DieOffset(number), 0), place))
    return tuple(found)
