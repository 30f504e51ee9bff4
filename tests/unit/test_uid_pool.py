"""Pools of user ids are sets, whatever ranges they were written in."""

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.model.uid_pool import (
    LOWEST,
    UidPool,
    format_uid_pool,
    parse_uid_pool,
    uids_within,
    with_uids,
    without_uids,
)

POOL: UidPool = ((70_000, 70_099), (70_200, 70_200))
ENDS = st.integers(LOWEST, LOWEST + 30)
POOLS = st.lists(st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends))), max_size=4).map(
    tuple
)


def ids(pool: Iterable[tuple[int, int]]) -> set[int]:
    return {uid for low, high in pool for uid in range(low, high + 1)}


def test_what_is_written_is_read() -> None:
    assert tuple(parse_uid_pool("70000-70099,70200")) == POOL
    assert format_uid_pool(POOL) == "70000-70099,70200"
    assert parse_uid_pool("") == []
    assert parse_uid_pool(" 70000 , ") == [(70_000, 70_000)]


@pytest.mark.parametrize("text", ["a", "1-2-3", "-5", "7e4", "70000:70001", "70000 70001"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no range of user ids"):
        parse_uid_pool(text)


@given(POOLS, POOLS)
def test_ids_are_added_and_taken_away_as_from_sets(pool: UidPool, other: UidPool) -> None:
    both = with_uids(pool, other)
    assert ids(both) == ids(pool) | ids(other)
    assert without_uids(both, both) == ()
    left = without_uids(both, other)
    assert ids(left) == (ids(pool) | ids(other)) - ids(other)
    for ordered in (both, left):
        flat = [end for ends in ordered for end in ends]
        assert flat == sorted(flat)
        assert all(b[0] - a[1] > 1 for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize("fewer", [((70_098, 70_101),), ((1_000, 1_000),), ((70_099, 70_200),)])
def test_ids_that_a_pool_does_not_have_cannot_be_taken_from_it(fewer: UidPool) -> None:
    with pytest.raises(ValueError, match="does not have all of"):
        without_uids(POOL, fewer)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="70005-70001"):
        with_uids(POOL, ((70_005, 70_001),))


def test_a_node_allows_some_of_a_pool() -> None:
    assert uids_within(POOL, range(70_090, 70_300)) == (
        range(70_090, 70_100), range(70_200, 70_201),
    )  # fmt: skip
    assert uids_within(POOL, range(80_000, 90_000)) == ()
