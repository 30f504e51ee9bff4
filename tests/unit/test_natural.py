"""The order of names."""

from hypothesis import given
from hypothesis import strategies as st

from common.natural import natural_key


def test_numbers_within_names_count_as_numbers() -> None:
    names = ["b10", "b2", "b", "a1.example.com", "a1", "a10", "a9", "b02", "10", "9", "9a"]
    assert sorted(names, key=natural_key) == [
        "9", "9a", "10", "a1", "a1.example.com", "a9", "a10", "b", "b02", "b2", "b10",
    ]  # fmt: skip


@given(st.text(alphabet="ab019.-", max_size=6), st.text(alphabet="ab019.-", max_size=6))
def test_of_two_names_one_comes_first(one: str, other: str) -> None:
    assert (natural_key(one) == natural_key(other)) is (one == other)
    assert sorted([one, other], key=natural_key) == sorted([other, one], key=natural_key)
