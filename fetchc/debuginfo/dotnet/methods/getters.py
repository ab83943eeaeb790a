"""What the getter of a property returns, by its intermediate language: where that is one way from
the object through fields and other getters.

Source: ECMA-335, II.25.4 (method bodies), III (instructions).
"""

from __future__ import annotations

from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["CALL", "LENGTH", "LOAD", "LOAD_ADDRESS", "Step", "steps"]

TINY, FAT, FORMAT = 2, 3, 3  # of a body's header
MOST_BYTES = 64
NOP, THIS, FIRST_LOCAL, TO_FIRST_LOCAL, RETURN = 0x00, 0x02, 0x06, 0x0A, 0x2A
CALL, CALL_VIRTUAL, LOAD, LOAD_ADDRESS, LENGTH = 0x28, 0x6F, 0x7B, 0x7C, 0x8E
WITH_TOKEN = (CALL, CALL_VIRTUAL, LOAD, LOAD_ADDRESS)
AS_INT = 0x69  # conv.i4, behind the length of an array
VOLATILE = b"\xfe\x13"
# Branches to the next instruction, of compilers that do not optimise.
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
    at, begun, kept = 0, False, False
    found: list[Step] = []
    while at < len(body):
        code = body[at]
        branch = next((one for one in NEXT if body.startswith(one, at)), b"")
        if code == RETURN:
            whole = at + 1 == len(body) and begun and not kept
            return tuple(found) if whole and found and found[-1].code != LOAD_ADDRESS else None
        if code == NOP:
            at += 1
        elif branch and kept:
            at += len(branch)
        elif body.startswith(VOLATILE, at):
            at += len(VOLATILE)
        elif code == THIS and not begun:
            begun, at = True, at + 1
        elif code in (TO_FIRST_LOCAL, FIRST_LOCAL) and kept == (code == FIRST_LOCAL) and found:
            kept, at = not kept, at + 1
        elif code in WITH_TOKEN and begun and not kept:
            found.append(Step(code, int.from_bytes(body[at + 1 : at + 5], "little")))
            at += 5
        elif code == LENGTH and body[at + 1 : at + 2] == bytes([AS_INT]) and found and not kept:
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
