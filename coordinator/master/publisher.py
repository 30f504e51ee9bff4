"""Keep the small files about the cluster up to date on every node (``ssconf``)."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping

from common.errors import GntError
from common.model.node import Node
from common.noderpc.files import Files
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.config import Config
from coordinator.state.store import Store

log = logging.getLogger(__name__)

RETRY_S = 1.0  # for nodes that could not be told


class Publisher:
    """Tells nodes after the fact: nothing waits for it, and a node that was away is told later."""

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self._store, self._nodes = store, nodes
        self._told: dict[str, Mapping[str, str]] = {}  # by node UUID

    async def run(self) -> None:
        """Publish after each change that matters, until cancelled."""
        while True:
            state = self._store.state
            complete = await self._publish(state.config)
            try:
                async with asyncio.timeout(None if complete else RETRY_S):
                    while _same(state.config, self._store.state.config):
                        await self._store.changed(self._store.state)
            except TimeoutError:
                continue

    async def _publish(self, config: Config) -> bool:
        """Tell all nodes what they do not know yet; False if one could not be told."""
        files = ssconf_files(config)
        news: dict[str, Awaitable[None]] = {}
        for node in config.sorted_nodes():
            known = self._told.get(node.uuid, {})
            changed = {name: text for name, text in files.items() if known.get(name) != text}
            if changed and not node.offline:
                news[node.uuid] = self._tell(node, changed)
        outcomes = await each(news)
        for uuid, outcome in outcomes.items():
            if isinstance(outcome, GntError):
                log.info("could not publish ssconf: %s", outcome)
                self._told.pop(uuid, None)
            else:
                self._told[uuid] = files
        return all(outcome is None for outcome in outcomes.values())

    async def _tell(self, node: Node, files: dict[str, str]) -> None:
        await self._nodes.service(Files, node).publish(files=files)


def _same(one: Config, other: Config) -> bool:
    """Tell whether the files cannot differ; nearly free, unlike making them."""
    return one.nodes is other.nodes and one.cluster is other.cluster
