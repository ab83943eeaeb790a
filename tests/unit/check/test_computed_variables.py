"""Which bits of a computed place are those of the variable."""

from __future__ import annotations

import pytest

from fetchc.check.computed_variables import is_certain
from fetchc.program.entities import Arithmetic, Constant, InRegister, Place
from fetchc.quantities import DwarfRegister

WORD = 64
REGISTER = InRegister(DwarfRegister(5))


def of(operation: str, *operands: Place | int) -> Arithmetic:
    places = [Constant(one) if isinstance(one, int) else one for one in operands]
    return Arithmetic(operation, tuple(places))


EXTENDED = of("shra", of("shl", REGISTER, 32), 32)
MASKED = of("and", REGISTER, 0xFFFFFFFF)
QUOTIENT = of("div", REGISTER, 8)


@pytest.mark.parametrize(
    ("place", "bits", "certain"),
    [
        (of("shl", REGISTER, 3), 32, True),
        (of("neg", of("plus", REGISTER, of("mul", REGISTER, -2))), 32, True),
        (of("plus", of("mul", EXTENDED, 24), REGISTER), 64, True),
        (QUOTIENT, 64, True),
        (QUOTIENT, 32, False),
        (of("div", EXTENDED, 8), 32, False),  # of an `int`, or of the word that it is extended to
        (of("shra", of("shl", QUOTIENT, 32), 32), 64, False),  # a quotient that is an `int`
        (of("shr", MASKED, 11), 64, True),
        (of("minus", REGISTER, of("and", of("shr", EXTENDED, 11), 0xFFFFFFFF)), 64, False),
        (of("and", of("shr", REGISTER, 3), 1), 8, True),
        (of("and", of("shr", REGISTER, 3), 0xFF), 32, False),
        (of("shr", REGISTER, REGISTER), 64, False),
        (of("shl", REGISTER, REGISTER), 64, False),
        (of("mod", REGISTER, 8), 64, False),  # signed or unsigned: compilers differ
        (of("eq", of("shl", REGISTER, 32), of("shl", 16, 28)), 32, True),
        (of("eq", of("shl", QUOTIENT, 32), 0), 32, False),
        (of("ne", MASKED, 0), 8, False),
    ],
)
def test_bits_that_other_bits_decide_are_not_certain(
    place: Place, bits: int, certain: bool
) -> None:
    assert is_certain(place, bits, WORD) is certain
