"""The recipe runner on steps that only note what was done with them."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Bug, Cancelled, Conflict, GntError, NodeFailure, Stuck, Unreachable
from coordinator.jobs.recipe import run
from coordinator.operations.step import Action, Edit, Step, act, record
from coordinator.state.rows import Update
from coordinator.state.state import State
from tests.support.clock import simulate


class Crash(BaseException):
    """The coordinator is killed."""


@dataclass
class MemoryJournal:
    """Keeps what a job's row would; what was only noted is lost in a crash."""

    durable: list[tuple[str, str]] = field(default_factory=list)
    noted: list[tuple[str, str]] = field(default_factory=list)
    failure: GntError | None = None
    cancelled: bool = False
    said: list[str] = field(default_factory=list)
    writes: int = 0
    dies_at: int = -1  # number of the write after which the coordinator is killed

    def has(self, event: str, step: str) -> bool:
        return (event, step) in (*self.durable, *self.noted)

    def note(self, event: str, step: str) -> None:
        self.noted.append((event, step))

    async def write(self, event: str, step: str, edit: Edit | None = None) -> None:
        if edit is not None:
            list(edit(State()))
        self.note(event, step)
        self._store()

    async def fail(self, failure: GntError) -> None:
        self.failure = failure
        self._store()

    def check_not_cancelled(self) -> None:
        if self.cancelled:
            raise Cancelled("It was cancelled.")

    def tell(self, message: str) -> None:
        self.said.append(message)

    def _store(self) -> None:
        self.durable += self.noted
        self.noted = []
        self.writes += 1
        if self.writes == self.dies_at:
            raise Crash

    def after_crash(self) -> "MemoryJournal":
        return MemoryJournal(durable=self.durable, failure=self.failure)


class World:
    """Which wishes are fulfilled, and which edits are made."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.done: list[str] = []

    def act(self, title: str, *, fails: bool = False, undo_fails: bool = False) -> Step:
        async def do() -> None:
            self.done.append(title)
            if fails:
                raise NodeFailure(f"{title} does not work.")
            self.there.add(title)

        async def undo() -> None:
            self.done.append(f"not {title}")
            if undo_fails:
                raise NodeFailure(f"{title} cannot be undone.")
            self.there.discard(title)

        return act(title, do, undo)

    def edit(self, title: str, *, no_return: bool = False, fails: bool = False) -> Step:
        def edit(_: State) -> Iterator[object]:
            if fails:
                raise Conflict(f"{title} is not possible.")
            self.there.add(title)
            return iter(())

        def unedit(_: State) -> Iterator[object]:
            self.there.discard(title)
            return iter(())

        return record(title, edit, unedit, point_of_no_return=no_return)  # type: ignore[arg-type]


def test_every_step_is_done_in_its_order() -> None:
    world, journal = World(), MemoryJournal()
    simulate(run([world.act("a"), world.edit("b"), world.act("c")], journal))
    assert world.there == {"a", "b", "c"}
    assert world.done == ["a", "c"]


def test_a_failure_undoes_all_in_reverse_the_failing_step_too() -> None:
    world, journal = World(), MemoryJournal()
    steps = [world.act("a"), world.edit("b"), world.act("c", fails=True), world.act("d")]
    with pytest.raises(NodeFailure, match="c does not work"):
        simulate(run(steps, journal))
    assert world.there == set()
    assert world.done == ["a", "c", "not c", "not a"]


def test_an_edit_that_is_refused_is_not_unedited() -> None:
    world, journal = World(), MemoryJournal()
    with pytest.raises(Conflict, match="b is not possible"):
        simulate(run([world.act("a"), world.edit("b", fails=True)], journal))
    assert world.there == set()
    assert not journal.has("unedited", "b")


def test_what_an_undo_has_found_is_recorded_with_the_word_that_it_is_undone() -> None:
    world, journal = World(), MemoryJournal()
    found: list[str] = []

    def note(_: State) -> Iterator[object]:
        found.extend(world.done)
        assert not journal.has("undone", "b")
        return iter(())

    looking = replace(world.act("b", fails=True), undo_edit=note)  # type: ignore[arg-type]
    with pytest.raises(NodeFailure):
        simulate(run([world.act("a"), looking], journal))
    assert found == ["a", "b", "not b"]


def test_what_is_before_the_point_of_no_return_stays() -> None:
    world, journal = World(), MemoryJournal()
    steps = [world.act("a"), world.edit("b", no_return=True), world.act("c", fails=True)]
    with pytest.raises(NodeFailure, match="c does not work"):
        simulate(run(steps, journal))
    assert world.there == {"a", "b"}


def test_an_undo_that_fails_leaves_the_job_stuck_and_says_both_reasons() -> None:
    world, journal = World(), MemoryJournal()
    steps = [world.act("a"), world.act("b", undo_fails=True), world.act("c", fails=True)]
    with pytest.raises(Stuck, match=r"Cannot undo “b”: b cannot be undone.*c does not work"):
        simulate(run(steps, journal))


def _away_for(seconds: float, done: list[float]) -> Action:
    """Return an action on a node that cannot be reached for so long."""

    async def do() -> None:
        now = asyncio.get_running_loop().time()
        if now < seconds:
            raise Unreachable("It refuses connections.")
        done.append(now)

    return do


def test_an_undo_waits_for_a_node_that_is_back_soon() -> None:
    world, journal, done = World(), MemoryJournal(), list[float]()
    steps = [act("a", _away_for(0, []), _away_for(10, done)), world.act("b", fails=True)]
    with pytest.raises(NodeFailure, match="b does not work"):
        simulate(run(steps, journal))
    assert done
    assert journal.said == ["Undoing “a” is tried again for 60 s: It refuses connections."]


def test_an_undo_does_not_wait_for_ever() -> None:
    world, journal = World(), MemoryJournal()
    steps = [act("a", _away_for(0, []), _away_for(1000, [])), world.act("b", fails=True)]
    with pytest.raises(Stuck, match="It refuses connections"):
        simulate(run(steps, journal))


def test_with_no_return_a_step_waits_for_its_node() -> None:
    world, journal, done = World(), MemoryJournal(), list[float]()
    simulate(run([world.edit("a", no_return=True), act("b", _away_for(10, done))], journal))
    assert done


def test_with_a_way_back_a_step_does_not_wait() -> None:
    with pytest.raises(Unreachable):
        simulate(run([act("a", _away_for(10, []), _away_for(0, []))], MemoryJournal()))


def test_the_wish_to_cancel_undoes_what_was_done() -> None:
    world, journal = World(), MemoryJournal()

    def steps() -> Iterator[Step]:
        yield world.act("a")
        journal.cancelled = True
        yield world.act("b")

    with pytest.raises(Cancelled):
        simulate(run(steps(), journal))
    assert world.there == set()


def test_cancellation_of_the_task_undoes_nothing() -> None:
    world, journal = World(), MemoryJournal()

    async def scenario() -> None:
        async def wait() -> None:
            await asyncio.sleep(100)

        running = asyncio.ensure_future(run([world.act("a"), act("wait", wait)], journal))
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.wait([running])

    simulate(scenario())
    assert world.there == {"a"}
    assert journal.failure is None


def test_an_unexpected_exception_is_undone_as_a_bug() -> None:
    world, journal = World(), MemoryJournal()

    async def do() -> None:
        raise ZeroDivisionError

    with pytest.raises(GntError, match="ZeroDivisionError"):
        simulate(run([world.act("a"), act("divide", do)], journal))
    assert world.there == set()


def test_an_action_costs_one_write_and_an_edit_one() -> None:
    world, journal = World(), MemoryJournal()
    simulate(run([world.act("a"), world.edit("b"), world.act("c")], journal))
    assert journal.writes == 3


def test_whoever_goes_on_undoing_repeats_at_most_the_last_undo() -> None:
    """Else a guest would be looked for after its disk is gone."""
    for dies_at in range(1, 10):
        world, journal = World(), MemoryJournal(dies_at=dies_at)
        steps = [world.act(name) for name in "abc"] + [world.act("d", fails=True)]
        with suppress(Crash, NodeFailure):
            asyncio.run(run(steps, journal))
        with suppress(NodeFailure):
            asyncio.run(run(steps, journal.after_crash()))
        undone = [title for title in world.done if title.startswith("not ")]
        assert undone == sorted(undone, reverse=True), f"dies at write {dies_at}"


def test_an_edit_is_taken_back_once_whenever_the_coordinator_dies() -> None:
    for dies_at in range(1, 8):
        world, journal = World(), MemoryJournal(dies_at=dies_at)
        taken_back: list[str] = []

        def unedit(_: State, taken_back: list[str] = taken_back) -> Iterator[Update]:
            taken_back.append("a")
            return iter(())

        first = replace(world.act("a"), edit=lambda _: iter(()), unedit=unedit)
        steps = [first, world.act("b", fails=True)]
        with suppress(Crash, NodeFailure):
            asyncio.run(run(steps, journal))
        with suppress(NodeFailure):
            asyncio.run(run(steps, journal.after_crash()))
        assert taken_back == ["a"], f"dies at write {dies_at}"


def test_what_may_be_final_by_now_is_finished_though_it_was_cancelled_meanwhile() -> None:
    world, journal = World(), MemoryJournal(dies_at=1)
    steps = [replace(world.act("a"), point_of_no_return=True)]
    with pytest.raises(Crash):
        asyncio.run(run(steps, journal))
    assert journal.durable == [("started", "a")]
    resumed = journal.after_crash()
    resumed.cancelled = True
    with suppress(Cancelled):
        asyncio.run(run(steps, resumed))
    assert world.there == {"a"}
    assert resumed.has("finished", "a")


def test_two_steps_of_the_same_name_are_undone_as_a_bug() -> None:
    world, journal = World(), MemoryJournal()
    with pytest.raises(Bug, match="Two steps of a recipe are called “a”"):
        simulate(run([world.act("a"), world.act("b"), world.act("a")], journal))
    assert world.done == ["a", "b", "not b", "not a"]


def test_the_wish_to_cancel_is_heeded_even_during_the_last_step() -> None:
    world, journal = World(), MemoryJournal()

    async def last() -> None:
        journal.cancelled = True

    with pytest.raises(Cancelled):
        simulate(run([world.act("a"), act("last", last)], journal))
    assert world.there == set()


@given(
    kinds=st.lists(st.sampled_from(["act", "edit", "no return"]), min_size=1, max_size=6),
    failing=st.none() | st.integers(0, 5),
    deaths=st.lists(st.integers(1, 8), max_size=4),
)
def test_however_often_the_coordinator_dies_the_end_is_the_same(
    kinds: list[str], failing: int | None, deaths: list[int]
) -> None:
    def finished(deaths: list[int]) -> tuple[set[str], bool]:
        world, journal = World(), MemoryJournal()
        for dies_at in [*deaths, -1]:
            journal.dies_at = dies_at
            steps = [_step(world, n, kind, fails=n == failing) for n, kind in enumerate(kinds)]
            try:
                asyncio.run(run(steps, journal))
            except Crash:
                journal = journal.after_crash()
            except GntError:
                return world.there, False
            else:
                return world.there, True
        raise AssertionError

    assert finished(deaths) == finished([])


def _step(world: World, number: int, kind: str, *, fails: bool) -> Step:
    title = f"step {number}"
    if kind == "act":
        return world.act(title, fails=fails)
    return world.edit(title, no_return=kind == "no return", fails=fails)
