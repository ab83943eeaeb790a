"""Properties with a getter of their own: the fields that it returns, or why they are unknown."""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number
from fetchc.debuginfo.dotnet.class_layout import NUMBERS
from fetchc.debuginfo.dotnet.closed_types import Code, Instance, Items, overriding
from fetchc.debuginfo.dotnet.metadata_signatures import SignatureReader, class_spelled
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Property
from fetchc.program.types import Member, SequenceType, StructType
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.assemblies import Assembly
    from fetchc.debuginfo.dotnet.dotnet_types import DotnetTypes

__all__ = ["CALL", "LENGTH", "LOAD", "LOAD_ADDRESS", "Step", "property_of", "steps"]

# ------------------------------------------------------------------------------
# What the getter of a property returns, by its intermediate language: where that is one way from
# the object through fields and other getters.
#
# Source: ECMA-335, II.25.4 (method bodies), III (instructions).

TINY, FAT, FORMAT = 2, 3, 3  # of a body's header
MOST_BYTES = 64
NOP, THIS, FIRST_LOCAL, TO_FIRST_LOCAL, RETURN = 0x00, 0x02, 0x06, 0x0A, 0x2A
CALL, CALL_VIRTUAL, LOAD, LOAD_ADDRESS, LENGTH = 0x28, 0x6F, 0x7B, 0x7C, 0x8E
WITH_TOKEN = (CALL, CALL_VIRTUAL, LOAD, LOAD_ADDRESS)
AS_INT = 0x69  # conv.i4, after the length of an array
VOLATILE = b"\xfe\x13"
# Branches to the next instruction, of compilers that do not optimize.
NEXT = (b"\x2b\0", b"\x38\0\0\0\0")


class Step(Record):
    """An instruction that leads on from a value: to a field, a getter, the length of an array."""

    code: int
    token: int


def steps(assembly: Assembly, row: int) -> tuple[Step, ...] | None:
    """The way that a method without parameters goes from ``this`` to its result.

    None where it does anything else: computes, compares, has a side effect.
    """
    try:
        body = _body(assembly, row)
    except DebugInfoError:
        return None  # taken out of the image, or broken
    at, begun, stored = 0, False, False
    found: list[Step] = []
    while at < len(body):
        code = body[at]
        branch = next((one for one in NEXT if body.startswith(one, at)), b"")
        if code == RETURN:
            whole = at + 1 == len(body) and begun and not stored
            return tuple(found) if whole and found and found[-1].code != LOAD_ADDRESS else None
        if code == NOP:
            at += 1
        elif branch and stored:
            at += len(branch)
        elif body.startswith(VOLATILE, at):
            at += len(VOLATILE)
        elif code == THIS and not begun:
            begun, at = True, at + 1
        elif code in (TO_FIRST_LOCAL, FIRST_LOCAL) and stored == (code == FIRST_LOCAL) and found:
            stored, at = not stored, at + 1
        elif code in WITH_TOKEN and begun and not stored:
            found.append(Step(code, decode_number(body[at + 1 : at + 5], True)))
            at += 5
        elif code == LENGTH and body[at + 1 : at + 2] == bytes([AS_INT]) and found and not stored:
            found.append(Step(code, 0))
            at += 2
        else:
            return None
    return None


def _body(assembly: Assembly, row: int) -> bytes:
    address = assembly.metadata.row("MethodDef", row)[0]
    if not address:
        return b""
    cursor = assembly.image.cursor(address, "method body")
    head = cursor.u8()
    size = head >> 2
    if head & FORMAT == FAT:
        cursor.skip(3)
        size = cursor.u32()
        cursor.skip(4)
    elif head & FORMAT != TINY:
        return b""
    return bytes([cursor.u8() for _ in range(size)]) if size <= MOST_BYTES else b""


GET = "get_"
DEEPEST, MOST_STEPS = 8, 16  # getters that lead to others; only hostile ones go further
# MethodAttributes, TypeAttributes: ECMA-335, II.23.1.10 and II.23.1.15.
FINAL, VIRTUAL, ABSTRACT, SEALED = 0x20, 0x40, 0x400, 0x100
OVERRIDABLE = "it is virtual: a derived class can have another getter"
FIELD, MEMBER_REF, METHOD_DEF = 0x04, 0x0A, 0x06  # tables, by the first byte of a token
# Fields that are as they are in a wider number, too; a character is another thing there.
WIDENED = ("byte", "sbyte", "short", "ushort")


def property_of(types: DotnetTypes, number: int, name: str, program: Assembly) -> Property | None:
    """The property of that name of a closed type, of the nearest class that has one.

    Classes that have another getter are looked for in its own assembly and that of ``program``.
    """
    try:
        found = _property(types, number, name, False, DEEPEST)
        if found is not None and found.why == OVERRIDABLE:
            return Property(
                found.path, found.why, found.getter, _others(types, number, name, program)
            )
    except DebugInfoError:
        return None  # of an assembly that is not at hand, or broken
    return found


def _others(types: DotnetTypes, number: int, name: str, program: Assembly) -> tuple[str, ...]:
    getter = _getter(types, number, name)
    assert getter is not None
    instance, references = types.closed.instance(number), types.closed.references
    declaring = types.closed.instance(getter[0])
    found = []
    for one in dict.fromkeys((declaring.assembly, instance.assembly, program)):
        rows = overriding(references, one, (instance.assembly, instance.row), GET + name)
        found += [class_spelled(one.type_name(row), ()) for row in rows]
    return tuple(found)


def _property(
    types: DotnetTypes, number: int, name: str, direct: bool, depth: int
) -> Property | None:
    # ``direct``: the getter of this very class is called, whatever the object is of.
    found = _getter(types, number, name)
    if found is None:
        return None
    owner, row = found
    instance = types.closed.instance(owner)
    flags = instance.assembly.metadata.row("MethodDef", row)[2]
    shown = types.closed.spelled(owner)
    if flags & ABSTRACT:
        return Property((), "what it is, each class says for itself", f"{shown}.{GET}{name}")
    path = _path(types, owner, row, depth) or _computed_member(types, owner, name)
    asked = types.closed.instance(number)
    sealed = asked.assembly.metadata.row("TypeDef", asked.row)[0] & SEALED
    why = ""
    if not path:
        why = "its getter computes it"
    elif flags & VIRTUAL and not (flags & FINAL or sealed or direct):
        why = OVERRIDABLE
    return Property(path, why, f"{shown}.{GET}{name}")


def _getter(types: DotnetTypes, number: int, name: str) -> tuple[int, int] | None:
    # The class that declares it, and the method.
    closed = types.closed
    for one in closed.bases(number) if isinstance(closed.types[number], Instance) else ():
        instance = closed.instance(one)
        for row in instance.assembly.methods(instance.row):
            if instance.assembly.method_name(row) == GET + name:
                signature = instance.assembly.method_signature(row)
                if signature.receives and not signature.parameters:
                    return one, row
    return None


def _path(types: DotnetTypes, owner: int, row: int, depth: int) -> tuple[Member, ...]:
    closed, instance = types.closed, types.closed.instance(owner)
    path: list[Member] = []
    current = owner
    for step in steps(instance.assembly, row) or ():
        if not depth or len(path) > MOST_STEPS:
            return ()
        if step.code == LENGTH:
            found = _length(types, current)
        elif step.code in (LOAD, LOAD_ADDRESS):
            found = _field(types, instance, step.token, current)
        else:
            found = _called(types, instance, step.token, current, step.code == CALL, depth - 1)
        if found is None:
            return ()
        path += found[0]
        current = found[1]
    result = instance.assembly.method_signature(row).result
    returned = closed.close(instance.assembly, result, instance.arguments)
    if path and returned != current:
        return _as_returned(types, path, current, returned)
    return tuple(path)


def _as_returned(
    types: DotnetTypes, path: list[Member], field_type: int, returned: int
) -> tuple[Member, ...]:
    # The value as what the getter returns: a field of another type can be that, too.
    if types.is_reference(field_type) and types.is_reference(returned):
        return tuple(path)
    codes = [types.closed.types[types.closed.plain(one)] for one in (field_type, returned)]
    names = [one.name if isinstance(one, Code) else "" for one in codes]
    sizes = [NUMBERS.get(name, 0) for name in names]
    if sizes[0] and sizes[0] == sizes[1]:
        last = path[-1]
        return (*path[:-1], last.replaced(type=types.variable(returned)))
    return tuple(path) if names[0] in WIDENED and sizes[0] < sizes[1] else ()


def _computed_member(types: DotnetTypes, owner: int, name: str) -> tuple[Member, ...]:
    # What the type itself has of that name: the length of a string, the count of a dictionary.
    resolved = types.type(types.object(owner))
    if isinstance(resolved, SequenceType) and resolved.length.name == name:
        return (resolved.length,)
    computed = resolved.computed_members if isinstance(resolved, StructType) else ()
    return tuple([one for one in computed if one.name == name])


def _length(types: DotnetTypes, current: int) -> tuple[tuple[Member, ...], int] | None:
    resolved = types.type(types.object(current))
    if not isinstance(types.closed.types[current], Items) or not isinstance(resolved, SequenceType):
        return None
    return (resolved.length,), types.closed.code("int")


def _field(
    types: DotnetTypes, user: Instance, token: int, current: int
) -> tuple[tuple[Member, ...], int] | None:
    # The field of ``current`` that a token of ``user`` means.
    closed, row = types.closed, token & 0xFFFFFF
    name, of = "", -1
    if token >> 24 == MEMBER_REF:
        name, of = _reference(types, user, row)
    elif token >> 24 != FIELD:
        return None
    for one in closed.bases(current) if isinstance(closed.types[current], Instance) else ():
        instance = closed.instance(one)
        layout = types.layouts.of(one)
        for field in layout.fields:
            own = field.row == row and instance.assembly is user.assembly and of < 0
            if own or (one == of and field.name == name):
                return (types.member(field, one, layout.repeated),), field.type
    return None


def _called(
    types: DotnetTypes, user: Instance, token: int, current: int, direct: bool, depth: int
) -> tuple[tuple[Member, ...], int] | None:
    # The property of ``current`` whose getter a token of ``user`` means.
    closed, row = types.closed, token & 0xFFFFFF
    if token >> 24 == MEMBER_REF:
        name, of = _reference(types, user, row)
    elif token >> 24 == METHOD_DEF:
        name, declared = user.assembly.method_name(row), user.assembly.owner(row)
        named = closed.bases(current) if isinstance(closed.types[current], Instance) else []
        of = next((one for one in named if _is(closed.instance(one), user.assembly, declared)), -1)
    else:
        return None
    if not name.startswith(GET) or of < 0 or of not in closed.bases(current):
        return None
    found = _property(types, of if direct else current, name.removeprefix(GET), direct, depth)
    getter = _getter(types, of, name.removeprefix(GET))
    if found is None or getter is None or found.why:
        return None
    instance = closed.instance(getter[0])
    result = instance.assembly.method_signature(getter[1]).result
    return found.path, closed.close(instance.assembly, result, instance.arguments)


def _is(instance: Instance, assembly: Assembly, row: int) -> bool:
    return instance.assembly is assembly and instance.row == row


def _reference(types: DotnetTypes, user: Instance, row: int) -> tuple[str, int]:
    # The name of a member that is referred to, and the closed type that has it; -1 of others.
    metadata = user.assembly.metadata
    parent, name, _ = metadata.row("MemberRef", row)
    token = metadata.coded("MemberRefParent", parent)
    if token.table == "TypeSpec":
        blob = metadata.blob(metadata.row("TypeSpec", token.number)[0])
        signature = SignatureReader(metadata, blob).type()
        return metadata.text(name), types.closed.close(user.assembly, signature, user.arguments)
    if token.table not in ("TypeDef", "TypeRef"):
        return "", -1
    assembly, found = types.closed.references.resolve(user.assembly, token)
    return metadata.text(name), types.closed.number(Instance(assembly, found, ()))
