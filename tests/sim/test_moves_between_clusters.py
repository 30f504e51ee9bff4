"""Instances that are sent to another cluster, by what Ganeti's tools carry between the two."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.job import Status
from common.model.secret import DOMAIN_KEY
from common.names import InstanceName, JobId, NodeName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.prepare import PrepareExport
from coordinator.operations.base import read_operation
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.move import MoveInstance
from noded.copies.fake_between import FakeBridge
from tests.sim.settings import WEB1, mirrored, web1_with_data
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

DATA = "data of web1"
SECRET = RenewCrypto(cluster_domain_secret="known to both clusters")
SHOP = InstanceName("shop")
Story = Callable[["Clusters"], Awaitable[None]]


class Clusters:
    """Two clusters, of which ``here`` has web1 with data on gamma."""

    def __init__(self, here: SimulatedCluster, there: SimulatedCluster, bridge: FakeBridge) -> None:
        self.here, self.there, self.bridge = here, there, bridge

    async def prepared(self) -> dict[str, Any]:
        told: dict[str, Any] = await self.here.run(PrepareExport(instance_name=WEB1, mode="remote"))
        return told

    async def expected(self, told: dict[str, Any], **changes: Any) -> tuple[JobId, dict[str, Any]]:
        """Have the other cluster expect web1; return its job, and what that tells."""
        job = await self.there.submit(creation(told, **changes))
        return job, await self.announced(job)

    async def announced(self, job: JobId) -> dict[str, Any]:
        """Return what a job tells programs that follow it."""
        while True:
            fields = ["status", "oplog"]
            ((status, (log,)),) = await self.there.master.luxi("QueryJobs", [job], fields)
            if told := [value for _, _, kind, value in log if kind == "remote-import"]:
                return dict(told[-1])
            if status == Status.ERROR:
                outcome(await self.there.finished(job))
            await asyncio.sleep(0.1)

    async def move(self) -> None:
        """Do what move-instance does."""
        told = await self.prepared()
        job, expected = await self.expected(told)
        assert await self.here.run(export(told, expected)) == [True, [True]]
        assert outcome(await self.there.finished(job)) == ["alpha"]

    async def guests(self) -> list[dict[str, str]]:
        """Return the guests that run, here and there, with where they are."""
        both = [(await each.snapshot()).guests for each in (self.here, self.there)]
        return [{name: node for node, names in each.items() for name in names} for each in both]


def creation(told: dict[str, Any], **changes: Any) -> CreateInstance:
    wire = {
        "OP_ID": "OP_INSTANCE_CREATE",
        "mode": "remote-import", "instance_name": "web1", "disk_template": "file",
        "disks": [{"size": 64}], "nics": [], "pnode": "alpha", "start": True,
        "source_handshake": told["handshake"], "source_x509_ca": told["x509_ca"],
        "source_instance_name": "web1", "compress": "gzip",
    }  # fmt: skip
    operation = read_operation(wire | changes)
    assert isinstance(operation, CreateInstance)
    return operation


def export(told: dict[str, Any], expected: dict[str, Any], **changes: Any) -> ExportInstance:
    wire = {
        "OP_ID": "OP_BACKUP_EXPORT", "instance_name": "web1", "mode": "remote",
        "target_node": expected["disks"], "destination_x509_ca": expected["x509_ca"],
        "x509_key_name": told["x509_key_name"], "shutdown": True, "remove_instance": True,
    }  # fmt: skip
    operation = read_operation(wire | changes)
    assert isinstance(operation, ExportInstance)
    return operation


def written(cluster: SimulatedCluster, node: str) -> list[str]:
    return list(cluster.machines[node].files.contents.values())


def tell(story: Story, *, trust: bool = True) -> None:
    async def scenario() -> None:
        bridge = FakeBridge()
        async with (
            simulated_cluster(bridge=bridge) as here,
            simulated_cluster(1, bridge=bridge) as there,
        ):
            await web1_with_data(here)
            for cluster in (here, there) if trust else ():
                await cluster.run(SECRET)
            await story(Clusters(here, there, bridge))

    simulate(scenario())


def test_an_instance_moves_to_another_cluster_with_its_data() -> None:
    async def story(clusters: Clusters) -> None:
        await clusters.move()
        assert clusters.here.config.find_instance("web1") is None
        assert written(clusters.here, "gamma") == []
        assert written(clusters.there, "alpha") == [DATA]
        assert await clusters.guests() == [{}, {"web1": "alpha"}]
        for cluster, node in ((clusters.here, "gamma"), (clusters.there, "alpha")):
            assert cluster.machines[node].copier.known == ()

    tell(story)


def test_it_comes_to_both_nodes_of_a_mirrored_disk() -> None:
    async def scenario() -> None:
        bridge = FakeBridge()
        async with (
            simulated_cluster(bridge=bridge) as here,
            simulated_cluster(2, bridge=bridge) as there,
        ):
            await web1_with_data(here)
            for cluster in (here, there):
                await cluster.run(SECRET)
            clusters = Clusters(here, there, bridge)
            told = await clusters.prepared()
            job, expected = await clusters.expected(told, disk_template="drbd", snode="beta")
            await here.run(export(told, expected))
            assert outcome(await there.finished(job)) == ["alpha", "beta"]
            for node in ("alpha", "beta"):
                assert DATA in there.machines[node].contents.values()
            assert await clusters.guests() == [{}, {"web1": "alpha"}]

    simulate(scenario())


def test_one_that_goes_on_is_sent_as_it_was_at_one_moment() -> None:
    async def story(clusters: Clusters) -> None:
        here = clusters.here
        await here.run(mirrored("shop", "alpha", "beta"))
        told = await here.run(PrepareExport(instance_name=SHOP, mode="remote"))
        job, expected = await clusters.expected(told, instance_name="shop", start=False)
        stays = {"shutdown": False, "remove_instance": False}
        await here.run(export(told, expected, instance_name="shop", **stays))
        assert outcome(await clusters.there.finished(job)) == ["alpha"]
        assert await clusters.guests() == [{"web1": "gamma", "shop": "alpha"}, {}]
        volumes = here.machines["alpha"].volumes.names()
        assert len(volumes) == 2, "the snapshot is gone"

    tell(story)


def test_a_prepared_export_to_a_node_tells_nothing() -> None:
    async def story(clusters: Clusters) -> None:
        assert await clusters.here.run(PrepareExport(instance_name=WEB1, mode="local")) is None
        with pytest.raises(InvalidRequest, match="not “sideways”"):
            await clusters.here.run(PrepareExport(instance_name=WEB1, mode="sideways"))

    tell(story, trust=False)


def test_clusters_that_share_no_secret_are_told_how_to() -> None:
    async def story(clusters: Clusters) -> None:
        with pytest.raises(Conflict, match="--cluster-domain-secret=FILE"):
            await clusters.prepared()
        await clusters.here.run(SECRET)
        told = await clusters.prepared()
        with pytest.raises(Conflict, match="--cluster-domain-secret=FILE"):
            await clusters.expected(told)
        await clusters.there.run(RenewCrypto(cluster_domain_secret="another one than there"))
        with pytest.raises(InvalidRequest, match="do not know the same secret"):
            await clusters.expected(told)
        await clusters.here.run(RenewCrypto(new_cluster_domain_secret=True))
        assert DOMAIN_KEY not in clusters.here.state.secrets
        with pytest.raises(Conflict):
            await clusters.prepared()

    tell(story, trust=False)


FORGED = {
    "source_handshake": (["gantry-1", "00" * 32, "salt"], "do not know the same secret"),
    "source_x509_ca": ("X-Ganeti-Signature: salt/00\n\nPEM", "certificate was not signed"),
    "source_instance_name": (None, "have to be given"),
}


@pytest.mark.parametrize("name", FORGED)
def test_nothing_is_expected_of_who_is_not_trusted(name: str) -> None:
    value, complaint = FORGED[name]

    async def story(clusters: Clusters) -> None:
        told = await clusters.prepared()
        with pytest.raises(InvalidRequest, match=complaint):
            await clusters.expected(told, **{name: value})
        ganetis = [0, *told["handshake"][1:]]
        with pytest.raises(InvalidRequest, match="in another way"):
            await clusters.expected(told, source_handshake=ganetis)

    tell(story)


def test_nothing_is_sent_to_who_is_not_trusted() -> None:
    async def story(clusters: Clusters) -> None:
        told = await clusters.prepared()
        job, expected = await clusters.expected(told)
        (place,) = expected["disks"]
        elsewhere = [["192.0.2.66", *place[1:]]]
        certificate = expected["x509_ca"].replace("BEGIN", "BEGIM")
        for wrong, complaint in (
            ({"target_node": elsewhere}, "disk 0 is expected was not signed"),
            ({"target_node": [place, place]}, "has 1 disks, and the other cluster expects 2"),
            ({"target_node": []}, "expects 0"),
            ({"destination_x509_ca": certificate}, "certificate was not signed"),
            ({"destination_x509_ca": None}, "have to be given"),
            ({"x509_key_name": ["gamma", "00", "salt"]}, "not signed by this cluster"),
        ):
            with pytest.raises(InvalidRequest, match=complaint):
                await clusters.here.run(export(told, expected, **wrong))
        await clusters.here.run(MoveInstance(instance_name=WEB1, target_node=NodeName("beta")))
        with pytest.raises(Conflict, match="prepare it again"):
            await clusters.here.run(export(told, expected))
        await clusters.there.master.luxi("CancelJob", job)
        assert (await clusters.there.finished(job)).status is Status.CANCELED
        assert await clusters.guests() == [{"web1": "beta"}, {}]
        assert written(clusters.there, "alpha") == []

    tell(story)


def test_one_without_disks_is_not_started_there_while_it_runs_here() -> None:
    async def story(clusters: Clusters) -> None:
        told = await clusters.prepared()
        with pytest.raises(InvalidRequest, match="has no disks, and nothing that could be sent"):
            await clusters.expected(told, disk_template="diskless", disks=[])
        assert await clusters.guests() == [{"web1": "gamma"}, {}]

    tell(story)


@pytest.mark.parametrize("timeout", [-1000, 10**9])
def test_a_time_to_stop_that_makes_no_sense_is_refused(timeout: int) -> None:
    async def story(clusters: Clusters) -> None:
        told = await clusters.prepared()
        with pytest.raises(InvalidRequest, match="source_shutdown_timeout"):
            await clusters.expected(told, source_shutdown_timeout=timeout)

    tell(story)


def test_who_is_not_sent_anything_gives_up_and_leaves_nothing() -> None:
    async def story(clusters: Clusters) -> None:
        job, _ = await clusters.expected(await clusters.prepared())
        with pytest.raises(NodeFailure, match="Nobody has come from the node of web1"):
            outcome(await clusters.there.finished(job))
        assert clusters.there.config.find_instance("web1") is None
        assert clusters.there.machines["alpha"].local_disks == []

    tell(story)


@pytest.mark.parametrize("side", ["here", "there"])
def test_one_that_is_cancelled_on_its_way_goes_on_where_it_was(side: str) -> None:
    async def story(clusters: Clusters) -> None:
        clusters.bridge.mib_per_s = 1
        told = await clusters.prepared()
        coming, expected = await clusters.expected(told)
        going = await clusters.here.submit(export(told, expected))
        await asyncio.sleep(20)
        cluster, job = (clusters.here, going) if side == "here" else (clusters.there, coming)
        await cluster.master.luxi("CancelJob", job)
        ended = [await clusters.here.finished(going), await clusters.there.finished(coming)]
        assert Status.SUCCESS not in [each.status for each in ended]
        assert await clusters.guests() == [{"web1": "gamma"}, {}]
        assert written(clusters.here, "gamma") == [DATA]
        assert clusters.there.machines["alpha"].local_disks == []

    tell(story)


@pytest.mark.parametrize("after_s", [3, 20, 66])
def test_it_arrives_whatever_becomes_of_the_coordinators(after_s: float) -> None:
    async def story(clusters: Clusters) -> None:
        clusters.bridge.mib_per_s = 1
        told = await clusters.prepared()
        coming, expected = await clusters.expected(told)
        going = await clusters.here.submit(export(told, expected))
        await asyncio.sleep(after_s)
        for cluster in (clusters.here, clusters.there):
            await cluster.crash_master()
            await cluster.start_master("alpha")
        assert outcome(await clusters.here.finished(going)) == [True, [True]]
        assert outcome(await clusters.there.finished(coming)) == ["alpha"]
        assert written(clusters.there, "alpha") == [DATA]
        assert await clusters.guests() == [{}, {"web1": "alpha"}]

    tell(story)


def test_what_has_arrived_stays_though_the_guest_cannot_be_started() -> None:
    """The other cluster has nothing of it any more."""

    async def story(clusters: Clusters) -> None:
        clusters.bridge.mib_per_s = 1
        told = await clusters.prepared()
        coming, expected = await clusters.expected(told, nics=[{}])
        clusters.there.machines["alpha"].network.bridges.clear()
        await clusters.here.run(export(told, expected))
        assert (await clusters.there.finished(coming)).status is Status.ERROR
        assert clusters.there.config.find_instance("web1")
        assert written(clusters.there, "alpha") == [DATA]

    tell(story)
