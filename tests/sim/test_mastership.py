"""Masters that die, are cut off, or are two."""

import asyncio
from contextlib import suppress

import pytest

from common.errors import Conflict, Deposed, GntError, Unreachable
from common.model.job import Status
from common.names import Epoch, JobId, NodeName
from common.noderpc.disks import Disks
from common.noderpc.mastership import Mastership
from coordinator.jobs.running import ended
from coordinator.master.confirm import NotMaster
from coordinator.nodes.calls import Nodes
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from coordinator.quorum.question import Mode, Word
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Claiming, Failing, Gate, LastCall, Slow, Watching
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


def test_without_a_majority_the_master_is_read_only_and_recovers() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.isolate("alpha")
            # The first change shows that nobody answers; it is not lost, it waits.
            with pytest.raises(Unreachable, match="not known whether job 1 will run") as late:
                await cluster.submit(Delay(duration=0.0))
            await asyncio.sleep(60)
            with pytest.raises(Conflict, match=r"read-only.*beta.*gamma") as refused:
                await cluster.submit(Delay(duration=0.0))
            assert refused.value.detail["nodes"] == ["beta", "gamma"]
            assert await cluster.master.luxi("QueryClusterInfo")  # looking is possible
            cluster.heal()
            (number,) = late.value.detail["jobs"]
            await cluster.settle(30.0)
            assert (await cluster.finished(number)).status is Status.SUCCESS
            await cluster.run(Delay(duration=0.0))
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_a_job_that_waits_for_the_majority_goes_on_when_it_is_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "alpha"))
            cluster.network.isolate("alpha")
            await asyncio.sleep(300)
            cluster.heal()
            assert (await cluster.finished(number)).status is Status.SUCCESS
            assert (await cluster.snapshot()).guests["alpha"] == {"web1": "running"}

    simulate(scenario())


def test_a_take_over_needs_a_majority() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.crash_master()
            cluster.network.isolate("beta")
            with pytest.raises(NotMaster, match="does not become master"):
                await cluster.take_over("beta")

    simulate(scenario())


def test_the_operators_word_replaces_the_majority_and_is_recorded() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=2) as cluster:
            await cluster.run(create("web1", "beta"))
            await cluster.lose_power("alpha")
            with pytest.raises(NotMaster):
                await cluster.take_over("beta")
            await cluster.take_over("beta", Word.NO_VOTING)
            assert {override.unheard for override in cluster.config.cluster.overrides} == {
                ("alpha",)
            }
            await cluster.run(create("web2", "beta"))

    simulate(scenario())


async def _changed_without_gamma(cluster: SimulatedCluster, change: ModifyNode) -> JobId:
    """Change the pool while gamma is cut off; then it is back, and no coordinator and no beta.

    Returns:
        A job that was acknowledged last, which gamma does not know of.
    """
    await cluster.settle()
    cluster.network.isolate("gamma")
    await cluster.run(change)
    known = await cluster.submit(Delay(duration=0.0))
    await cluster.finished(known)
    await cluster.crash_master()
    await cluster.lose_power("beta")
    cluster.heal()
    return known


@pytest.mark.parametrize("word", [Word.NO_VOTING, Word.LOCAL_IS_RIGHT])
def test_no_voting_drops_nothing_on_a_node_that_knows_this_one_as_demoted(word: Word) -> None:
    """Alpha answers, if only to refuse: what it holds is within reach. A stronger word drops it."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            demotion = ModifyNode(node_name=NodeName("gamma"), master_candidate=False)
            known = await _changed_without_gamma(cluster, demotion)
            if word is Word.NO_VOTING:
                with pytest.raises(NotMaster, match=r"alpha answers, .* not listen to gamma"):
                    await cluster.take_over("gamma", word)
                await cluster.machines["beta"].boot()
                await cluster.take_over("alpha")
                assert known in cluster.state.jobs
            else:
                await cluster.take_over("gamma", word)
                assert known not in cluster.state.jobs
                (override,) = {each.unheard for each in cluster.config.cluster.overrides}
                assert override == ("alpha", "beta")

    simulate(scenario())


@pytest.mark.parametrize("word", [Word.NO_VOTING, Word.LOCAL_IS_RIGHT])
def test_no_voting_drops_nothing_on_a_node_that_this_one_does_not_know_as_promoted(
    word: Word,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            promotion = ModifyNode(node_name=NodeName("delta"), master_candidate=True)
            known = await _changed_without_gamma(cluster, promotion)
            await cluster.lose_power("alpha")
            if word is Word.NO_VOTING:
                with pytest.raises(NotMaster, match=r"delta shows a newer state"):
                    await cluster.take_over("gamma", word)
                await cluster.take_over("delta", word)
                assert known in cluster.state.jobs
            else:
                await cluster.take_over("gamma", word)
                assert known not in cluster.state.jobs

    simulate(scenario())


@pytest.mark.parametrize("hears_them", [True, False])
def test_no_job_number_is_given_twice_after_a_state_was_set_aside(*, hears_them: bool) -> None:
    """Nor a task's, which has its job's number: a second one would find its work done."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            cluster.network.isolate("beta")
            await cluster.run(Delay(duration=0.0))
            lost = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(lost)
            await cluster.crash_master()
            if hears_them:
                cluster.heal()
            await cluster.take_over("beta", Word.LOCAL_IS_RIGHT)
            assert lost not in cluster.state.jobs
            cluster.heal()
            assert await cluster.submit(Delay(duration=0.0)) > lost
            await cluster.settle()
            await cluster.crash_master()
            await cluster.take_over("gamma")
            assert await cluster.submit(Delay(duration=0.0)) > lost + 1

    simulate(scenario())


def test_numbers_that_were_set_aside_stay_so_though_no_job_came_after() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            cluster.network.isolate("beta")
            lost = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(lost)
            await cluster.crash_master()
            cluster.heal()
            await cluster.take_over("beta", Word.LOCAL_IS_RIGHT)
            await cluster.settle()
            cluster.check_replicas()
            await cluster.lose_power("alpha")  # whose replica, and gamma's, have heard of it
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert await cluster.submit(Delay(duration=0.0)) > lost

    simulate(scenario())


def test_what_was_acknowledged_by_a_majority_survives_the_newest_node() -> None:
    """The candidate that lagged behind takes over, and first fetches what it missed."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.cut("alpha", "gamma")
            await cluster.run(create("web1", "alpha"))
            await cluster.crash_master()
            cluster.heal()
            await cluster.take_over("gamma")
            assert cluster.config.find_instance("web1")
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_what_is_acknowledged_during_a_take_over_survives_it() -> None:
    """The old master goes on until the last moment, also on the node that takes over."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            taken: list[int] = []

            async def submit() -> None:
                with suppress(GntError):
                    while True:
                        order = Delay(duration=0.0).to_input()
                        taken.append(await old.luxi("SubmitJob", [order]))

            slow = Slow(lambda t: t.source == "beta" and t.call.name == "mastership.vote", 0.02)
            cluster.network.faults.append(slow)
            submitting = asyncio.ensure_future(submit())
            await asyncio.sleep(0.1)
            await cluster.take_over("beta")
            submitting.cancel()
            assert len(taken) > 10
            assert set(taken) <= set(cluster.state.jobs)

    simulate(scenario())


def test_what_is_acknowledged_until_the_last_grant_survives_a_take_over() -> None:
    """A ballot from before its node's grant says nothing about what was stored in between."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            old = cluster.master
            gate = Gate(lambda t: t.source == "beta" and t.call.name == "mastership.grant")
            cluster.network.faults.append(gate)
            taking = asyncio.ensure_future(cluster.take_over("beta"))
            await gate.until_held(2)
            await asyncio.sleep(0.1)
            order = Delay(duration=0.0).to_input()
            # Of the candidates, beta alone is left behind: it has to fetch what it misses.
            cluster.cut("alpha", "beta")
            number = await old.luxi("SubmitJob", [order])
            cluster.heal()
            gate.opened.set()
            await taking
            assert number in cluster.state.jobs

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


def test_a_candidate_that_was_away_is_caught_up() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.machines["gamma"].kill_noded()
            for number in range(5):
                await cluster.run(create(f"web{number}", "alpha"))
            await cluster.machines["gamma"].start_noded()
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_a_candidate_with_a_full_disk_stops_nobody() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            full = Failing(
                lambda trip: trip.target == "gamma" and trip.is_commit, "The disk of gamma is full."
            )
            cluster.network.faults.append(full)
            await cluster.run(create("web1", "alpha"))
            assert "gamma" in cluster.master.running.store.troubles
            cluster.network.faults.clear()
            await cluster.settle()
            cluster.check_replicas()
            assert not cluster.master.running.store.troubles

    simulate(scenario())


def test_a_slow_candidate_holds_nobody_up() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Slow(lambda trip: trip.target == "gamma", 2.0))
            began = cluster.now()
            await cluster.run(Delay(duration=0.0))
            assert cluster.now() - began < 1.0

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


def test_an_offline_node_is_not_asked_but_votes() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=5, candidates=3) as cluster:
            await cluster.run(ModifyNode(node_name=NodeName("delta"), offline=True))
            with pytest.raises(Unreachable, match="marked offline"):
                line = Line(cluster.network, cluster.machines["alpha"])
                nodes = Nodes(line, Epoch(2), cluster.random)
                await nodes.service(Disks, cluster.config.node("delta")).find(disks=())
            await cluster.lose_power("alpha")
            await cluster.lose_power("epsilon")
            await cluster.take_over("beta")  # with gamma and delta these are three of five

    simulate(scenario())


def test_a_node_that_is_no_candidate_any_more_leaves_the_master_alone() -> None:
    """Its own lists, from before it was switched off, still call it one."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("beta")
            await cluster.run(ModifyNode(node_name=NodeName("beta"), offline=True))
            await cluster.machines["beta"].boot()
            master, epoch = cluster.master, cluster.state.stamp.epoch
            with pytest.raises(NotMaster, match="beta is not among the master candidates"):
                await cluster.take_over("beta")
            cluster.master_is(master)
            await cluster.run(Delay(duration=0.0))
            await cluster.settle(60.0)
            await cluster.run(Delay(duration=0.0))
            assert cluster.state.stamp.epoch == epoch

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


def test_a_node_that_always_claims_another_master_stops_nobody() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            cluster.network.faults.append(Claiming("gamma", "beta"))
            await cluster.settle(300.0)
            for number in range(5):
                with pytest.raises(GntError, match="obeys beta"):
                    await cluster.run(create("elsewhere", "gamma"))
                await cluster.run(create(f"web{number}", "alpha"))
                await cluster.settle(100.0)
            await cluster.crash_master()
            await cluster.start_master("alpha")
            await cluster.take_over("beta")
            await cluster.run(Delay(duration=0.0))

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
