"""The archives of two replicas become the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import NodeFailure
from common.model.commit import ARCHIVE
from common.names import JobId
from coordinator.state.levelling import Levelling, Span, missing
from tests.support.clock import simulate
from tests.support.replicas import MemoryReplica, row

NUMBERS = st.sets(st.integers(1, 40))


def _spans(numbers: set[int]) -> list[Span]:
    firsts = [JobId(n) for n in sorted(numbers) if n - 1 not in numbers]
    lasts = [JobId(n) for n in sorted(numbers) if n + 1 not in numbers]
    return list(zip(firsts, lasts, strict=True))


@given(NUMBERS, NUMBERS)
def test_missing_is_the_difference_of_the_sets(has: set[int], lacks: set[int]) -> None:
    found = [n for low, high in missing(_spans(has), _spans(lacks)) for n in range(low, high + 1)]
    assert found == sorted(has - lacks)


async def _level(mine: MemoryReplica, theirs: MemoryReplica) -> None:
    levelling = Levelling(mine, theirs)
    while not levelling.is_done:
        await levelling.step()


async def _archive(numbers: set[int]) -> MemoryReplica:
    replica = MemoryReplica()
    await replica.fill_archive(rows=tuple(row((ARCHIVE, str(n)), b"{}") for n in numbers))
    return replica


@given(NUMBERS, NUMBERS)
def test_two_archives_end_with_what_either_had(one: set[int], other: set[int]) -> None:
    async def story() -> None:
        mine, theirs = await _archive(one), await _archive(other)
        await _level(mine, theirs)
        assert mine.archive == theirs.archive
        assert set(mine.archive) == one | other

    simulate(story())


def test_a_long_archive_goes_page_by_page() -> None:
    async def story() -> None:
        mine, theirs = await _archive(set(range(1, 1001))), await _archive({500})
        await _level(mine, theirs)
        assert mine.archive == theirs.archive

    simulate(story())


def test_a_step_that_fails_is_made_again() -> None:
    class Full(MemoryReplica):
        async def fill_archive(self, **arguments: object) -> None:
            raise NodeFailure("The disk is full.")

    async def story() -> None:
        mine, theirs = await _archive({1, 2, 3}), Full()
        levelling = Levelling(mine, theirs)
        await levelling.step()
        for _ in range(2):
            with pytest.raises(NodeFailure):
                await levelling.step()
            assert not levelling.is_done

    simulate(story())
