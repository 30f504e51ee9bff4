"""Keep every node up to date: whose orders it takes, and the small files ``ssconf``."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from common.errors import GntError
from common.model.node import Node
from common.names import NodeId
from common.noderpc.files import Files
from common.noderpc.roster import Rosters
from coordinator.nodes.calls import Nodes
from coordinator.operations.node.roster import roster_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.config import Config
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

RETRY_S = 1.0  # for nodes that could not be told


class Publisher:
    """Tells nodes after the fact: nothing waits for it, and a node that was away is told later.

    A node that does not answer keeps no other from hearing the news.
    """

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self._store, self._nodes = store, nodes
        self._told: dict[str, Mapping[str, str]] = {}  # files, by node UUID
        # By node UUID: the nodes of the state of which it has the roster. Not the candidates: a
        # job tells nodes, too, and what it told may have come and gone between two looks.
        self._obeyed: dict[NodeId, Mapping[NodeId, Node]] = {}
        self._telling: set[str] = set()  # nodes by UUID

    async def run(self) -> None:
        """Publish after each change that matters, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                state = self._store.state
                files = ssconf_files(state.config)
                untold = [
                    node
                    for node in state.config.sorted_nodes()
                    if not node.offline and not self._knows(node, state, files)
                ]
                for node in untold:
                    if node.uuid not in self._telling:
                        self._telling.add(node.uuid)
                        group.create_task(self._try(node, state, files))
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S if untold else None):
                        while _same(state.config, self._store.state.config):
                            await self._store.changed(self._store.state)

    async def tell(self, node: Node) -> None:
        """Tell a node what it does not know yet.

        Raises:
            GntError: it does not listen.
        """
        state = self._store.state
        await self._tell(node, state, ssconf_files(state.config))

    async def _try(self, node: Node, state: State, files: Mapping[str, str]) -> None:
        try:
            await self._tell(node, state, files)
        except GntError as error:
            log.info("could not publish to a node: %s", error)
        finally:
            self._telling.discard(node.uuid)

    async def _tell(self, node: Node, state: State, files: Mapping[str, str]) -> None:
        # Whom to obey comes first: with it others lose their say.
        if self._obeyed.get(node.uuid) is not state.config.nodes:
            self._obeyed.pop(node.uuid, None)
            await self._nodes.service(Rosters, node).publish(roster=roster_of(state))
            self._obeyed[node.uuid] = state.config.nodes
        if self._told.get(node.uuid) != files:
            self._told.pop(node.uuid, None)
            # All of them: that there is none of a name tells something, too.
            await self._nodes.service(Files, node).publish(files=dict(files))
            self._told[node.uuid] = files

    def _knows(self, node: Node, state: State, files: Mapping[str, str]) -> bool:
        is_obeyed = self._obeyed.get(node.uuid) is state.config.nodes
        return is_obeyed and self._told.get(node.uuid) == files


def _same(one: Config, other: Config) -> bool:
    """Tell whether the files cannot differ; nearly free, unlike making them."""
    tables = ("nodes", "cluster", "groups", "networks")
    return all(getattr(one, table) is getattr(other, table) for table in tables)
