"""Numbers side by side without NumPy, reckoned with as with an array of one dimension.

What is written for arrays does for them, so few nodes need neither a text of their own nor the
time that loading NumPy takes.
"""

from __future__ import annotations

import operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any


class Several:
    """Numbers, each added to its like in another, or to one number, and so on."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[float]) -> None:
        self._values = list(values)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[float]:
        return iter(self._values)

    def __getitem__(self, at: int) -> float:
        return self._values[at]

    def __setitem__(self, at: int, value: float) -> None:
        self._values[at] = value

    def copy(self) -> Several:
        """The same, to be changed on its own."""
        return Several(self._values)

    def tolist(self) -> list[float]:
        """The numbers."""
        return self._values

    def _each(self, change: Callable[[float, float], float], other: Any) -> Several:
        if isinstance(other, Several):
            return Several(map(change, self, other))
        return Several([change(one, other) for one in self])

    def __add__(self, other: Any) -> Several:
        return self._each(operator.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Several:
        return self._each(operator.sub, other)

    def __mul__(self, other: Any) -> Several:
        return self._each(operator.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Several:
        return self._each(operator.truediv, other)
