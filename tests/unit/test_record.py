"""Records are declared as dataclasses are, and keep the same promises."""

from functools import cached_property

import pytest

from common.record import Record, fields_of, replace, values_of


class Size(Record):
    width: int
    height: int
    unit: str = "MiB"

    @cached_property
    def area(self) -> int:
        return self.width * self.height


class Other(Record):
    width: int
    height: int
    unit: str = "MiB"


def test_values_are_given_in_order_or_by_name() -> None:
    size = Size(3, height=4)
    assert (size.width, size.height, size.unit) == (3, 4, "MiB")
    assert fields_of(Size) == ("width", "height", "unit")
    assert values_of(size) == (3, 4, "MiB")


@pytest.mark.parametrize(
    "values", [{"width": 1}, {"width": 1, "height": 2, "depth": 3}, {"height": 1, "unit": "GiB"}]
)
def test_a_missing_or_unknown_field_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="A Size has width, height, unit"):
        Size(**values)  # type: ignore[arg-type]


def test_more_values_than_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="A Size has width, height, unit"):
        Size(1, 2, "GiB", 4)  # type: ignore[call-arg]


def test_a_field_cannot_be_set() -> None:
    size = Size(1, 2)
    with pytest.raises(AttributeError, match="width of a Size"):
        size.width = 3  # type: ignore[misc]
    assert size.width == 1


def test_a_copy_has_the_changes_and_computes_anew_what_was_cached() -> None:
    size = Size(3, 4)
    assert size.area == 12
    changed = replace(size, height=5, unit="GiB")
    assert changed == Size(3, 5, "GiB")
    assert changed.area == 15
    assert size == Size(3, 4)


def test_records_are_equal_by_kind_and_values() -> None:
    assert Size(1, 2) == Size(1, 2)
    assert hash(Size(1, 2)) == hash(Size(1, 2))
    assert Size(1, 2) != Size(1, 3)
    assert Size(1, 2) != Other(1, 2)


def test_a_record_shows_its_values() -> None:
    assert repr(Size(1, 2)) == "Size(width=1, height=2, unit='MiB')"
