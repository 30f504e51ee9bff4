"""Keep nodes up to date about something, and silent where it is not theirs to tell."""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from common.errors import GntError
from common.model.node import Node
from common.names import NodeId
from coordinator.nodes.calls import Nodes
from coordinator.state.state import State
from coordinator.state.store import Store

N = TypeVar("N")

PAUSE_S = 0.4  # changes come in bursts; with a daemon's look at its files it stays below a second
RETRY_S = 5.0  # for nodes that could not be told

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Told(Generic[N]):
    """What a node was told last, where None says that it has nothing, and in which life."""

    news: N | None
    life: int


class NewsTeller(ABC, Generic[N]):
    """Tells nodes after the fact; each master tells each node once, also that it has nothing.

    One whose noded was started anew is told again: its disk may be an older one.
    """

    about: str  # for the log

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self.store, self.nodes = store, nodes
        self._news: N | None = None
        self._told: dict[NodeId, _Told[N]] = {}
        self._telling: set[NodeId] = set()

    @abstractmethod
    def is_of(self, news: N, state: State) -> bool:
        """Tell whether ``state`` has nothing else to say; nearly free, unlike making it."""

    @abstractmethod
    async def make(self, state: State) -> N:
        """Return what there is to say of ``state``, or of a newer one."""

    @abstractmethod
    def is_for(self, news: N, node: Node) -> bool:
        """Tell whether a node is to have it."""

    @abstractmethod
    async def tell(self, node: Node, news: N) -> None:
        """Tell a node; raises GntError."""

    @abstractmethod
    async def withdraw(self, node: Node) -> None:
        """Have a node forget it; raises GntError."""

    async def run(self) -> None:
        """Tell after each change that matters, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                state, lives = self.store.state, self.nodes.lives
                count = lives.count
                if self._news is None or not self.is_of(self._news, state):
                    self._news = await self.make(state)
                nodes = [node for node in state.config.sorted_nodes() if not node.offline]
                untold = [node for node in nodes if not self._knows(node)]
                for node in untold:
                    if node.uuid not in self._telling:
                        self._telling.add(node.uuid)
                        group.create_task(self._try(node))
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S if untold else None):
                        while self.is_of(self._news, self.store.state) and lives.count == count:
                            await self.store.changed(self.store.state, lives.next)
                await asyncio.sleep(PAUSE_S)

    async def _try(self, node: Node) -> None:
        try:
            while not self._knows(node):  # what was news may be old when it has arrived
                await self._tell(node)
        except GntError as error:
            log.info("could not tell a node of %s: %s", self.about, error)
        finally:
            self._telling.discard(node.uuid)

    async def _tell(self, node: Node) -> None:
        news, life = self._wanted(node), self.nodes.lives.number(node.uuid)
        self._told.pop(node.uuid, None)
        if news is None:
            await self.withdraw(node)
        else:
            await self.tell(node, news)
        self._told[node.uuid] = _Told(news, life)

    def _knows(self, node: Node) -> bool:
        told = self._told.get(node.uuid)
        return (
            told is not None
            and told.news is self._wanted(node)
            and told.life == self.nodes.lives.number(node.uuid)
        )

    def _wanted(self, node: Node) -> N | None:
        news = self._news
        return news if news is not None and self.is_for(news, node) else None
