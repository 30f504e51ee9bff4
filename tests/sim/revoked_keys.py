"""Keys that are revoked in simulated clusters, and who knows of them."""

import json
from collections.abc import Iterator

from common.names import KeyId
from coordinator.operations.node.revoking import revoke
from coordinator.state.rows import Update
from coordinator.state.state import State
from tests.support.cluster import SimulatedCluster
from tests.support.faults import Watching
from tests.support.network import Trip

KEYS = tuple(KeyId(f"{number:064x}") for number in range(300))


async def revoke_keys(cluster: SimulatedCluster, *keys: KeyId) -> None:
    """Have keys be on the list, of nodes that were removed, and all who listen hear of it."""
    await cluster.master.running.store.commit(lambda state: revoke(state.config, *keys))
    await cluster.settle()


def revoking(key: KeyId, state: State) -> Iterator[Update]:
    return revoke(state.config, key)


def known_at(cluster: SimulatedCluster, name: str) -> tuple[KeyId, ...]:
    noded = cluster.machines[name].noded
    assert noded is not None
    return noded.candidates.revoked.keys


def everybody_knows(cluster: SimulatedCluster, *keys: KeyId) -> bool:
    return all(known_at(cluster, name) == keys for name in cluster.names)


def told(trips: Watching, name: str) -> list[int]:
    """Return how many keys each of the calls to a node named."""
    bodies = [json.loads(trip.body) for trip in trips.seen if trip.target == name]
    return [len(body["revocations"].get("latest", ())) for body in bodies]


def is_update(trip: Trip) -> bool:
    return trip.call.name == "roster.update"


def watching(cluster: SimulatedCluster) -> Watching:
    trips = Watching(is_update)
    cluster.network.faults.append(trips)
    return trips
