"""Keep ``gantry-confd`` up to date on nodes where it is to answer, and silent elsewhere."""

import asyncio
from dataclasses import dataclass
from random import Random

from common.confd_snapshot import pack
from common.model.node import Node
from common.model.secret import CONFD_KEY, Secret
from common.noderpc.confd import Confd
from coordinator.master.confd_snapshot import snapshot_of
from coordinator.master.news import NewsTeller
from coordinator.nodes.calls import Nodes
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store


@dataclass(frozen=True, eq=False)
class _News:
    config: Config
    key: str
    packed: bytes


def new_confd_key(random: Random) -> Secret:
    """Make what proves that a question is asked, and an answer given, by one of the cluster."""
    return Secret(id=CONFD_KEY, value=f"{random.getrandbits(160):040x}")


class ConfdPublisher(NewsTeller[_News]):
    """Publishes the configuration after each change of it."""

    about = "what confd answers from"

    def __init__(self, store: Store, nodes: Nodes, random: Random) -> None:
        super().__init__(store, nodes)
        self._random = random

    def is_of(self, news: _News, state: State) -> bool:
        key = state.secrets.get(CONFD_KEY)
        return news.config is state.config and key is not None and news.key == key.value

    async def make(self, state: State) -> _News:
        if CONFD_KEY not in state.secrets:  # of an older version, or to be another one
            state = await self.store.commit([Put(new_confd_key(self._random))])
        return await asyncio.to_thread(_news, state)

    def is_for(self, news: _News, node: Node) -> bool:
        now = news.config.nodes.get(node.uuid)
        everywhere = news.config.cluster.confd_everywhere
        return now is not None and (now.master_candidate or everywhere)

    async def tell(self, node: Node, news: _News) -> None:
        await self.nodes.service(Confd, node).publish(key=news.key, snapshot=news.packed)

    async def withdraw(self, node: Node) -> None:
        await self.nodes.service(Confd, node).withdraw()


def _news(state: State) -> _News:
    snapshot = snapshot_of(state.config, state.stamp.serial)
    return _News(state.config, state.secrets[CONFD_KEY].value, pack(snapshot))
