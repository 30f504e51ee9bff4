"""Numbers as Haskell's printf writes them, which Debian's tools print with."""

import math

import pytest

from coordinator.allocator.arithmetic import ratio
from coordinator.htools.tables import show, show_g


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.56655, 4, "0.5666"),  # in binary it is a little less than that
        (0.56645, 4, "0.5664"),  # half to even
        (0.1, 8, "0.10000000"),
        (-0.5, 0, "-0"),
        (1e22, 2, "10000000000000000000000.00"),
        (math.nan, 8, "NaN"),
        (math.inf, 4, "Infinity"),
        (-math.inf, 4, "-Infinity"),
    ],
)
def test_fixed(value: float, digits: int, text: str) -> None:
    assert show(value, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000000"), (3.4641016, "3.464102"), (1e-9, "1.000000e-9"),
        (0.1, "0.100000"), (9999999.0, "9999999.000000"), (12345678901.0, "1.234568e10"),
    ],
)  # fmt: skip
def test_general(value: float, text: str) -> None:
    assert show_g(value) == text


def test_shares_of_nothing_are_told_as_haskell_divides() -> None:
    shares = [show(ratio(part, whole), 1) for part, whole in ((1, 2), (3, 0), (-3, 0), (0, 0))]
    assert shares == ["0.5", "Infinity", "-Infinity", "NaN"]
