"""Keep every node up to date: whose orders it takes, and the small files ``ssconf``."""

import asyncio
import hashlib
import logging
import operator
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Self

from common.errors import Conflict, GntError
from common.model.node import Node
from common.model.revoked_key import RevokedKey
from common.names import KeyId, NodeId
from common.noderpc.files import Files
from common.noderpc.roster import Rosters
from coordinator.nodes.calls import Nodes
from coordinator.operations.node.roster import UNKNOWING, Knows, publish
from coordinator.operations.node.ssconf import SWITCH, ssconf_files
from coordinator.state.config import Config
from coordinator.state.kinds import CLUSTER, GROUP, NETWORK, NODE, REVOKED_KEY, Kind
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

RETRY_S = 1.0  # for nodes that could not be told


class Publisher:
    """Tells nodes after the fact: nothing waits for it, and a node that was away is told later.

    A node that does not answer keeps no other from hearing the news. One whose noded was started
    anew is told all of it again: its disk may be an older one.
    """

    def __init__(self, store: Store, nodes: Nodes) -> None:
        self._store, self._nodes = store, nodes
        self._told: dict[str, Mapping[str, str]] = {}  # files, by node UUID
        # By node UUID: the tables of the state of which it has the roster. Not the candidates: a
        # job tells nodes, too, and what it told may have come and gone between two looks.
        self._obeyed: dict[NodeId, _Tables] = {}
        self._lives: dict[NodeId, int] = {}  # in which it was told so
        self._telling: set[NodeId] = set()
        # Else of two that tell one node, the older word might be the last.
        self._turns: defaultdict[NodeId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._latest: tuple[State, Mapping[str, str]] = store.state, {}

    async def run(self) -> None:
        """Publish after each change that matters, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                state, lives = self._store.state, self._nodes.lives
                self._latest, count = (state, ssconf_files(state.config)), lives.count
                untold = [node for node in state.config.sorted_nodes() if self._lacks(node.uuid)]
                for node in untold:
                    if node.uuid not in self._telling:
                        self._telling.add(node.uuid)
                        group.create_task(self._try(node.uuid))
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S if untold else None):
                        while _same(state.config, self._store.state.config) and (
                            lives.count == count
                        ):
                            await self._store.changed(self._store.state, lives.next)

    async def tell(self, node: Node) -> None:
        """Tell a node what it does not know yet.

        Raises:
            GntError: it does not listen.
        """
        async with self._turns[node.uuid]:
            state = self._store.state
            await self._tell(node, state, ssconf_files(state.config))

    async def _try(self, node: NodeId) -> None:
        try:
            async with self._turns[node]:
                while self._lacks(node):  # what was new may be old when it has arrived
                    state, files = self._latest
                    await self._tell(state.config.nodes[node], state, files)
        except GntError as error:
            log.info("could not publish to a node: %s", error)
        finally:
            self._telling.discard(node)

    async def _tell(self, node: Node, state: State, files: Mapping[str, str]) -> None:
        life = self._nodes.lives.number(node.uuid)
        if self._lives.get(node.uuid) != life:
            for told in (self._obeyed, self._told):
                told.pop(node.uuid, None)
            self._lives[node.uuid] = life
        # Whom to obey comes first: with it others lose their say.
        tables = _Tables.of(state.config)
        if not tables.is_same(self._obeyed.get(node.uuid)):
            self._obeyed.pop(node.uuid, None)
            knows = await publish(self._nodes.service(Rosters, node), state)
            if knows is Knows.OTHERS:
                # Not again before something changes: it would be the whole list each time.
                log.warning("node %s %s", node.name, UNKNOWING)
            elif knows is Knows.OTHERS_AS_TOLD_LATER and state is not self._store.state:
                # A job that came first may have failed to tell it all.
                raise Conflict(f"Node {node.name} was told of a newer state meanwhile.")
            self._obeyed[node.uuid] = tables
        if self._told.get(node.uuid) != files:
            service = self._nodes.service(Files, node)
            known = self._told.pop(node.uuid, None)
            if known is None:
                known = await _known_to(service, files)
            await service.publish(files=changed(known, files))
            self._told[node.uuid] = files

    def _lacks(self, node: NodeId) -> bool:
        """Tell whether a node is to be told something."""
        state, files = self._latest
        if (present := state.config.nodes.get(node)) is None or present.offline:
            return False
        if self._lives.get(node) != self._nodes.lives.number(node):
            return True
        is_obeyed = _Tables.of(state.config).is_same(self._obeyed.get(node))
        return not is_obeyed or self._told.get(node) != files


def changed(known: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that a node has to be told, which has those of ``known``.

    That the switch for links is not among them would say that it is off.
    """
    return {name: text for name, text in files.items() if known.get(name) != text or name == SWITCH}


async def _known_to(service: Files, files: Mapping[str, str]) -> dict[str, str]:
    """Ask a node which of the files it has as they are."""
    told = await service.digests(names=tuple(files))
    return {
        name: text
        for (name, text), report in zip(files.items(), told, strict=False)  # whatever it tells
        if report.digest == hashlib.sha256(text.encode()).hexdigest()
    }


class _Tables(NamedTuple):
    """What rosters are made from: maps that are replaced when anything in them changes."""

    nodes: Mapping[NodeId, Node]
    revoked: Mapping[KeyId, RevokedKey]

    @classmethod
    def of(cls, config: Config) -> Self:
        return cls(config.nodes, config.table(REVOKED_KEY))

    def is_same(self, other: "_Tables | None") -> bool:
        """Tell whether nothing has changed; nearly free, unlike looking at each row."""
        return other is not None and all(map(operator.is_, self, other))


def _same(one: Config, other: Config) -> bool:
    """Tell whether the files cannot differ; nearly free, unlike making them."""
    tables: tuple[Kind[Any, Any], ...] = (CLUSTER, GROUP, NETWORK, NODE, REVOKED_KEY)
    return all(one.table(table) is other.table(table) for table in tables)
