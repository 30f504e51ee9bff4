"""Keep ``gantry-confd`` up to date on nodes where it is to answer, and silent elsewhere."""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from common.confd_snapshot import pack
from common.errors import GntError
from common.model.node import Node
from common.model.secret import CONFD_KEY, Secret
from common.names import NodeId
from common.noderpc.confd import Confd
from coordinator.master.confd_snapshot import snapshot_of
from coordinator.nodes.calls import Nodes
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

PAUSE_S = 0.4  # changes come in bursts; with the daemon's look at its files it stays below a second
RETRY_S = 5.0  # for nodes that could not be told


@dataclass(frozen=True, eq=False)
class _News:
    config: Config
    key: str
    packed: bytes

    def is_of(self, state: State) -> bool:
        """Tell whether ``state`` has nothing else to say; nearly free, unlike making it."""
        key = state.secrets.get(CONFD_KEY)
        return self.config is state.config and key is not None and self.key == key.value


def new_confd_key(random: Random) -> Secret:
    """Make what proves that a question is asked, and an answer given, by one of the cluster."""
    return Secret(id=CONFD_KEY, value=f"{random.getrandbits(160):040x}")


class ConfdPublisher:
    """Tells nodes after the fact, each at its own pace."""

    def __init__(self, store: Store, nodes: Nodes, random: Random) -> None:
        self._store, self._nodes, self._random = store, nodes, random
        self._news: _News | None = None
        # By node UUID what it was told last, where None says that it has nothing.
        self._told: dict[NodeId, _News | None] = {}
        self._telling: set[NodeId] = set()

    async def run(self) -> None:
        """Publish after each change of the configuration, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                state = self._store.state
                if CONFD_KEY not in state.secrets:  # of an older version, or to be another one
                    state = await self._store.commit([Put(new_confd_key(self._random))])
                if self._news is None or not self._news.is_of(state):
                    self._news = await asyncio.to_thread(_news, state)
                nodes = [node for node in state.config.sorted_nodes() if not node.offline]
                untold = [node for node in nodes if not self._knows(node)]
                for node in untold:
                    if node.uuid not in self._telling:
                        self._telling.add(node.uuid)
                        group.create_task(self._try(node))
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S if untold else None):
                        while self._news.is_of(self._store.state):
                            await self._store.changed(self._store.state)
                await asyncio.sleep(PAUSE_S)

    async def _try(self, node: Node) -> None:
        try:
            while not self._knows(node):  # what was news may be old when it has arrived
                await self._tell(node)
        except GntError as error:
            log.info("could not publish to the confd of a node: %s", error)
        finally:
            self._telling.discard(node.uuid)

    async def _tell(self, node: Node) -> None:
        news = self._wanted(node)
        self._told.pop(node.uuid, None)
        confd = self._nodes.service(Confd, node)
        if news is None:
            await confd.withdraw()
        else:
            await confd.publish(key=news.key, snapshot=news.packed)
        self._told[node.uuid] = news

    def _knows(self, node: Node) -> bool:
        return node.uuid in self._told and self._told[node.uuid] is self._wanted(node)

    def _wanted(self, node: Node) -> _News | None:
        if self._news is None:
            return None
        config = self._news.config
        now = config.nodes.get(node.uuid)
        is_told = now is not None and (now.master_candidate or config.cluster.confd_everywhere)
        return self._news if is_told else None


def _news(state: State) -> _News:
    snapshot = snapshot_of(state.config, state.stamp.serial)
    return _News(state.config, state.secrets[CONFD_KEY].value, pack(snapshot))
