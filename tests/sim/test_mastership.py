"""Masters that die, are cut off, or are two."""

import asyncio
from contextlib import suppress

import pytest

from common.errors import Deposed, GntError
from common.model.job import Status
from common.names import Epoch, NodeName
from common.noderpc.disks import Disks
from common.noderpc.mastership import Mastership
from coordinator.jobs.running import ended
from coordinator.master.confirm import NotMaster
from coordinator.nodes.calls import Nodes
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from coordinator.quorum.question import Mode
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing, Gate, LastCall, Slow, Watching
from tests.support.network import Line


async def _ends(cluster: SimulatedCluster, name: str) -> GntError | None:
    """Wait until the coordinator on a node stops by itself; return why."""
    coordinator = cluster.find_coordinator(name)
    async with asyncio.timeout(120):
        await coordinator.ended.wait()
    return coordinator.ended_by


def test_a_take_over_finds_everything() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            jobs = cluster.state.jobs
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert cluster.config.master().name == "beta"
            assert cluster.config.instance("web1").name == "web1"
            assert cluster.state.jobs == jobs
            assert cluster.state.stamp.epoch > 1
            await cluster.run(create("web2", "alpha"))

    simulate(scenario())


def test_a_take_over_bears_with_a_busy_node_daemon_of_its_own() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.crash_master()
            slow = Slow(lambda t: t.target == "beta" and t.call.name == "mastership.vote", 0.4)
            cluster.network.faults.append(slow)
            await cluster.take_over("beta")
            assert cluster.config.master().name == "beta"

    simulate(scenario())


def test_a_take_over_when_the_machine_of_the_master_is_dead() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.lose_power("alpha")
            await cluster.take_over("beta")
            await cluster.run(create("web2", "gamma"))
            assert set((await cluster.snapshot()).guests["gamma"]) == {"web1", "web2"}

    simulate(scenario())


def test_the_deposed_master_stops_and_its_orders_are_refused() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            cluster.network.isolate("alpha")
            await cluster.take_over("beta")
            cluster.heal()
            error = await _ends(cluster, "alpha")
            assert isinstance(error, Deposed), error
            assert "beta" in error.message
            # What it may still have sent is refused wherever the new master is known.
            late = Nodes(Line(cluster.network, old.machine), Epoch(2), cluster.random)
            with pytest.raises(Deposed, match="obeys beta"):
                await late.service(Disks, cluster.config.node("gamma")).find(disks=())
            with pytest.raises(NotMaster, match="beta"):
                await cluster.start_master("alpha")

    simulate(scenario())


def test_the_node_that_is_not_named_does_not_start() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = cluster.state.stamp.epoch
            with pytest.raises(NotMaster, match="alpha"):
                await cluster.start_master("beta")
            await cluster.crash_master()
            await cluster.start_master("alpha")
            assert cluster.state.stamp.epoch == before + 1

    simulate(scenario())


def test_of_two_coordinators_on_one_node_the_first_stops() -> None:
    """The daemon refuses this by its socket; if that is evaded, the epoch decides."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            first = cluster.master
            await cluster.start_master("alpha")
            await asyncio.sleep(30)
            assert isinstance(first.ended_by, Deposed)
            assert not first.is_alive
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


def test_a_master_that_comes_back_does_not_depose_the_one_who_is_being_made_meanwhile() -> None:
    """Its ballots are from before the other's first order; its grants come after."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.crash_master()
            orders = Gate(lambda t: t.source == "beta" and t.call.fenced)
            grants = Gate(lambda t: t.source == "alpha" and t.call.name == "mastership.grant")
            cluster.network.faults += [orders, grants]
            taking = asyncio.ensure_future(cluster.start_master("beta", Mode.TAKE_OVER))
            await orders.until_held(2)
            returning = asyncio.ensure_future(cluster.start_master("alpha"))
            await grants.until_held(2)
            orders.opened.set()
            beta = await taking
            grants.opened.set()
            with pytest.raises(NotMaster, match="beta"):
                await returning
            cluster.master_is(beta)
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


def test_an_order_under_way_is_waited_for_by_the_next_master() -> None:
    """noded grants an epoch after older orders have ended, so none takes effect later."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            slow = Slow(lambda trip: trip.call.name == "disks.ensure_present", 1.0)
            cluster.network.faults.append(slow)
            number = await cluster.submit(create("web1", "gamma"))
            await asyncio.sleep(0.5)
            await cluster.crash_master()
            await cluster.take_over("beta")
            job = await cluster.finished(number)
            assert job.status is Status.SUCCESS
            assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    simulate(scenario())


async def _has_master(cluster: SimulatedCluster, *names: str) -> str:
    """Wait until a take-over that was cut short has come to nothing; return who is master.

    Whoever runs is asked first; if nobody does, whoever is named by the nodes is started.
    """
    await cluster.settle(60.0)
    running = [c for c in cluster.coordinators if c.is_alive]
    assert len(running) <= 1, [c.name for c in running]
    for name in names if not running else ():
        with suppress(NotMaster):
            running = [await cluster.start_master(name)]
            break
    assert running, "nobody is master"
    cluster.master_is(running[0])
    await cluster.run(Delay(duration=0.0))
    assert cluster.config.master().name == running[0].name
    return running[0].name


@pytest.mark.parametrize("after", [False, True])
def test_a_take_over_that_dies_anywhere_leaves_a_master(*, after: bool) -> None:
    """Each call of it is the last, before it arrives or after it was carried out."""

    async def scenario(index: int) -> str | None:
        async with simulated_cluster(candidates=2, nodes=4) as cluster:
            old = cluster.master
            last = LastCall("beta", index, after=after)
            cluster.network.faults.append(last)
            taking = cluster.coordinator("beta")
            work = asyncio.ensure_future(taking.take_over())
            hit = asyncio.ensure_future(last.hit.wait())
            await asyncio.wait({work, hit}, return_when=asyncio.FIRST_COMPLETED)
            is_over = work.done()
            await taking.kill()
            await ended(work, hit)
            cluster.network.faults.clear()
            master = await _has_master(cluster, "alpha", "beta")
            assert master == "beta" if is_over else old.is_alive == (master == "alpha")
            return None if is_over else master

    masters: list[str] = []
    while (master := simulate(scenario(len(masters)))) is not None:
        masters.append(master)
    assert len(masters) > 12
    assert masters[:10] == ["alpha"] * 10, "it has not even been granted an epoch"


def test_a_take_over_that_fails_leaves_the_master_and_its_jobs() -> None:
    """Beta's own node has granted it one epoch after the other when it gives up."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            number = await cluster.submit(Delay(duration=30.0))
            lost = Failing(
                lambda t: t.source == "beta" != t.target and t.call.name == "mastership.grant",
                "The disk is full.",
            )
            cluster.network.faults.append(lost)
            with pytest.raises(NotMaster):
                await cluster.take_over("beta")
            cluster.network.faults.clear()
            cluster.master_is(old)
            assert await _has_master(cluster) == "alpha"
            assert (await cluster.finished(number)).status is Status.SUCCESS
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_a_grant_that_is_left_over_on_a_node_ends_no_job() -> None:
    """Of a take-over that failed when nobody looked; the job goes on in a higher epoch."""

    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.settle(120.0)
            line = Line(cluster.network, cluster.machines["beta"])
            gamma = Nodes(line, Epoch(0), cluster.random).service(
                Mastership, cluster.config.node("gamma")
            )
            left_over = Epoch(cluster.state.stamp.epoch + 3)
            await gamma.grant(epoch=left_over, master=NodeName("beta"))
            await cluster.run(create("web1", "gamma"))
            assert cluster.state.stamp.epoch > left_over
            assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    simulate(scenario())


def test_the_deposed_master_hears_it_from_its_own_node_at_once() -> None:
    """So failing back works right away, and it answers no list any more."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            for name in ("beta", "alpha", "gamma"):
                old = cluster.master
                await cluster.take_over(name)
                await asyncio.sleep(0.3)
                assert not old.is_alive
                assert isinstance(old.ended_by, Deposed)
                assert name in old.ended_by.message

    simulate(scenario())


@pytest.mark.parametrize("asks", [False, True])
def test_a_master_that_slept_while_it_was_replaced_and_demoted_steps_down(*, asks: bool) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            old.suspend()
            await cluster.take_over("beta")
            await cluster.run(ModifyNode(node_name=NodeName("alpha"), offline=True))
            await asyncio.sleep(3600)
            old.resume()
            if asks:  # before anything else has told it
                with pytest.raises(Deposed, match="beta"):
                    await old.luxi("QueryInstances", (), ["name"])
            error = await _ends(cluster, "alpha")
            assert isinstance(error, Deposed), error
            assert "beta" in error.message

    simulate(scenario())


def test_a_master_that_was_cut_off_while_it_was_replaced_answers_nothing_old() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            cluster.network.isolate("alpha")
            await cluster.take_over("beta")
            await asyncio.sleep(3600)
            assert old.is_alive
            cluster.heal()
            with pytest.raises(Deposed, match="beta"):
                await old.luxi("QueryInstances", (), ["name"])

    simulate(scenario())


def test_looking_asks_nobody_while_all_is_well() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            votes = Watching(lambda trip: trip.call.name == "mastership.vote")
            cluster.network.faults.append(votes)
            for _ in range(100):
                await cluster.master.luxi("QueryClusterInfo")
                await asyncio.sleep(7.0)
            assert not votes.seen

    simulate(scenario())


def test_a_take_over_that_another_overtakes_says_who_is_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            gate = Gate(lambda trip: trip.source == "beta" and trip.is_commit)
            cluster.network.faults.append(gate)
            overtaken = asyncio.ensure_future(cluster.coordinator("beta").take_over())
            await gate.until_held()
            await cluster.take_over("gamma")
            gate.opened.set()
            with pytest.raises(Deposed, match="gamma"):
                await overtaken

    simulate(scenario())
