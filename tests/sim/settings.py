"""What stories begin with: the instance that they are about, and the state it is in."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from common.errors import GntError
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB, NodeId, NodeName
from common.noderpc.hooks import Ending
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.devices import DiskRequest, NicRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.disk_changes import DiskAction, DiskChange
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.nic_changes import Action, NicChange
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.state.rows import Put
from noded.storage.lvm.fake_group import FakeGroup
from tests.support.cluster import SimulatedCluster
from tests.support.faults import Failing
from tests.support.image import GROUP, uuid_of
from tests.support.network import Trip
from tests.support.story import Setting

WEB1 = InstanceName("web1")
BY_POST_COPY = {"migration_caps": "xbzrle:postcopy-ram"}
ALPHA, BETA = NodeName("alpha"), NodeName("beta")
GAMMA, DELTA = NodeName("gamma"), NodeName("delta")


def create(
    name: str = "web1",
    node: str | None = None,
    second: str | None = None,
    *,
    template: DiskTemplate = DiskTemplate.SHAREDFILE,
    start: bool = True,
) -> CreateInstance:
    """Return an order for an instance with one disk and one nic."""
    return CreateInstance(
        instance_name=InstanceName(name), disk_template=template,
        disks=(DiskRequest(size="64M"),), nics=(NicRequest(),), pnode=node, snode=second,
        start=start,
    )  # fmt: skip


def mirrored(
    name: str = "web1", node: str = "gamma", second: str = "beta", *, start: bool = True
) -> CreateInstance:
    """Return an order for an instance with a disk on two nodes."""
    return create(name, node, second, template=DiskTemplate.DRBD, start=start)


def apart(
    name: str = "web1", node: str | None = None, *, spindles: int = 1, start: bool = True
) -> CreateInstance:
    """Return an order for an instance with a disk on physical volumes of its own."""
    order = create(name, node, template=DiskTemplate.PLAIN, start=start)
    return replace(order, disks=(DiskRequest(size="64M", spindles=spindles),))


async def with_exclusive_storage(cluster: SimulatedCluster) -> None:
    """Have three empty physical volumes on each node, and nobody share one."""
    for machine in cluster.machines.values():
        machine.volumes.groups[GROUP] = FakeGroup(capacity=MiB(3000), spindles=3)
    await cluster.run(ModifyCluster(ndparams={"exclusive_storage": True}))


def added(nic: int | str, values: dict[str, Any] | None = None) -> NicChange:
    return NicChange(action=Action.ADD, nic=nic, values=values or {})


def changed(nic: int | str, values: dict[str, Any]) -> NicChange:
    return NicChange(action=Action.MODIFY, nic=nic, values=values)


def removed(nic: int | str, values: dict[str, Any] | None = None) -> NicChange:
    return NicChange(action=Action.REMOVE, nic=nic, values=values or {})


def hooked(directories: Iterable[str]) -> Setting:
    """Begin with an instance that is down, and a script in each of these directories."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(create(node="gamma", start=False))
        for machine in cluster.machines.values():
            machine.hooks.scripts |= {each: {"50-tell": Ending.DONE} for each in directories}

    return setting


def web1_on(
    node: str, *, template: DiskTemplate = DiskTemplate.SHAREDFILE, start: bool = True
) -> Setting:
    """Begin with an instance on ``node``."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", node, template=template, start=start))

    return setting


async def web1_with_data(cluster: SimulatedCluster) -> None:
    """Begin with an instance on gamma that has written to its disk, which only gamma has."""
    await cluster.run(create("web1", "gamma", template=DiskTemplate.FILE))
    for disk in cluster.config.disks_of(cluster.config.instance("web1")):
        cluster.machines["gamma"].files.contents[disk.backing.paths[0]] = "data of web1"


async def web1_with_data_that_is_down(cluster: SimulatedCluster) -> None:
    await web1_with_data(cluster)
    await cluster.run(ShutDownInstance(instance_name=WEB1))


def web1_mirrored(*, start: bool = True) -> Setting:
    """Begin with an instance on gamma, its disk on beta, too."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(mirrored(start=start))

    return setting


def web1_mirrored_without(node: NodeName, *, start: bool = True) -> Setting:
    """Begin with such an instance of which one node is dead, and marked so."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(mirrored(start=start))
        await cluster.lose_power(node)
        await cluster.run(ModifyNode(node_name=node, offline=True, force=True))

    return setting


async def web1_on_dead_gamma(cluster: SimulatedCluster) -> None:
    await cluster.run(create("web1", "gamma"))
    await cluster.lose_power("gamma")
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))


async def web1_turned_off(cluster: SimulatedCluster) -> None:
    """Begin with an instance on gamma that its user has turned off."""
    await cluster.run(ModifyCluster(enabled_user_shutdown=True))
    await cluster.run(replace(create("web1", "gamma"), hvparams={"user_shutdown": True}))
    cluster.machines["gamma"].guests.turn_off(cluster.config.instance("web1").uuid)


async def web1_by_post_copy(cluster: SimulatedCluster) -> None:
    """Begin with an instance on gamma that moves before all of its memory does."""
    await cluster.run(replace(create("web1", "gamma"), hvparams=BY_POST_COPY))


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


def disk(action: str, which: int | str = -1, /, **values: Any) -> DiskChange:
    """Return one ``--disk`` of a modification."""
    return DiskChange(action=DiskAction(action), disk=which, values=values)


DISTRIBUTED = "/etc/ceph/ceph.conf"


def distribute(cluster: SimulatedCluster, text: str = "[global]\n") -> None:
    """Have a file on alpha, and let it be put on all machines."""
    for machine in cluster.machines.values():
        machine.paths.settings.mkdir(parents=True, exist_ok=True)
        machine.paths.remote_rules.write_text("file /etc/ceph\nshell\n")
        (machine.paths.root / "etc/ceph").mkdir(exist_ok=True)
    (cluster.machines["alpha"].paths.root / DISTRIBUTED[1:]).write_text(text)
