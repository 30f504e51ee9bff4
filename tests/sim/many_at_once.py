"""Instances that are ordered at the same time, and whether nodes have what they were given."""

from typing import Any

from msgspec.structs import replace

from common.errors import NoCapacity
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId
from common.noderpc.instances import GuestState
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.state.rows import Put
from tests.support.cluster import SimulatedCluster, outcome

OWN_MIB = 1024  # what a simulated machine keeps for itself


def order(name: str, memory: int = 256, **fields: Any) -> CreateInstance:
    """Return an order for an instance that the allocator places."""
    values: dict[str, Any] = {
        "disk_template": DiskTemplate.SHAREDFILE, "disks": (DiskRequest(size=64),),
        "beparams": {"memory": memory},
    } | fields  # fmt: skip
    return CreateInstance(instance_name=InstanceName(name), **values)


async def submit(cluster: SimulatedCluster, orders: list[CreateInstance]) -> list[JobId]:
    answers = await cluster.master.luxi("SubmitManyJobs", [[each.to_input()] for each in orders])
    return [JobId(number) for _, number in answers]


async def made(cluster: SimulatedCluster, numbers: list[JobId]) -> list[bool]:
    """Wait for all jobs; tell which succeeded. The others may only have found no room."""
    return [await _succeeded(cluster, number) for number in numbers]


async def _succeeded(cluster: SimulatedCluster, number: JobId) -> bool:
    try:
        outcome(await cluster.finished(number))
    except NoCapacity:
        return False
    return True


async def check_not_overcommitted(cluster: SimulatedCluster) -> None:
    for machine in cluster.machines.values():
        guests = await machine.guest_list()
        given = sum(guest.memory for guest in guests if guest.state is GuestState.RUNNING)
        assert given <= machine.hardware.report.memory.total - OWN_MIB, f"{machine.name}: {given}"
    assert not cluster.master.running._around.placing.promises.standing()


async def allow_jobs(cluster: SimulatedCluster, count: int) -> None:
    """Let so many jobs run at once."""
    changed = replace(cluster.config.cluster, max_running_jobs=count)
    await cluster.master.running.store.commit([Put(changed)])
