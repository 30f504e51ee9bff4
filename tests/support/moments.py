"""When, in the recipe of an operation, a call or commit is made: to meet it again elsewhere."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from common.rpc.server import Reply
from coordinator.operations.step import Step
from tests.support.faults import Trap, Watching
from tests.support.network import Trip


class Moment(NamedTuple):
    """The so manieth call or commit since a step began."""

    step: str  # its title; "" before the first one
    number: int


@dataclass
class Moments(Watching):
    """Notes the moment of each call that ``which`` picks, in the recipe that it has ``noted``."""

    moments: list[Moment] = field(default_factory=list)
    _next: Moment = Moment("", 0)

    def noted(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Note when each step begins."""
        for step in steps:
            self._next = Moment(step.title, 0)
            yield step

    def begin_anew(self) -> None:
        """Count from before the first step again: whoever was at it is gone."""
        self._next = Moment("", 0)

    def trap(self, moment: Moment, spring: Callable[[], None]) -> Trap:
        """Return what springs at a moment, if it stands behind this one."""
        return Trap(lambda trip: self.which(trip) and self.moments[-1] == moment, 0, spring)

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if self.which(trip):
            self.moments.append(self._next)
            self._next = self._next._replace(number=self._next.number + 1)
        return await super().coming(trip, reply)
