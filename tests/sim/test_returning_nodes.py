"""A node that has lost everything it knew, and comes back with its name, its UUID and its disks."""

import shutil
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure, NotFound
from common.model.template import DiskTemplate
from common.names import NodeName
from common.tls.context import Peer
from coordinator.operations.base import Operation
from coordinator.operations.cluster.verify import VerifyCluster
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.node.add import AddNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.renew_key import RenewKey
from tests.sim.settings import ALPHA, BETA, GAMMA, WEB1, create, mirrored
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Mishap, Once
from tests.support.image import ip_of

Meanwhile = Callable[[], Awaitable[None]]


def readd(cluster: SimulatedCluster, name: NodeName = GAMMA, **fields: object) -> AddNode:
    token = str(cluster.machines[name].token)
    return AddNode(node_name=name, token=token, readd=True, **fields)  # type: ignore[arg-type]


async def fail_at(cluster: SimulatedCluster, call: str, operation: Operation[Any, Any]) -> None:
    """Run an operation whose first call of some name fails, and changes nothing."""
    fails = Mishap.FAILS_BEFORE
    once = Once(lambda trip: trip.call.name == call, 0, fails, cluster.restart_noded)
    cluster.network.faults.append(once)
    with pytest.raises(NodeFailure):
        await cluster.run(operation)
    cluster.network.faults.remove(once)


async def findings(cluster: SimulatedCluster) -> list[str]:
    """Return what a verification of everything finds."""
    number = await cluster.submit(VerifyCluster(findings=True))
    job = await cluster.finished(number)
    told = []
    for _, child in job.ops[0].result["jobs"]:
        ended = await cluster.finished(child)
        told += [each["message"] for each in ended.ops[0].result]
    return told


def test_a_wiped_node_is_the_same_node_again_and_its_copies_are_made_anew_on_request() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = cluster.config.node(GAMMA)
            await cluster.run(mirrored("web1", "beta", "gamma"))
            await cluster.run(reserved(mirrored("web2", "beta", "gamma")))
            await cluster.run(create("web3", "beta", template=DiskTemplate.FILE))
            await cluster.machines["gamma"].wipe()
            job = await cluster.finished(await cluster.submit(readd(cluster)))
            told = [entry.message for entry in job.ops[0].log]
            says = "Disk 0 of web1 is missing on gamma; “gnt-instance replace-disks --on-secondary"
            assert any(says in line for line in told), told
            assert not any("web2" in line or "web3" in line for line in told), told
            after = cluster.config.node(GAMMA)
            assert (after.uuid, after.name, after.primary_ip) == (
                before.uuid, before.name, before.primary_ip,
            )  # fmt: skip
            assert after.key != before.key
            assert after.master_candidate
            await cluster.settle()
            cluster.check_replicas()
            assert any("replace-disks --on-secondary web1" in f for f in await findings(cluster))
            await cluster.run(ReplaceDisks(instance_name=WEB1, on_secondary=True))
            await cluster.settle()
            assert not [f for f in await findings(cluster) if "disk 0" in f]

    simulate(scenario())


def test_the_certificate_of_before_is_worth_nothing_any_more() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            gamma = cluster.machines["gamma"]
            kept = gamma.paths.root.with_name("kept")
            shutil.copytree(gamma.paths.state, kept)
            await gamma.wipe()
            old = cluster.config.node(GAMMA).key
            await cluster.run(readd(cluster))
            for name in cluster.names:
                noded = cluster.machines[name].noded
                assert noded is not None
                assert noded.candidates.revoked.keys == (old,)
            await gamma.kill_noded()
            shutil.rmtree(gamma.paths.state)
            shutil.copytree(kept, gamma.paths.state)
            cluster.disk.have_all_durable(gamma.paths.root)
            await gamma.lose_power()
            await gamma.boot()  # from the disk of before, say out of a drawer
            with pytest.raises(NodeFailure, match="certificate is not gamma's"):
                await cluster.run(create("web1", "gamma"))
            with pytest.raises(GntError, match="does not become master: gamma is not among"):
                await cluster.take_over("gamma")
            await cluster.start_master("alpha")
            await cluster.run(create("web1", "beta"))

    simulate(scenario())


async def come_with_a_key_of_before(cluster: SimulatedCluster, meanwhile: Meanwhile) -> None:
    """Have gamma come back with another key, and then be as it was before it did."""
    gamma = cluster.machines["gamma"]
    await gamma.wipe()
    await fail_at(cluster, "join.accept", readd(cluster))  # it has made its key
    kept = gamma.paths.root.with_name("kept")
    shutil.copytree(gamma.paths.state, kept)
    await cluster.run(readd(cluster))
    await meanwhile()
    await gamma.kill_noded()
    shutil.rmtree(gamma.paths.state)
    shutil.copytree(kept, gamma.paths.state)
    cluster.disk.have_all_durable(gamma.paths.root)
    await gamma.lose_power()
    await gamma.boot()


def test_who_comes_with_a_key_that_is_revoked_does_not_get_in() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:

            async def meanwhile() -> None:
                await cluster.run(RenewKey(node_name=GAMMA))

            await come_with_a_key_of_before(cluster, meanwhile)
            node, revoked = cluster.config.node(GAMMA), cluster.config.revoked.keys
            with pytest.raises(Conflict, match="has a key that is revoked"):
                await cluster.run(readd(cluster))
            assert cluster.config.revoked.keys == revoked
            assert cluster.config.node(GAMMA).key == node.key
            await cluster.machines["gamma"].wipe()
            await cluster.run(readd(cluster))
            await cluster.settle()
            assert not [each for each in await findings(cluster) if "revoked" in each]

    simulate(scenario())


def test_who_comes_with_the_key_that_it_had_keeps_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await come_with_a_key_of_before(cluster, cluster.settle)
            node = cluster.config.node(GAMMA)
            await cluster.run(readd(cluster))
            assert cluster.config.node(GAMMA).key == node.key
            assert node.key not in cluster.config.revoked

    simulate(scenario())


def test_a_node_that_was_getting_another_key_when_it_was_lost_is_known_by_neither() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await fail_at(cluster, "identity.renew", RenewKey(node_name=GAMMA))
            former = cluster.config.node(GAMMA)
            assert former.next_key not in ("", former.key)
            await cluster.machines["gamma"].wipe()
            await cluster.run(readd(cluster))
            after = cluster.config.node(GAMMA)
            assert after.master_candidate
            assert after.next_key == ""
            for name in cluster.names:
                noded = cluster.machines[name].noded
                assert noded is not None
                for key in (former.key, former.next_key):
                    assert not noded.candidates.includes(Peer(GAMMA, key))
                    assert noded.candidates.has_revoked(Peer(GAMMA, key))
                assert noded.candidates.includes(Peer(GAMMA, after.key))

    simulate(scenario())


def test_who_could_not_come_back_is_known_by_both_keys_that_counted_before() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyNode(node_name=GAMMA, master_candidate=False, force=True))
            await fail_at(cluster, "identity.renew", RenewKey(node_name=GAMMA))
            before = cluster.config.node(GAMMA)
            assert before.next_key not in ("", before.key)
            await cluster.machines["gamma"].wipe()
            await fail_at(cluster, "join.accept", readd(cluster))
            after = cluster.config.node(GAMMA)
            assert (after.key, after.next_key) == (before.key, before.next_key)

    simulate(scenario())


def test_a_primary_that_was_wiped_gets_the_copy_of_the_node_that_took_over() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored("web1", "gamma", "beta"))
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await cluster.run(FailOverInstance(instance_name=WEB1))
            await cluster.machines["gamma"].wipe()
            await cluster.run(readd(cluster))
            assert not cluster.config.node(GAMMA).offline
            await cluster.run(ReplaceDisks(instance_name=WEB1, on_secondary=True))
            await cluster.settle()
            assert not [f for f in await findings(cluster) if "disk 0" in f]

    simulate(scenario())


def test_disks_that_only_a_wiped_node_had_are_named_with_what_makes_them_anew() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=DiskTemplate.PLAIN, start=False))
            await cluster.machines["gamma"].wipe()
            await cluster.run(readd(cluster))
            told = await findings(cluster)
            assert any("“gnt-instance recreate-disks web1” makes it anew, empty" in f for f in told)

    simulate(scenario())


def test_who_comes_back_while_the_pool_is_full_is_no_candidate() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            await cluster.lose_power("gamma")
            gone = ModifyNode(node_name=GAMMA, offline=True, auto_promote=True)
            await cluster.run(gone)
            await cluster.machines["gamma"].wipe()
            offline = cluster.config.node(GAMMA)
            await cluster.run(readd(cluster))
            names = [node.name for node in cluster.config.candidates()]
            assert names == ["alpha", "beta", "delta"]
            # Who keeps a list of nodes sees by these that it is not as it was.
            back = cluster.config.node(GAMMA)
            assert back.serial_no > offline.serial_no
            assert back.mtime > offline.mtime

    simulate(scenario())


def test_what_is_no_return_is_refused_and_nothing_is_done() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            before = await cluster.snapshot()
            delta = str(cluster.machines["delta"].token)

            def order(name: str, **fields: object) -> AddNode:
                given = {"node_name": NodeName(name), "token": delta, "readd": True, **fields}
                return AddNode(**given)  # type: ignore[arg-type]

            with pytest.raises(NotFound, match="delta"):
                await cluster.run(order("delta"))
            with pytest.raises(Conflict, match="alpha is the master"):
                await cluster.run(order(ALPHA))
            with pytest.raises(InvalidRequest, match="shows another certificate"):
                await cluster.run(order(BETA))  # which knows all it knew
            with pytest.raises(InvalidRequest, match=r"its primary address was .*, not 192.0.2.9"):
                await cluster.run(order(BETA, primary_ip="192.0.2.9"))
            with pytest.raises(InvalidRequest, match="its vm_capable was True, not False"):
                await cluster.run(order(BETA, vm_capable=False))
            with pytest.raises(InvalidRequest, match="its group was default, not other"):
                await cluster.run(order(BETA, group="other"))
            with pytest.raises(Conflict, match="--readd has it come back"):
                await cluster.run(order(BETA, readd=False, primary_ip=ip_of("delta")))
            with pytest.raises(InvalidRequest, match="Say with --primary-ip"):
                await cluster.run(order("delta", readd=False))
            assert not before.differences(await cluster.snapshot())

    simulate(scenario())
