"""Stories of instances whose disks are on two nodes."""

from common.names import MiB
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.cluster.verify_disks import VerifyDisks
from coordinator.operations.group.verify_disks import VerifyDisksOfGroup
from coordinator.operations.instance.discard_copy import DiscardCopy
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.failover import FailOverNode
from coordinator.operations.node.migrate import MigrateNode
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import BETA, GAMMA, WEB1, mirrored, web1_mirrored, web1_mirrored_without
from tests.support.cluster import SimulatedCluster
from tests.support.image import GROUP
from tests.support.seeds import is_thorough
from tests.support.story import Story

NEW = "198.51.100.2"


async def web1_unnoted(cluster: SimulatedCluster) -> None:
    """Begin with an instance that runs on gamma while beta was restarted; nobody has noted that."""
    await cluster.run(mirrored())
    await cluster.lose_power("beta")
    await cluster.machines["beta"].boot()


async def web1_split(cluster: SimulatedCluster) -> None:
    """Begin with an instance whose copies were both written to apart; that on gamma is in use."""
    await cluster.run(mirrored())
    cluster.cut("gamma", "beta")
    await cluster.settle(1.0)
    cluster.pairs.settle()
    end = next(end for end in cluster.pairs.ends if not end.primary)
    cluster.pairs.new_generation(end)
    cluster.heal()
    cluster.pairs.settle()


async def web1_lost_on_beta(cluster: SimulatedCluster) -> None:
    """Begin with an instance on gamma, and nothing of its disk on beta any more."""
    await cluster.run(mirrored())
    await cluster.lose_power("beta")
    cluster.machines["beta"].volumes.groups[GROUP].volumes.clear()
    await cluster.machines["beta"].boot()


async def web1_lost_and_down(cluster: SimulatedCluster) -> None:
    """Begin with an instance that is down, and nothing of its disk on its primary node any more."""
    await cluster.run(mirrored(start=False))
    cluster.machines["gamma"].volumes.groups[GROUP].volumes.clear()


async def web1_beside_a_new_network(cluster: SimulatedCluster) -> None:
    """Begin with an instance that runs on gamma; its other node, beta, has an address more."""
    await cluster.run(mirrored())
    cluster.network.give(cluster.machines["beta"], NEW)


# That a copy has fallen behind stays noted, though what was to follow failed.
NOTED = frozenset({"config disk web1 disk 0"})

# An old copy that could not be deleted is left, and verify names it.
LEFT = NOTED | {"disks beta"}

STORIES = {
    "start what has one copy": Story(
        StartInstance(instance_name=WEB1), web1_mirrored_without(BETA, start=False),
        uncertain=NOTED, successor="",
    ),
    "export mirrored, stopped for all the time": Story(
        ExportInstance(instance_name=WEB1, target_node="alpha", room=MiB(1 << 30)),
        web1_mirrored(), again=StartInstance(instance_name=WEB1), uncertain=NOTED,
    ),
    "fail over mirrored from a dead node": Story(
        FailOverInstance(instance_name=WEB1), web1_mirrored_without(GAMMA), uncertain=NOTED
    ),
    "fail over to any node": Story(
        FailOverInstance(instance_name=WEB1, target_node="alpha"), web1_mirrored(),
        uncertain=NOTED | {"disks gamma"}, again=StartInstance(instance_name=WEB1),
    ),
    "fail over to any node in sync": Story(
        FailOverInstance(instance_name=WEB1, target_node="alpha", wait_for_sync=True),
        web1_mirrored(),
        uncertain=NOTED | {"disks gamma"}, again=StartInstance(instance_name=WEB1),
    ),
    "migrate mirrored": Story(
        MigrateInstance(instance_name=WEB1), web1_mirrored(),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "replace on the primary node": Story(
        ReplaceDisks(instance_name=WEB1, on_primary=True), web1_mirrored(), uncertain=NOTED,
        again=ReplaceDisks(instance_name=WEB1, on_primary=True),
    ),
    "make a lost copy anew": Story(
        ReplaceDisks(instance_name=WEB1, on_secondary=True), web1_lost_on_beta, uncertain=NOTED,
        again=ReplaceDisks(instance_name=WEB1, on_secondary=True),
    ),
    "note which copies are behind": Story(
        VerifyDisksOfGroup(group_name="default"), web1_unnoted, uncertain=NOTED
    ),
    "look at all disks": Story(VerifyDisks(), web1_mirrored(start=False)),
    "give up one side": Story(
        DiscardCopy(instance_name=WEB1, node_name=BETA), web1_split, uncertain=NOTED,
        again=VerifyDisksOfGroup(group_name="default"),
    ),
    "migrate all of a node": Story(MigrateNode(node_name=GAMMA), web1_mirrored(start=False)),
    "fail over all of a node": Story(FailOverNode(node_name=GAMMA), web1_mirrored(start=False)),
    "replace the secondary node": Story(
        ReplaceDisks(instance_name=WEB1, remote_node="alpha"), web1_mirrored(), uncertain=LEFT
    ),
}  # fmt: skip

# What differs in a step or two takes its time, and is told where time does not matter.
_IN_DETAIL = {
    "fail over mirrored": Story(
        FailOverInstance(instance_name=WEB1), web1_mirrored(), uncertain=NOTED
    ),
    "migrate mirrored to any node": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"), web1_mirrored(),
        uncertain=LEFT, again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "create mirrored, not started": Story(mirrored(start=False)),
    "start mirrored, though it may be parted": Story(
        StartInstance(instance_name=WEB1, force=True), web1_mirrored(start=False),
        uncertain=NOTED | {"attached beta"},  # it does without
    ),
    "start mirrored": Story(StartInstance(instance_name=WEB1), web1_mirrored(start=False)),
    "shut down mirrored": Story(ShutDownInstance(instance_name=WEB1), web1_mirrored()),
    "reboot mirrored": Story(
        RebootInstance(instance_name=WEB1), web1_mirrored(), uncertain=NOTED
    ),
    "export mirrored": Story(
        ExportInstance(instance_name=WEB1, target_node="alpha"), web1_mirrored(),
        again=ExportInstance(instance_name=WEB1, target_node="alpha"),
        uncertain=NOTED | {"disks gamma", "contents gamma"},
    ),
    "fail over what is mirrored and down": Story(
        FailOverInstance(instance_name=WEB1), web1_mirrored(start=False)
    ),
    "replace on the secondary node": Story(
        ReplaceDisks(instance_name=WEB1, on_secondary=True), web1_mirrored(), uncertain=NOTED,
        again=ReplaceDisks(instance_name=WEB1, on_secondary=True),
    ),
    "change the address of a node": Story(
        ModifyNode(node_name=BETA, secondary_ip=NEW), web1_beside_a_new_network, uncertain=NOTED,
        again=VerifyDisksOfGroup(group_name="default"),
    ),
    "make a lost copy anew of what is down": Story(
        ReplaceDisks(instance_name=WEB1, on_primary=True), web1_lost_and_down, uncertain=NOTED,
        again=ReplaceDisks(instance_name=WEB1, on_primary=True),
    ),
    "replace on the secondary node of what is down": Story(
        ReplaceDisks(instance_name=WEB1, on_secondary=True), web1_mirrored(start=False),
        uncertain=NOTED, again=ReplaceDisks(instance_name=WEB1, on_secondary=True),
    ),
    "replace the secondary node of what is down": Story(
        ReplaceDisks(instance_name=WEB1, remote_node="alpha"), web1_mirrored(start=False),
        uncertain=LEFT,
    ),
    "replace a dead secondary node": Story(
        ReplaceDisks(instance_name=WEB1, remote_node="alpha"), web1_mirrored_without(BETA),
        uncertain=NOTED, successor="",
    ),
}  # fmt: skip

if is_thorough():
    STORIES |= _IN_DETAIL
