"""Pointers to where no memory can be, against the kernel: it maps a page there or cannot."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
from collections.abc import Callable
from random import Random

import pytest

from fetchc.ir.fetch import Decode
from fetchc.tracer.decode import reader
from fetchc.tracer.display_values import Hexadecimal, NoAddress, printed
from fetchc.tracer.events import EventValue, Plan
from fetchc.tracer.guards import address_of_kernel, address_of_program
from fetchc.tracer.value_shapes import DifferenceShape, Leaf, NumbersShape, Shape, StructShape
from tests.support.records import format_of, record
from tests.support.seeds import seeds

PAGE = mmap.PAGESIZE
FIXED_NOREPLACE = 0x100000
POINTER = Decode("pointer", 64)
POISON, ERROR, OF_KERNEL, NEAR = (
    0x5A5A5A5A5A5A5A5A,
    2**64 - 22,
    0xFFFF_8880_0000_1000,
    0x7F0000001000,
)


def can_have(address: int) -> bool:
    """Whether the kernel lets this process have memory in the page of ``address``."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    page = address & -PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED_NOREPLACE
    found = library.mmap(page, PAGE, 0, flags, -1, 0)
    if found in (None, 2**64 - 1):
        return ctypes.get_errno() == errno.EEXIST
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.munmap(found, PAGE)
    return bool(found == page)


@pytest.mark.parametrize("seed", seeds())
def test_the_kernel_maps_no_page_where_a_pointer_is_marked(seed: int) -> None:
    random = Random(seed)
    numbers = [random.getrandbits(random.randrange(24, 65)) for _ in range(400)]
    numbers += [POISON, ERROR, OF_KERNEL, NEAR, (1 << 47) - 2 * PAGE, 1 << 47, 1 << 56, 1 << 63]
    counted = [0, 0]
    for number in (number for number in numbers if number >= 1 << 20):
        marked = isinstance(address_of_program(number), NoAddress)
        assert marked == (not can_have(number)), hex(number)
        counted[marked] += 1
    assert min(counted) > 50


@pytest.mark.parametrize(
    ("number", "of_program", "of_kernel"),
    [
        (0, True, True),
        (1, True, True),  # as people write them: SIG_IGN
        (NEAR, True, True),
        (OF_KERNEL, False, True),
        (0xFFFF_FFFF_8100_0000, False, True),
        (0xFFFF_FFFF_FF60_0400, True, True),  # time() of the page of old system calls
        (ERROR, False, False),
        (2**64 - 1, False, False),  # MAP_FAILED
        (0xDEAD_0000_0000_0100, False, False),  # LIST_POISON1
        (POISON, False, False),
    ],
)
def test_each_side_has_its_own_addresses(number: int, of_program: bool, of_kernel: bool) -> None:
    ways: list[tuple[Callable[[int], Hexadecimal], bool]] = [
        (address_of_program, of_program),
        (address_of_kernel, of_kernel),
    ]
    for way, wanted in ways:
        assert way(number) == number
        assert isinstance(way(number), NoAddress) != wanted


def shown(probed: str) -> list[tuple[str, str]]:
    fields = [("a", "Q"), ("b", "Q")]
    leaf = Leaf("a", POINTER)
    shapes: dict[str, Shape] = {
        "alone": leaf,
        "symbol": Leaf("a", Decode("symbol", 64)),
        "reference": Leaf("a", Decode("reference", 64)),
        "row": NumbersShape("a", POINTER, 2, 8),
        "member": StructShape((("x", leaf),)),
        "moved": DifferenceShape(Leaf("b", POINTER), 0x10),
        "bits": Leaf("a", Decode("address", 64)),
    }
    wanted = tuple([EventValue(label, shape) for label, shape in shapes.items()])
    plan = Plan("g", "ev", "/a", "f", "entry", 0, (f"p:g/ev {probed}",), wanted)
    values, faults = reader(plan, format_of(fields), None, lambda thread, address: None)(
        record(fields, [OF_KERNEL, 8])
    )
    assert not faults
    assert json.loads(json.dumps(values["row"])) == [OF_KERNEL, 8]
    return [(label, printed(value)) for label, value in values.items()]


def test_every_kind_of_pointer_is_marked() -> None:
    plain = f"{OF_KERNEL:#x}"
    text = f"{plain} (no address)"
    assert shown("/bin/true:0x10") == [
        ("alone", text),
        ("symbol", text),
        ("reference", text),
        ("row", f"[{text}, 0x8]"),
        ("member", f"{{x={text}}}"),
        ("moved", "0xfffffffffffffff8 (no address)"),
        ("bits", plain),
    ]
    assert shown("vfs_read")[0] == ("alone", plain)
    assert shown("vfs_read")[5] == ("moved", "0xfffffffffffffff8 (no address)")
