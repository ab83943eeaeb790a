"""Frames of .NET's methods by their prologues, against the UNWIND_INFO of precompiled ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.ready_to_run import RUNTIME_FUNCTIONS, ReadyToRun
from fetchc.debuginfo.unwind_tables import frame_pointer_row, prologue_row
from fetchc.program.entities import InMemory
from fetchc.quantities import ByteOffset
from fetchc.target.machines import architecture
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, framework, missing

MACHINE = architecture("x86_64")
BY_FRAME_POINTER = frame_pointer_row(MACHINE)


def unwind_info(image: Assembly, address: int) -> ByteOffset | None:
    """The bytes from the stack pointer to after the return address; None with a frame pointer.

    Source: "x64 exception handling", UNWIND_INFO, of Microsoft's documentation; what CoreCLR adds
    (UWOP_SET_FPREG_LARGE): dotnet/runtime, src/coreclr/inc/win64unwind.h.
    """
    count = image.image.cursor(address + 2, "count of codes", 1).u8()
    codes = image.image.cursor(address + 4, "codes", 2 * count)
    slots = [codes.u16() for _ in range(count)]
    size, at, operation = 8, 0, (0, 0)
    while at < count:
        operation = slots[at] >> 8 & 15, slots[at] >> 12
        match operation:
            case (0, _):  # push of a register
                size, at = size + 8, at + 1
            case (1, 0):
                size, at = size + 8 * slots[at + 1], at + 2
            case (1, _):
                size, at = size + slots[at + 1] + (slots[at + 2] << 16), at + 3
            case (2, eighths):
                size, at = size + 8 * eighths + 8, at + 1
            case (number, _):
                at += {3: 1, 4: 2, 5: 3, 8: 2, 9: 3, 11: 3}[number]
    # The last one is of the first instruction: push %rbp.
    return None if operation == (0, 5) else ByteOffset(size)


@pytest.mark.parametrize(
    ("runtime", "name"),
    [
        (NET9, "System.Text.Json"), (NET9, "System.Linq"), (NETCORE31, "System.Private.Xml"),
        (NETCORE21, "System.Linq.Expressions"),
        (NET9, "System.Private.CoreLib"),
    ],
)  # fmt: skip
def test_a_prologue_says_what_the_unwind_information_says(runtime: Path, name: str) -> None:
    if reason := missing(runtime):
        pytest.skip(reason)
    image = Assembly(framework(runtime, name))
    native = image.native
    assert isinstance(native, ReadyToRun)
    table, size = native._sections[RUNTIME_FUNCTIONS]
    functions = struct.iter_unpack("<III", image.image.cursor(table, "functions", size).take(size))
    with_pointer = without = 0
    for begin, end, info in functions:
        some = min(24, end - begin)
        found = prologue_row(image.image.cursor(begin, "code", some).take(some))
        expected = unwind_info(image, info)
        if expected is None:
            assert found == BY_FRAME_POINTER
            with_pointer += 1
        else:
            assert found.cfa == InMemory(MACHINE.stack_pointer, expected), hex(begin)
            without += 1
    assert min(with_pointer, without) > 400
