"""Operations told as stories: the cluster they find, and how they go when nothing disturbs them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, get_type_hints
from zlib import crc32

from common.model.job import Status
from coordinator.operations.base import REGISTRY, Operation
from coordinator.operations.registry import load_all
from coordinator.operations.step import Step
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Watching
from tests.support.locks import is_unlocked
from tests.support.moments import Moment, Moments
from tests.support.network import Trip
from tests.support.seeds import seeds
from tests.support.snapshot import Snapshot

Setting = Callable[[SimulatedCluster], Awaitable[None]]
Maker = Callable[[SimulatedCluster], Operation[Any, Any]]


async def nothing(cluster: SimulatedCluster) -> None:
    """Set no scene."""


@dataclass(frozen=True)
class Story:
    """An operation on a cluster.

    ``setting`` brings the cluster into the state that the operation finds. After a crash a
    coordinator is started anew on alpha, or takes over on ``successor`` if there is one.
    ``uncertain`` are the parts of a snapshot that may be either way when a node's answer is
    lost or bad and the operation cannot mend that. ``again`` does what is left to do after a
    failure from which there was no return; None if only an operator can. ``concerned`` is the
    node that an operation is about; it may become the master meanwhile. One that ``has_secret``
    may fail after a crash, because nobody knows that any more, and is sent again.
    """

    operation: Operation[Any, Any] | Maker
    setting: Setting = nothing
    again: Operation[Any, Any] | None = None
    nodes: int = 3
    candidates: int = 10
    strangers: int = 0
    successor: str = "beta"
    concerned: str = ""
    has_secret: bool = False
    uncertain: frozenset[str] = frozenset()
    rest_s: float = 12.0  # until nothing changes by itself any more
    seed: int = seeds()[0]

    @asynccontextmanager
    async def told(self) -> AsyncIterator[SimulatedCluster]:
        """Run the cluster up to the operation, and let it come to rest."""
        async with simulated_cluster(
            self.nodes, seed=self.seed, candidates=self.candidates, strangers=self.strangers
        ) as cluster:
            await self.setting(cluster)
            await cluster.settle(self.rest_s)
            yield cluster

    @property
    def opcode(self) -> str:
        if isinstance(self.operation, Operation):
            return self.operation.opcode
        kind: type[Operation[Any, Any]] = get_type_hints(self.operation)["return"]
        return kind.opcode

    def made(self, cluster: SimulatedCluster) -> Operation[Any, Any]:
        return self.operation if isinstance(self.operation, Operation) else self.operation(cluster)


@dataclass(frozen=True)
class Told:
    """How a story went when nothing disturbed it.

    ``final_calls`` and ``final_crossings`` are those of the step from which there is no return;
    None where there is no such step. ``moments`` has one for each crossing. ``unlocked`` are
    orders of steps to nodes that the job has not locked. One that is told ``in_short`` is disturbed
    at the fewest places: others that are alike are disturbed at more.
    """

    name: str
    story: Story
    before: Snapshot
    after: Snapshot
    result: Any
    calls: list[Trip]
    crossings: list[Trip]  # calls and commits
    moments: list[Moment]
    steps: list[Step]
    unlocked: list[Trip]
    final_calls: range | None
    final_crossings: range | None
    in_short: bool

    @property
    def turn(self) -> int:
        """A number of this story's own, for what is done to each in another way."""
        return crc32(self.name.encode())

    @property
    def undoable(self) -> list[Step]:
        """The steps that are undone when they fail."""
        points = (n for n, step in enumerate(self.steps) if step.point_of_no_return)
        return self.steps[: next(points, len(self.steps)) + 1]


def undisturbed(name: str, story: Story, *, in_short: bool = False) -> Told:
    """Run the operation; it succeeds."""
    return simulate(_undisturbed(name, story, in_short=in_short))


async def _undisturbed(name: str, story: Story, *, in_short: bool) -> Told:
    calls, crossings = Watching(is_call), Moments(is_crossing)
    recipe = _Recipe(calls.seen, crossings.seen)
    async with story.told() as cluster:
        unlocked = Watching(lambda trip: is_unlocked(cluster, trip))
        before = await cluster.snapshot()
        operation = story.made(cluster)
        with changed_recipes(operation, lambda steps: crossings.noted(recipe.noted(steps))):
            cluster.network.faults += [calls, unlocked]
            number = await cluster.submit(operation)
            cluster.network.faults.append(crossings)
            job = await cluster.finished(number)
        cluster.network.faults.clear()
        assert job.status is Status.SUCCESS, job.ops[-1].failure
        await cluster.settle(story.rest_s)
        cluster.check_replicas()
        final_calls, final_crossings = recipe.final
        return Told(
            name, story, before, await cluster.snapshot(), job.ops[-1].result,
            calls.seen, crossings.seen, crossings.moments, recipe.steps,
            unlocked.seen, final_calls, final_crossings, in_short,
        )  # fmt: skip


def is_call(trip: Trip) -> bool:
    return trip.is_of_a_job and not trip.is_commit and not _asks_for_hooks(trip)


def is_crossing(trip: Trip) -> bool:
    return (trip.is_of_a_job or trip.is_commit) and not _asks_for_hooks(trip)


def _asks_for_hooks(trip: Trip) -> bool:
    """Tell whether it is the question that every operation asks, which changes nothing."""
    return trip.call.name == "hooks.present"


@contextmanager
def changed_recipes(
    operation: Operation[Any, Any], change: Callable[[Iterator[Step]], Iterator[Step]]
) -> Iterator[None]:
    """Have the recipe of every such operation go through ``change``."""
    load_all()
    kind = REGISTRY[operation.opcode]

    class Changed(kind):  # type: ignore[misc,valid-type]
        def recipe(self, cluster: Any, plan: Any) -> Iterator[Step]:
            return change(super().recipe(cluster, plan))

    REGISTRY[operation.opcode] = Changed
    try:
        yield
    finally:
        REGISTRY[operation.opcode] = kind


class _Recipe:
    """Notes the steps of a recipe, and what belongs to the one from which there is no return."""

    def __init__(self, *seen: list[Trip]) -> None:
        self.steps: list[Step] = []
        self.final: list[range | None] = [None for _ in seen]
        self._seen = seen

    def noted(self, steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            self.steps.append(step)
            begun = [len(trips) for trips in self._seen]
            yield step
            if step.point_of_no_return and None in self.final:
                self.final = [
                    range(first, len(trips)) for first, trips in zip(begun, self._seen, strict=True)
                ]
