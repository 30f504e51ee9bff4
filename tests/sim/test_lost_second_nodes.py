"""Whoever stops a mirrored guest for a while has it run again, though its second node is lost then.

The node is lost at each call of the job, one after the other, and does not come back.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Stuck
from common.model.job import Status
from common.names import MiB
from common.rpc.server import Reply
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.base import Operation
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.mirrored_pair import behind, guests, homes, look, tell
from tests.sim.settings import WEB1, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing, Gate
from tests.support.network import Fault, Trip
from tests.support.seeds import one_in
from tests.support.story import is_call

EXPORT = ExportInstance(instance_name=WEB1, target_node="alpha")
STOPPED = replace(EXPORT, room=MiB(1 << 30))  # there is none for snapshots, to copy it from

# Whether it is up when all is done.
ORDERS: dict[str, tuple[Operation[Any, Any], bool]] = {
    "export, stopped for a moment": (EXPORT, True),
    "export, stopped for all the time": (STOPPED, True),
    "export to the node that is lost": (replace(STOPPED, target_node="beta"), True),
    "reboot": (RebootInstance(instance_name=WEB1), True),
    "shut down": (ShutDownInstance(instance_name=WEB1), False),
}


@dataclass
class Lost(Fault):
    """A node loses its power when call number ``index`` of a job has been carried out."""

    cluster: SimulatedCluster
    node: str
    index: int
    count: int = 0

    @property
    def has_happened(self) -> bool:
        return self.count > self.index

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if not is_call(trip):
            return reply
        self.count += 1
        if self.count == self.index + 1:
            await self.cluster.lose_power(self.node)
            if trip.target == self.node:
                raise ConnectionResetError("the machine has no power")
        return reply


async def lost_at(order: Operation[Any, Any], index: int, *, ends_up: bool) -> bool:
    """Lose beta at one call of a job; return whether there was such a call."""
    async with simulated_cluster(candidates=1) as cluster:
        await cluster.run(mirrored())
        lost = Lost(cluster, "beta", index)
        number = await cluster.submit(order)
        cluster.network.faults.append(lost)
        job = await cluster.finished(number)
        cluster.network.faults.clear()
        failure = job.ops[-1].failure
        place = f"call {index + 1}: the job is {job.status}, {failure}"
        assert failure is None or failure.code != Stuck.code, place
        if ends_up or job.status is not Status.SUCCESS:
            assert await guests(cluster) == {"gamma": {"web1": "running"}}, place
        elif lost.has_happened:
            await cluster.run(StartInstance(instance_name=WEB1, force=True))
        await cluster.settle(60.0)
        await look(cluster)
        if lost.has_happened:
            assert behind(cluster) == ["beta"], place
        assert not cluster.pairs.lost, place
        return lost.has_happened


@pytest.mark.parametrize("name", ORDERS)
def test_a_guest_is_never_left_stopped_because_its_second_node_is_lost(name: str) -> None:
    order, ends_up = ORDERS[name]
    index, step = 0, one_in(3)
    while simulate(lost_at(order, index, ends_up=ends_up)):
        index += step
    assert index > step, "there were not enough calls to be disturbed"


@pytest.mark.parametrize("fails", [False, True])
def test_it_is_noted_who_lacks_what_is_written_before_a_guest_goes_on_alone(fails: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        noted: list[list[str]] = []

        class Starting(Fault):
            async def going(self, trip: Trip) -> Reply | None:
                if trip.call.name == "instances.ensure_running":
                    noted.append(behind(cluster))
                return None

        copying = Gate(lambda trip: trip.call.name == "copies.offer")
        cluster.network.faults += [copying, Starting()]
        if fails:
            cluster.network.faults.append(Failing(lambda t: t.call.name == "copies.begin_fetch"))
        job = await cluster.submit(STOPPED)
        await copying.until_held()
        await cluster.lose_power("beta")
        copying.opened.set()
        done = await cluster.finished(job)
        assert noted == [["beta"]], done.ops[-1].failure
        assert (done.status is Status.ERROR) == fails
        assert any("goes on with one copy" in entry.message for entry in done.ops[-1].log)

    tell(story)


def test_a_copy_that_is_behind_itself_is_not_gone_on_with_alone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        copying = Gate(lambda trip: trip.call.name == "copies.offer")
        cluster.network.faults.append(copying)
        job = await cluster.submit(STOPPED)
        await copying.until_held()
        await cluster.lose_power("beta")
        copying.opened.set()
        assert (await cluster.finished(job)).ops[-1].failure
        assert behind(cluster) == ["gamma"]
        assert await guests(cluster) == {}

    tell(story)


def test_an_instance_that_is_failed_over_anywhere_goes_on_where_it_was() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        stopped = Gate(lambda trip: trip.call.name == "instances.ensure_no_shell")
        cluster.network.faults.append(stopped)
        job = await cluster.submit(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        await stopped.until_held()
        await cluster.lose_power("beta")
        stopped.opened.set()
        assert (await cluster.finished(job)).status is Status.ERROR
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert (homes(cluster), behind(cluster)) == (["gamma", "beta"], ["beta"])

    tell(story)


@pytest.mark.parametrize(
    ("order", "parting"),
    [
        (STOPPED, "disks.detach"),
        (FailOverInstance(instance_name=WEB1, target_node="alpha"), "disks.detach"),
        (FailOverInstance(instance_name=WEB1), "disks.attach"),
    ],
)
def test_a_copy_that_failed_just_before_is_not_gone_on_with_though_the_parting_fails(
    order: Operation[Any, Any], parting: str
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        stopping = Gate(lambda trip: trip.call.name == "instances.begin_shutdown")

        class Parting(Fault):
            is_over = False

            async def going(self, trip: Trip) -> Reply | None:
                if trip.target == "gamma" and trip.call.name == parting and not self.is_over:
                    self.is_over = True
                    await cluster.lose_power("beta")
                return None

            async def coming(self, trip: Trip, reply: Reply) -> Reply:
                if trip.target == "gamma" and trip.call.name == "disks.detach":
                    raise ConnectionResetError("the answer is lost")
                return reply

        cluster.network.faults += [stopping, lost := Parting()]
        job = await cluster.submit(order)
        await stopping.until_held()
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        await cluster.settle(5.0)
        cluster.pairs.settle()  # the guest has written to beta's copy alone
        stopping.opened.set()
        await cluster.finished(job)
        cluster.network.faults.remove(lost)
        assert behind(cluster) == ["gamma"]
        assert await guests(cluster) == {}

    tell(story)
