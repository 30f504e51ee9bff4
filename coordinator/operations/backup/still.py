"""What an export reads of a guest that goes on: its disks as they were at one moment."""

from common.errors import InvalidRequest, NoCapacity
from common.model.instance import Instance
from common.model.node import NodeRef
from common.names import MiB
from common.noderpc.instances import GuestSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.holding import Handover, none, sole
from coordinator.disks.kinds import kind_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.kept import find_problems, plan_snapshots, with_snapshots
from coordinator.operations.placement.growth import promise_of_space, take_space
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.steps.copies import Side


async def still_disks(
    cluster: Cluster,
    instance: Instance,
    guest: GuestSpec,
    room: MiB | None,
    *,
    may_stop: bool,
) -> tuple[SnapshotSpec, ...]:
    """Return what is copied while the guest goes on; nothing if it is stopped for that.

    Raises:
        InvalidRequest: there can be none, and it must not be stopped.
        NoCapacity: there is no space for them, and it must not be stopped.
    """
    kind, config = kind_of(instance.disk_template), cluster.config
    specs = plan_snapshots(cluster, kind, guest.disks, room)
    home = config.nodes[instance.primary_node]
    problems = ("",) if specs is None else await find_problems(cluster, instance, specs)
    if specs is None or problems:
        if may_stop:
            return ()
        raise InvalidRequest(
            f"No snapshots can be taken of the disks of {instance.name}, which runs and changes"
            " them while they are copied: leave --noshutdown out, and it is stopped for that "
            f"time. {' '.join(problems)}".rstrip()
        )
    kept = with_snapshots(instance, config.disks_of(instance), specs, "export", cluster.now())
    try:
        await take_space(cluster, promise_of_space(PlannedInstance(instance, kept)), [home])
    except NoCapacity as error:
        if not may_stop:
            raise
        cluster.log(f"{instance.name} is stopped while its disks are copied: {error}")
        return ()
    return specs


def source_of(node: NodeRef, snapshot: SnapshotSpec) -> Side:
    attach, detach = Handover(do=sole(node)), Handover(do=none(node))
    return Side(node=node, disk=snapshot.kept, attach=attach, detach=detach)
