"""What the second node of a pair changes of one term of the score, whatever the first one is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Vector = Any  # an element per candidate: an array, or ``Several`` without NumPy


class SecondStep:
    """What the secondary changes of a term, a figure of it: does not depend on the primary.

    Attributes:
        squares: what it adds to the sum of squares, times the number of nodes.
        shift: what it adds to the sum.
        squared: the square of that.
    """

    __slots__ = ("shift", "squared", "squares")

    def __init__(self, n: float, before: Vector, after: Vector) -> None:
        self.shift = after - before
        self.squares = (after * after - before * before) * n
        self.squared = self.shift * self.shift

    def patched(self, others: SecondStep, places: Sequence[tuple[int, int]]) -> SecondStep:
        """The same with some elements, given by position, of ``others``, given by number."""
        step = SecondStep.__new__(SecondStep)
        for name in SecondStep.__slots__:
            values, special = getattr(self, name).copy(), getattr(others, name)
            for position, number in places:
                values[position] = special[number]
            setattr(step, name, values)
        return step

    def change(self, n: float, sum_: float) -> Vector:
        """What is added to the variance of ``n`` figures, given their sum before."""
        return ((self.squares - self.shift * (2 * sum_)) - self.squared) / (n * n)
