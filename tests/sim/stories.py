"""Every operation, each in the settings that change its recipe."""

from contextlib import suppress

from msgspec.structs import replace

from common.errors import GntError
from common.model.disk import DiskTemplate
from common.model.group import Group
from common.names import GroupId, GroupName, InstanceName, NodeId, NodeName
from coordinator.operations.cluster.destroy import DestroyCluster
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.cluster.verify import VerifyCluster
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest, NicRequest
from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.console import FindConsole
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.create_many import CreateInstances
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.reboot import RebootInstance, RebootType
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.add import AddNode
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.powercycle import PowercycleNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.operations.test.delay import Delay
from coordinator.state.rows import Put
from tests.support.cluster import SimulatedCluster
from tests.support.faults import Failing
from tests.support.image import ip_of, uuid_of
from tests.support.network import Trip
from tests.support.story import Setting, Story

ABOUT_GAMMA = frozenset({"members gamma"})
WEB1 = InstanceName("web1")
BETA, GAMMA, DELTA = NodeName("beta"), NodeName("gamma"), NodeName("delta")


def create(
    name: str = "web1",
    node: str | None = None,
    *,
    template: DiskTemplate = DiskTemplate.SHAREDFILE,
    start: bool = True,
) -> CreateInstance:
    """Return an order for an instance with one disk and one nic."""
    return CreateInstance(
        instance_name=InstanceName(name), disk_template=template,
        disks=(DiskRequest(size="64M"),), nics=(NicRequest(),), pnode=node, start=start,
    )  # fmt: skip


def web1_on(node: str, *, start: bool = True) -> Setting:
    """Begin with an instance on ``node``."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", node, start=start))

    return setting


async def web1_on_dead_gamma(cluster: SimulatedCluster) -> None:
    await cluster.run(create("web1", "gamma"))
    await cluster.lose_power("gamma")
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))


async def web1_half_moved(cluster: SimulatedCluster) -> None:
    """Have an instance run on beta and be recorded on gamma, where its shell is."""
    await cluster.run(create("web1", "gamma"))
    cluster.network.faults.append(Failing(_of_clearing))
    with suppress(GntError):
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="beta"))
    cluster.network.faults.clear()
    instance = cluster.config.instance("web1")
    moved = replace(instance, primary_node=NodeId(uuid_of("gamma")))
    await cluster.master.running.store.commit([Put(moved)])


def _of_clearing(trip: Trip) -> bool:
    return trip.call.name == "instances.ensure_gone"


async def gamma_drained(cluster: SimulatedCluster) -> None:
    await cluster.run(ModifyNode(node_name=GAMMA, drained=True, force=True))


async def gamma_offline(cluster: SimulatedCluster) -> None:
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))


async def web1_and_another_group(cluster: SimulatedCluster) -> None:
    """Have two empty nodes in a group of their own."""
    await cluster.run(create("web1", "beta", start=False))
    group = Group(uuid="00000000-0000-4000-8000-0000000000a1", name=GroupName("other"))
    nodes = [cluster.config.node(name) for name in ("gamma", "delta")]
    moved = [Put(replace(node, group=GroupId(group.uuid))) for node in nodes]
    await cluster.master.running.store.commit([Put(group), *moved])


def add_delta(cluster: SimulatedCluster) -> AddNode:
    return AddNode(
        node_name=DELTA, primary_ip=ip_of("delta"), token=str(cluster.machines["delta"].token)
    )


STORIES = {
    "delay": Story(Delay(duration=1.0, repeat=2)),
    "create where the allocator says": Story(create()),
    "create many": Story(
        CreateInstances(
            instances=({"instance_name": "web1", "disk_template": "diskless", "start": False},)
        )
    ),
    "create on a node, not started": Story(create(node="gamma", start=False)),
    "create with local disks": Story(create(node="gamma", template=DiskTemplate.FILE)),
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
    "fail over": Story(
        FailOverInstance(instance_name=WEB1, target_node="alpha"), web1_on("gamma")
    ),
    "fail over from a dead node": Story(FailOverInstance(instance_name=WEB1), web1_on_dead_gamma),
    "migrate": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"), web1_on("gamma"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "clean up after a migration": Story(
        MigrateInstance(instance_name=WEB1, cleanup=True), web1_half_moved,
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "migrate where the allocator says": Story(
        MigrateInstance(instance_name=WEB1, iallocator="hail"), web1_on("beta"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "console": Story(FindConsole(instance_name=WEB1), web1_on("gamma")),
    "add a candidate": Story(add_delta, strangers=1, has_secret=True),
    "add a regular node": Story(add_delta, strangers=1, candidates=3, has_secret=True),
    "evacuate": Story(EvacuateNode(node_name=GAMMA), web1_on("gamma", start=False)),
    "change the group": Story(
        ChangeGroup(instance_name=WEB1, target_groups=("other",)), web1_and_another_group, nodes=4
    ),
    "drain": Story(
        ModifyNode(node_name=GAMMA, drained=True), concerned="gamma", uncertain=ABOUT_GAMMA
    ),
    "drain no more": Story(ModifyNode(node_name=GAMMA, drained=False), gamma_drained),
    "mark offline": Story(ModifyNode(node_name=GAMMA, offline=True), concerned="gamma"),
    "mark online": Story(
        ModifyNode(node_name=GAMMA, offline=False), gamma_offline, uncertain=ABOUT_GAMMA
    ),
    "demote": Story(
        ModifyNode(node_name=GAMMA, master_candidate=False), concerned="gamma",
        uncertain=ABOUT_GAMMA,
    ),
    "promote": Story(
        ModifyNode(node_name=GAMMA, master_candidate=True), candidates=2, concerned="gamma"
    ),
    "demote and promote another": Story(
        ModifyNode(node_name=BETA, master_candidate=False, auto_promote=True),
        candidates=2, successor="", concerned="beta", uncertain=frozenset({"members beta"}),
    ),
    "change parameters": Story(ModifyNode(node_name=GAMMA, ndparams={"spindle_count": 4})),
    "remove a node": Story(
        RemoveNode(node_name=GAMMA), concerned="gamma", uncertain=ABOUT_GAMMA
    ),
    "remove a candidate for whom there is another": Story(
        RemoveNode(node_name=BETA), candidates=2, successor="", concerned="beta",
        uncertain=frozenset({"members beta"}),
    ),
    "powercycle": Story(
        PowercycleNode(node_name=GAMMA), rest_s=60.0, uncertain=frozenset({"boots gamma"})
    ),
    "renew certificates": Story(RenewCrypto(node_certificates=True)),
    "change the cluster": Story(
        ModifyCluster(
            default_iallocators={"allocate": "hail", "relocate": "none"},
            default_iallocator_params={"static-kvm-node-memory": "0"}, max_running_jobs=30,
        )
    ),
    "verify": Story(VerifyCluster(), web1_on("gamma")),
    "verify the configuration": Story(VerifyConfig(), web1_on("gamma")),
    "verify a group": Story(VerifyGroup(group_name="default"), web1_on("gamma")),
    "destroy": Story(
        DestroyCluster(), again=DestroyCluster(), successor="",
        uncertain=frozenset({"members beta", "members gamma"}),
    ),
}  # fmt: skip
