"""Candidates have what their ``gantry-confd`` tells, and nobody else has."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable

from common.model.backing import DrbdBacking
from common.model.secret import CONFD_KEY
from common.names import NodeName
from coordinator.confd.service import Service
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.state.rows import Delete
from tests.sim.settings import BETA, GAMMA, WEB1, create, mirrored
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.confd import Told, ask, service_of

ROLE, MASTER, MIRRORS, NODE_INSTANCES, CONFIGURATION = 1, 3, 7, 8, 10
NAMES = ("alpha", "beta", "gamma")


def play(story: Callable[[SimulatedCluster], Awaitable[None]], *, candidates: int = 3) -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=candidates) as cluster:
            await story(cluster)

    simulate(scenario())


def confd(cluster: SimulatedCluster, node: str) -> Service:
    return service_of(cluster.machines[node].paths.confd)


def instances_on(cluster: SimulatedCluster, at: str, node: str) -> list[str]:
    """Return which instances run on ``node``, as is told at another."""
    told = ask(confd(cluster, at), NODE_INSTANCES, node)
    assert told is not None
    return [instance["name"] for instance in told.answer[0]]


def serial(cluster: SimulatedCluster, at: str) -> int:
    told = ask(confd(cluster, at), MASTER)
    assert told is not None
    return told.serial


def test_candidates_tell_of_a_change_within_a_second_of_its_commit() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", start=False))
        await asyncio.sleep(0.8)
        assert [instances_on(cluster, at, "gamma") for at in NAMES] == [["web1"]] * 3
        assert len({serial(cluster, at) for at in NAMES}) == 1
        before = serial(cluster, "beta")
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node=BETA))
        await asyncio.sleep(0.8)
        assert [instances_on(cluster, at, "beta") for at in NAMES] == [["web1"]] * 3
        assert serial(cluster, "beta") > before

    play(story)


def test_candidates_tell_what_they_know_when_the_master_is_dead() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", start=False))
        await cluster.settle()
        before = serial(cluster, "beta")
        await cluster.lose_power("alpha")
        await cluster.settle()
        assert ask(confd(cluster, "beta"), MASTER) == Told(0, "alpha", before)
        assert instances_on(cluster, "beta", "gamma") == ["web1"]
        await cluster.take_over("beta")
        await asyncio.sleep(0.8)
        told = ask(confd(cluster, "gamma"), MASTER)
        assert told is not None
        assert told.answer == "beta"
        assert told.serial > before

    play(story)


def test_a_candidate_that_was_away_is_told_when_it_is_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.settle()
        cluster.cut("alpha", "gamma")
        await cluster.run(create("web1", "beta", start=False))
        await cluster.settle()
        assert instances_on(cluster, "gamma", "beta") == []
        cluster.heal()
        await cluster.settle(25.0)
        assert instances_on(cluster, "gamma", "beta") == ["web1"]

    play(story)


def test_a_node_that_is_no_candidate_any_more_tells_nothing() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.settle()
        assert ask(confd(cluster, "gamma"), ROLE, "gamma") is not None
        await cluster.run(
            ModifyNode(node_name=GAMMA, master_candidate=False, auto_promote=False, force=True)
        )
        await cluster.settle()
        assert ask(confd(cluster, "gamma"), ROLE, "gamma") is None
        told = ask(confd(cluster, "beta"), ROLE, "gamma")
        assert told is not None
        assert told.answer == 4

    play(story)


def test_all_nodes_tell_if_the_cluster_says_so_and_until_it_says_no() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.settle()
        assert ask(confd(cluster, "gamma"), ROLE, "gamma") is None
        await cluster.run(ModifyCluster(confd_everywhere=True))
        await asyncio.sleep(0.8)
        assert [serial(cluster, at) for at in NAMES] == [serial(cluster, "alpha")] * 3
        await cluster.run(ModifyCluster(confd_everywhere=False))
        await asyncio.sleep(0.8)
        assert ask(confd(cluster, "gamma"), ROLE, "gamma") is None
        assert ask(confd(cluster, "alpha"), ROLE, "gamma") is not None

    play(story, candidates=1)


def test_a_node_that_leaves_keeps_no_key() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.settle()
        folder = cluster.machines["gamma"].paths.confd
        assert (folder / "hmac.key").stat().st_mode & 0o007 == 0
        await cluster.run(RemoveNode(node_name=NodeName("gamma")))
        await cluster.settle()
        assert not list(folder.iterdir())

    play(story)


def test_a_cluster_of_an_older_version_is_given_a_key() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.settle()
        old = cluster.state.secrets[CONFD_KEY]
        await cluster.master.running.store.commit([Delete(old)])
        await cluster.crash_master()
        await cluster.take_over("beta")
        await cluster.settle()
        key = cluster.state.secrets[CONFD_KEY].value
        assert key != old.value
        assert len(key) == 40
        for at in NAMES:
            assert (cluster.machines[at].paths.confd / "hmac.key").read_text() == key
        cluster.check_replicas()

    play(story)


def test_a_renewed_key_is_another_one_and_counts_alone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.settle()
        old = cluster.state.secrets[CONFD_KEY].value
        number = await cluster.submit(RenewCrypto(confd_hmac_key=True))
        job = await cluster.finished(number)
        await asyncio.sleep(1.0)
        new = cluster.state.secrets[CONFD_KEY].value
        assert new != old
        for at in NAMES:
            assert (cluster.machines[at].paths.confd / "hmac.key").read_text() == new
        assert new not in f"{job}", "it would be shown to all who see the job"
        assert ask(confd(cluster, "beta"), MASTER) is not None

    play(story)


def test_what_is_published_holds_no_secret() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(mirrored(start=False))
        await cluster.settle()
        (disk,) = cluster.config.disks.values()
        assert isinstance(disk.backing, DrbdBacking)
        told = ask(confd(cluster, "alpha"), MIRRORS, "beta")
        assert told is not None
        minor = disk.backing.minors[cluster.config.node("beta").uuid]
        assert told.answer == [["beta", minor, "web1", "disk/0", "secondary", "gamma"]]
        text = zlib.decompress((cluster.machines["alpha"].paths.confd / "snapshot").read_bytes())
        assert disk.uuid.encode() in text
        for secret in (disk.backing.secret, *(s.value for s in cluster.state.secrets.values())):
            assert secret.encode() not in text

    play(story)


def test_what_is_only_reserved_is_told_as_that() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(reserved(create("web1", "gamma")))
        await asyncio.sleep(0.8)
        told = ask(confd(cluster, "alpha"), NODE_INSTANCES, "gamma")
        assert told is not None
        assert [each["forthcoming"] for each in told.answer[0]] == [True]

    play(story)
