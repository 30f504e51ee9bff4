"""Stories of one instance, where it is."""

from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.console import FindConsole
from coordinator.operations.instance.create_many import CreateInstances
from coordinator.operations.instance.deactivate_disks import DeactivateDisks
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reboot import RebootInstance, RebootType
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import (
    GAMMA,
    WEB1,
    added,
    changed,
    create,
    removed,
    web1_on,
    web1_with_data_that_is_down,
)
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story


async def web1_with_active_disks(cluster: SimulatedCluster) -> None:
    await cluster.run(create(node="gamma", start=False))
    await cluster.run(ActivateDisks(instance_name=WEB1))


async def web1_without_disks(cluster: SimulatedCluster) -> None:
    await cluster.run(create(node="gamma", template=DiskTemplate.FILE, start=False))
    cluster.machines["gamma"].files.disks.clear()


async def web1_with_lost_disks(cluster: SimulatedCluster) -> None:
    await cluster.run(create(node="gamma", template=DiskTemplate.FILE, start=False))
    await cluster.lose_power("gamma")
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))


STORIES = {
    "create where the allocator says": Story(create()),
    "create many": Story(
        CreateInstances(
            instances=({"instance_name": "web1", "disk_template": "diskless", "start": False},)
        )
    ),
    "create on a node, not started": Story(create(node="gamma", start=False)),
    "create with local disks": Story(create(node="gamma", template=DiskTemplate.FILE)),
    "create on volumes": Story(create(node="gamma", template=DiskTemplate.PLAIN)),
    "create on volumes where the allocator says": Story(create(template=DiskTemplate.PLAIN)),
    "remove from volumes": Story(
        RemoveInstance(instance_name=WEB1), web1_on("gamma", template=DiskTemplate.PLAIN),
        again=RemoveInstance(instance_name=WEB1),
    ),
    "start on volumes": Story(
        StartInstance(instance_name=WEB1),
        web1_on("gamma", template=DiskTemplate.PLAIN, start=False),
    ),
    "shut down on volumes": Story(
        ShutDownInstance(instance_name=WEB1), web1_on("gamma", template=DiskTemplate.PLAIN)
    ),
    "create on Gluster": Story(create(template=DiskTemplate.GLUSTER)),
    "remove from Gluster": Story(
        RemoveInstance(instance_name=WEB1), web1_on("gamma", template=DiskTemplate.GLUSTER),
        again=RemoveInstance(instance_name=WEB1),
    ),
    "start": Story(StartInstance(instance_name=WEB1), web1_on("gamma", start=False)),
    "start what runs": Story(StartInstance(instance_name=WEB1), web1_on("gamma")),
    "shut down": Story(ShutDownInstance(instance_name=WEB1), web1_on("gamma")),
    "kill": Story(ShutDownInstance(instance_name=WEB1, force=True), web1_on("gamma")),
    "reboot hard": Story(RebootInstance(instance_name=WEB1), web1_on("gamma")),
    "reboot soft": Story(
        RebootInstance(instance_name=WEB1, reboot_type=RebootType.SOFT), web1_on("gamma")
    ),
    "reboot what is down": Story(
        RebootInstance(instance_name=WEB1, reboot_type=RebootType.FULL),
        web1_on("gamma", start=False),
    ),
    "remove": Story(
        RemoveInstance(instance_name=WEB1), web1_on("gamma"),
        again=RemoveInstance(instance_name=WEB1),
    ),
    "remove what is down": Story(
        RemoveInstance(instance_name=WEB1), web1_on("gamma", start=False),
        again=RemoveInstance(instance_name=WEB1),
    ),
    "modify": Story(
        ModifyInstance(
            instance_name=WEB1, beparams={"memory": "256M"}, hvparams={"acpi": False},
            osparams={"release": "trixie"},
            nics=(
                changed(0, {"ip": "192.0.2.7", "link": "br1"}),
                added(-1, {"name": "inner"}),
            ),
        ),
        web1_on("gamma", start=False),
    ),
    "keep the disks in another way": Story(
        ModifyInstance(instance_name=WEB1, disk_template=DiskTemplate.SHAREDFILE),
        web1_with_data_that_is_down,
        uncertain=frozenset({"disks gamma", "contents gamma", "sizes gamma"}),
    ),
    "take the nics away": Story(
        ModifyInstance(instance_name=WEB1, nics=(removed(0),)), web1_on("gamma")
    ),
    "mark an instance offline": Story(
        ModifyInstance(instance_name=WEB1, offline=True), web1_on("gamma", start=False)
    ),
    "rename": Story(
        RenameInstance(instance_name=WEB1, new_name=InstanceName("shop")),
        web1_on("gamma", start=False),
    ),
    "grow a disk": Story(
        GrowDisk(instance_name=WEB1, disk=0, amount=MiB(32)), web1_on("gamma", start=False),
        again=GrowDisk(instance_name=WEB1, disk=0, amount=MiB(96), absolute=True),
        uncertain=frozenset({"sizes shared"}),
    ),
    "grow a disk in use": Story(
        GrowDisk(instance_name=WEB1, disk=-1, amount=MiB(96), absolute=True), web1_on("gamma"),
        again=GrowDisk(instance_name=WEB1, disk=0, amount=MiB(96), absolute=True),
        uncertain=frozenset({"sizes shared"}),
    ),
    "activate disks": Story(
        ActivateDisks(instance_name=WEB1), web1_on("gamma", start=False)
    ),
    "activate disks that are in use": Story(ActivateDisks(instance_name=WEB1), web1_on("gamma")),
    "deactivate disks": Story(DeactivateDisks(instance_name=WEB1), web1_with_active_disks),
    "deactivate disks that are not attached": Story(
        DeactivateDisks(instance_name=WEB1), web1_on("gamma", start=False)
    ),
    "start with active disks": Story(
        StartInstance(instance_name=WEB1), web1_with_active_disks),
    "recreate disks": Story(RecreateDisks(instance_name=WEB1), web1_without_disks),
    "recreate a disk of another size": Story(
        RecreateDisks(instance_name=WEB1, disks=((0, {"size": "96M"}),)), web1_without_disks
    ),
    "recreate disks elsewhere": Story(
        RecreateDisks(instance_name=WEB1, nodes=("beta",)), web1_without_disks
    ),
    "recreate disks where the allocator says": Story(
        RecreateDisks(instance_name=WEB1, iallocator="hail"), web1_with_lost_disks
    ),
    "console": Story(FindConsole(instance_name=WEB1), web1_on("gamma")),
}  # fmt: skip
