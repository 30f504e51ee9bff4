"""Stories of instances that are only reserved, and of making them."""

from msgspec.structs import replace

from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.instance.commit import CommitInstance
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.reserve import ReserveInstance
from tests.sim.settings import WEB1, added, create, disk, mirrored
from tests.support.cluster import SimulatedCluster
from tests.support.story import Setting, Story

COMMIT = CommitInstance(instance_name=WEB1, commit=True)


def reserved(order: CreateInstance) -> ReserveInstance:
    """Return the order that reserves what another one would make."""
    said = {name: getattr(order, name) for name in order.__struct_fields__}
    return ReserveInstance(**said | {"forthcoming": True})


def web1_reserved(order: CreateInstance) -> Setting:
    """Begin with an instance that is only reserved."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(reserved(order))

    return setting


ON_GAMMA = create(node="gamma", template=DiskTemplate.PLAIN)

STORIES = {
    "reserve where the allocator says": Story(reserved(create(template=DiskTemplate.PLAIN))),
    "reserve nothing but a UUID": Story(ReserveInstance(forthcoming=True)),
    "reserve on two nodes": Story(reserved(mirrored())),
    "remove what is reserved": Story(RemoveInstance(instance_name=WEB1), web1_reserved(mirrored())),
    "rename what is reserved": Story(
        RenameInstance(instance_name=WEB1, new_name=InstanceName("shop")), web1_reserved(ON_GAMMA)
    ),
    "change what is reserved": Story(
        ModifyInstance(
            instance_name=WEB1,
            beparams={"memory": "256M"},
            expires="1h",
            nics=(added(-1, {"name": "inner"}),),
            disks=(disk("add", size=32),),
        ),
        web1_reserved(ON_GAMMA),
    ),
    "mirror what is reserved": Story(
        ModifyInstance(
            instance_name=WEB1,
            disk_template=DiskTemplate.DRBD,
            remote_node="beta",
            disks=(disk("add", size=32),),
        ),
        web1_reserved(ON_GAMMA),
    ),
    "grow a disk that is reserved": Story(
        GrowDisk(instance_name=WEB1, disk=0, amount=MiB(64)), web1_reserved(mirrored())
    ),
    "let what is reserved change sides": Story(
        FailOverInstance(instance_name=WEB1), web1_reserved(mirrored())
    ),
    "mirror what is reserved to another node": Story(
        ReplaceDisks(instance_name=WEB1, remote_node="alpha"), web1_reserved(mirrored())
    ),
    "make what is reserved": Story(COMMIT, web1_reserved(ON_GAMMA)),
    "make what is reserved, and do not start it": Story(
        replace(COMMIT, start=False), web1_reserved(create())
    ),
    "make what is reserved on two nodes": Story(COMMIT, web1_reserved(mirrored())),
}
