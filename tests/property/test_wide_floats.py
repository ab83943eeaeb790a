"""`long double` and `__float128` as text: the fewest digits that are the number and no other."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.tracer.display_values import NOTATIONS

HIGHEST = 1 << 63


def x87(mantissa: int, exponent: int, negative: bool = False) -> str | None:
    """The text of these 80 bits."""
    return NOTATIONS["x87 extended"]({"low": mantissa, "high": negative << 15 | exponent})


@given(st.integers(HIGHEST, 2 * HIGHEST - 1), st.integers(1, 0x7FFE), st.booleans())
def test_the_text_is_that_number_alone(mantissa: int, exponent: int, negative: bool) -> None:
    text = x87(mantissa, exponent, negative)
    assert text is not None
    unit = Fraction(2) ** (exponent - 0x3FFF - 63)
    value = mantissa * unit * (-1 if negative else 1)
    assert abs(Fraction(text) - value) <= unit / 2
    digits = len(Decimal(text).normalize().as_tuple().digits)
    assert digits <= 21
    if mantissa > HIGHEST and digits > 1:  # with a digit less it is another number
        shorter = Fraction(f"{Decimal(text):.{digits - 2}e}")
        assert abs(shorter - value) >= unit / 2


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=1e-300).map(abs))
def test_a_double_is_the_same_in_each_format(number: float) -> None:
    numerator, denominator = number.as_integer_ratio()
    exponent = numerator.bit_length() - denominator.bit_length()
    significand = Fraction(number) / Fraction(2) ** exponent
    if significand < 1:
        exponent, significand = exponent - 1, 2 * significand
    text = x87(int(significand * HIGHEST), exponent + 0x3FFF)
    stored = int((significand - 1) * (1 << 112))
    words = {"low": stored & (1 << 64) - 1, "high": exponent + 0x3FFF << 48 | stored >> 64}
    assert text is not None
    assert float(text) == number
    assert float(NOTATIONS["binary128"](words) or "") == number


@pytest.mark.parametrize(
    ("mantissa", "exponent", "text"),
    [
        (0xCCCCCCCCCCCCCCCD, 0x3FFB, "0.1"),  # 0.1L of gcc
        (1, 0, "4e-4951"),  # LDBL_TRUE_MIN
        (2 * HIGHEST - 1, 0x7FFE, "1.189731495357231765e+4932"),  # LDBL_MAX
        (HIGHEST, 0x3FFF, "1.0"),
        (0, 0, "0.0"),
        (HIGHEST, 0x7FFF, "Infinity"),
        (3 << 62, 0x7FFF, "NaN"),
        (HIGHEST, 0, "3.3621031431120935063e-4932"),  # a pseudo-denormal: exponent 0 counts as 1
        (1, 0x3FFF, None),  # an unnormal: its highest bit is missing
    ],
)
def test_numbers_of_the_x87(mantissa: int, exponent: int, text: str | None) -> None:
    assert x87(mantissa, exponent) == text
