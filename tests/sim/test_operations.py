"""Every operation is broken at every place: failures are undone, crashes are resumed."""

from collections import defaultdict
from math import ceil

import pytest

from coordinator.operations.catalogue import CATALOGUE
from tests.sim.stories import AREAS, STORIES
from tests.support.crashing import for_every_change_of_sides, for_every_crash
from tests.support.failing import for_every_failure
from tests.support.seeds import is_quick
from tests.support.story import Told, undisturbed

FEW = 3  # of the stories of one operation that are told at length in a hurry


def _at_length() -> set[str]:
    """Choose whom to disturb at more than the fewest places: some of those that are alike."""
    if not is_quick():
        return {*STORIES}
    alike = defaultdict(list)
    for name, story in STORIES.items():
        alike[story.opcode].append(name)
    return {name for names in alike.values() for name in names[:: ceil(len(names) / FEW)]}


AT_LENGTH = _at_length()


@pytest.fixture(scope="module", params=STORIES)
def told(request: pytest.FixtureRequest) -> Told:
    """How a story goes when nothing disturbs it, which both tests about it have to know."""
    return undisturbed(
        request.param, STORIES[request.param], in_short=request.param not in AT_LENGTH
    )


def test_any_failure_restores_the_cluster(told: Told) -> None:
    for_every_failure(told)


def test_a_job_changes_nothing_on_a_node_that_it_has_not_locked(told: Told) -> None:
    assert not [str(trip) for trip in told.unlocked]


def test_what_is_cancelled_during_its_last_step_is_undone_unless_that_is_final(told: Told) -> None:
    """The job says so: what it had done is undone."""
    last = told.steps[-1] if told.steps else None
    if last is not None and last.edit and not any(step.point_of_no_return for step in told.steps):
        assert last.unedit or last.undo, f"nothing undoes “{last.title}”"


def test_any_crash_is_resumed(told: Told) -> None:
    for_every_crash(told)


@pytest.mark.parametrize(
    "told", [name for name in STORIES if STORIES[name].concerned], indirect=True, scope="module"
)
def test_a_job_ends_under_the_very_node_that_it_is_about(told: Told) -> None:
    for_every_change_of_sides(told)


def test_every_operation_has_a_story() -> None:
    told = {story.opcode for story in STORIES.values()}
    assert told == set(CATALOGUE), "an operation without a story is an operation without a test"


def test_no_two_stories_have_the_same_name() -> None:
    assert len(STORIES) == sum(len(area) for area in AREAS), "a story hides another one"
