"""Numbers are read, and shown, as Haskell's programs do; tried with Debian's."""

import math

import pytest

from coordinator.htools.numbers import amount, real, whole
from coordinator.htools.tables import show, show_g


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), (" 5", 5), ("-5", -5), ("- 5", -5), ("0x10", 16), ("0o7", 7), ("007", 7)],
)
def test_whole_numbers(text: str, value: int) -> None:
    assert whole(text) == value
    assert real(text) == value


@pytest.mark.parametrize(
    "text", ["", "5 ", "+5", "1_0", "1e3", "1.0", ".5", "5.", "NaN", "--5", "0b1", "٣", "9" * 20]
)
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no whole number|is too large"):
        whole(text)


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("1e-3", 0.001), ("-2E3", -2000.0)])
def test_real_numbers(text: str, value: float) -> None:
    assert real(text) == value
    assert amount(text) == value


def test_numbers_that_are_none() -> None:
    assert math.isnan(real("NaN"))
    assert real("-Infinity") == -math.inf
    for text in ("NaN", "Infinity", "1e400", "1e300"):
        with pytest.raises(ValueError, match="is no amount"):
            amount(text)


@pytest.mark.parametrize("text", ["", "nan", "inf", "+1.5", ".5", "5.", "1.5 ", "1_0.0", "0x1p3"])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="is no number"):
        real(text)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.46175, 4, "0.4618"),  # as a float it is less
        (0.70545, 4, "0.7054"),  # and this is more
        (0.001953125, 8, "0.00195312"),
        (5e-9, 8, "0.00000000"),
        (-1e-12, 8, "-0.00000000"),
        (1e22, 2, "10000000000000000000000.00"),
        (math.nan, 8, "NaN"),
        (-math.inf, 8, "-Infinity"),
    ],
)
def test_rounding_is_decimal(value: float, digits: int, text: str) -> None:
    assert show(value, digits) == text


def test_small_numbers_have_an_exponent() -> None:
    assert show_g(0.0) == "0.000000"
    assert show_g(3.4641016) == "3.464102"
    assert show_g(1e-9) == "1.000000e-9"
