"""A node of an older version moves no instance between clusters, and is refused in time."""

from dataclasses import dataclass

import pytest

from common.errors import Conflict, NotFound
from common.rpc.server import Reply, refusal
from tests.sim.test_moves_between_clusters import DATA, Clusters, export, tell, written
from tests.support.cluster import SimulatedCluster
from tests.support.faults import Watching
from tests.support.network import Fault, Trip


@dataclass
class Older(Fault):
    """Has a machine know no call of a name."""

    machine: str
    name: str

    async def going(self, trip: Trip) -> Reply | None:
        if (trip.target, trip.call.name) == (self.machine, self.name):
            return refusal(NotFound(f"This node knows no call “{self.name}”."))
        return None


def changes(cluster: SimulatedCluster) -> Watching:
    """Return what notes that disks are made or let go of, or a guest is stopped."""
    which = ("disks.", "instances.begin_shutdown", "copies.begin")
    watch = Watching(lambda trip: trip.call.name.startswith(which))
    cluster.network.faults.append(watch)
    return watch


def test_who_receives_is_asked_before_anything_is_made_for_it() -> None:
    async def story(clusters: Clusters) -> None:
        told = await clusters.prepared()
        clusters.there.network.faults.append(Older("alpha", "copies.has_arrived"))
        watch = changes(clusters.there)
        with pytest.raises(Conflict, match="noded of alpha is of an older version"):
            await clusters.expected(told)
        assert not watch.seen
        assert await clusters.guests() == [{"web1": "gamma"}, {}]

    tell(story)


def test_who_sends_is_asked_before_the_guest_is_stopped() -> None:
    async def story(clusters: Clusters) -> None:
        coming, expected = await clusters.expected(await clusters.prepared())
        clusters.here.network.faults.append(Older("gamma", "copies.has_arrived"))
        watch = changes(clusters.here)
        with pytest.raises(Conflict, match="noded of gamma is of an older version"):
            await clusters.here.run(export(await clusters.prepared(), expected))
        assert not watch.seen
        assert await clusters.guests() == [{"web1": "gamma"}, {}]
        assert written(clusters.here, "gamma") == [DATA]
        await clusters.there.master.luxi("CancelJob", coming)

    tell(story)
