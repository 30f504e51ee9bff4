"""Orders for instances that are only reserved, and that are made of what is reserved."""

from typing import Any

from common.model.instance import Instance
from common.model.template import DiskTemplate
from common.names import InstanceName
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.commit import CommitInstance
from coordinator.operations.instance.create import CreateInstance
from tests.sim.stories.reserved import reserved
from tests.support.cluster import SimulatedCluster

OWN_MIB = 1024  # what a simulated machine keeps for itself


def order(name: str, memory: int = 256, **fields: Any) -> CreateInstance:
    """Return an order for an instance that the allocator places."""
    values: dict[str, Any] = {
        "disk_template": DiskTemplate.PLAIN, "disks": (DiskRequest(size=64),),
        "beparams": {"memory": memory},
    } | fields  # fmt: skip
    return CreateInstance(instance_name=InstanceName(name), **values)


def commit(name: str, **fields: Any) -> CommitInstance:
    return CommitInstance(instance_name=InstanceName(name), commit=True, **fields)


async def web1(cluster: SimulatedCluster, order: CreateInstance) -> Instance:
    """Reserve web1, and return it as it is in the configuration."""
    uuid = await cluster.run(reserved(order))
    return cluster.config.instances[uuid]
