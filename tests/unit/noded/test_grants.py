"""A whole node whose master changes: what it has granted it remembers, and tells."""

import asyncio

import pytest

from common.errors import Deposed, InvalidRequest
from common.messages import to_builtins, to_json
from common.model.commit import next_commit
from common.model.stamp import Stamp
from common.names import Epoch, NodeName, TaskId
from common.noderpc.mastership import Ballot
from common.noderpc.tasks import TaskState, TaskStatus
from common.paths import Paths
from common.rpc.envelope import open_answer
from tests.support.clock import simulate
from tests.unit.noded.whole_node import ALPHA, WEB1, Rig


def test_a_member_that_lost_its_grant_goes_by_its_replica(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            await _grant(rig, 4, "alpha")
            commit = next_commit(Stamp(), Epoch(4), ())
            await rig.call("replica.append", Stamp, commits=(commit,), epoch=4)
        Paths(str(rig.root)).grants.unlink()
        async with rig.running():
            ballot = await rig.call("mastership.vote", Ballot)
            assert (ballot.master, ballot.epoch) == (None, 4)
            with pytest.raises(Deposed):
                await _grant(rig, 4, "gamma")
            with pytest.raises(Deposed, match="epoch 3 is over"):
                await rig.call("replica.append", Stamp, commits=(), epoch=3)

    simulate(scenario())


def test_a_ballot_tells_the_grant_and_that_there_is_no_state(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            await _grant(rig, 4, "alpha")
            ballot = await rig.call("mastership.vote", Ballot)
            assert ballot == Ballot(master=NodeName("alpha"), epoch=Epoch(4))
        async with rig.running():
            assert (await rig.call("mastership.vote", Ballot)).epoch == 4
            with pytest.raises(Deposed):
                await rig.call("disks.find", epoch=3, disks=[])

    simulate(scenario())


async def _grant(rig: Rig, epoch: int, master: str) -> None:
    body = to_json({"epoch": epoch, "master": master})
    reply = await rig.node.call("mastership", "grant", rig.envelope("grant"), ALPHA, body)
    open_answer(reply.body, None, what="the answer")


def test_an_epoch_begins_with_one_and_has_a_master(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            with pytest.raises(InvalidRequest, match="begin with 1"):
                await _grant(rig, 0, "alpha")
            with pytest.raises(InvalidRequest, match="no node name"):
                await _grant(rig, 1, "../alpha")

    simulate(scenario())


def test_a_watcher_of_the_old_master_does_not_hold_up_the_new(rig: Rig) -> None:
    async def scenario() -> None:
        async with rig.running():
            await rig.join()
            await rig.call("instances.ensure_running", guest=to_builtins(WEB1))
            task = TaskId("t")
            await rig.call("instances.begin_shutdown", instance=WEB1.id, wait_s=100.0, task=task)
            first = await rig.call("tasks.watch", TaskStatus, task=task, seen="", wait_s=30.0)
            watching = asyncio.ensure_future(
                rig.call("tasks.watch", TaskStatus, task=task, seen=first.message, wait_s=30.0)
            )
            await asyncio.sleep(0)
            begun = asyncio.get_running_loop().time()
            await _grant(rig, 1, "gamma")
            assert asyncio.get_running_loop().time() == begun
            assert (await watching).state is TaskState.DONE  # it outlives its coordinator

    simulate(scenario())
