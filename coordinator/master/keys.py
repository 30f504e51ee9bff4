"""Learn the keys of nodes that joined under a version which kept none."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from common.names import KeyId, NodeId
from common.noderpc.identity import Identity
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each, split
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store

RETRY_S = 30.0  # for nodes that do not answer


async def learn_keys(store: Store, nodes: Nodes) -> None:
    """Put into the state which key each node has, and return when that is known of all.

    The first answer is believed, if its certificate is of this cluster; until then the name
    alone counted.
    """
    while unknown := [node for node in store.state.config.sorted_nodes() if not node.key]:
        asked = {node.uuid: nodes.service(Identity, node).who() for node in unknown}
        answers, _ = split(await each(asked))
        keys = {uuid: who.key for uuid, who in answers.items() if who.node_uuid == uuid}
        if keys:
            await store.commit(partial(_learnt, keys))
        if len(keys) < len(unknown):
            await asyncio.sleep(RETRY_S)


def _learnt(keys: Mapping[NodeId, KeyId], state: State) -> Iterator[Put]:
    for uuid, key in keys.items():
        node = state.config.nodes.get(uuid)
        if node is not None and not node.key:
            yield Put(replace(node, key=key))
