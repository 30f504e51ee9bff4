"""Keep every node up to date: whose orders it takes, and the small files ``ssconf``."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping

from common.errors import GntError
from common.model.node import Node
from common.names import KeyId, NodeName
from common.noderpc.files import Files
from common.noderpc.roster import Roster, Rosters
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.operations.node.roster import roster_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.config import Config
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

RETRY_S = 1.0  # for nodes that could not be told


class Publisher:
    """Tells nodes after the fact: nothing waits for it, and a node that was away is told later."""

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self._store, self._nodes = store, nodes
        self._told: dict[str, Mapping[str, str]] = {}  # files, by node UUID
        self._obeyed: dict[str, Mapping[NodeName, KeyId]] = {}  # candidates, by node UUID

    async def run(self) -> None:
        """Publish after each change that matters, until cancelled."""
        while True:
            state = self._store.state
            complete = await self._publish(state)
            try:
                async with asyncio.timeout(None if complete else RETRY_S):
                    while _same(state.config, self._store.state.config):
                        await self._store.changed(self._store.state)
            except TimeoutError:
                continue

    async def _publish(self, state: State) -> bool:
        """Tell all nodes what they do not know yet; False if one could not be told."""
        roster, files = roster_of(state), ssconf_files(state.config)
        nodes = [node for node in state.config.sorted_nodes() if not node.offline]
        # Whom to obey comes first, and everywhere: with it others lose their say.
        deaf = await self._all_told(
            {
                node.uuid: self._tell_roster(node, roster)
                for node in nodes
                if self._obeyed.get(node.uuid) != roster.candidates
            }
        )
        deaf |= await self._all_told(
            {
                node.uuid: self._tell_files(node, files)
                for node in nodes
                if self._told.get(node.uuid) != files and node.uuid not in deaf
            }
        )
        return not deaf

    async def _all_told(self, news: Mapping[str, Awaitable[None]]) -> set[str]:
        """Return the nodes, by UUID, that could not be told."""
        outcomes = await each(news)
        failed = {uuid: error for uuid, error in outcomes.items() if isinstance(error, GntError)}
        for error in failed.values():
            log.info("could not publish to a node: %s", error)
        return set(failed)

    async def _tell_roster(self, node: Node, roster: Roster) -> None:
        self._obeyed.pop(node.uuid, None)
        await self._nodes.service(Rosters, node).publish(roster=roster)
        self._obeyed[node.uuid] = roster.candidates

    async def _tell_files(self, node: Node, files: Mapping[str, str]) -> None:
        known = self._told.pop(node.uuid, {})
        changed = {name: text for name, text in files.items() if known.get(name) != text}
        await self._nodes.service(Files, node).publish(files=changed)
        self._told[node.uuid] = files


def _same(one: Config, other: Config) -> bool:
    """Tell whether the files cannot differ; nearly free, unlike making them."""
    return one.nodes is other.nodes and one.cluster is other.cluster
