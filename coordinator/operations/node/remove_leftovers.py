"""Delete what a node has of instances and disks that are not its own."""

from collections.abc import Iterator

from common.messages import Order
from common.model.backing import LvmBacking
from common.model.node import NodeRef
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId
from common.noderpc.disks import Disks, DiskSpec, VolumeListing
from common.noderpc.facts import Facts
from common.noderpc.mirrors import Mirrors
from coordinator.disks.kinds import pools_of
from coordinator.disks.leftovers import is_stray, owners
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.node.remnants import clear_remnants
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config


class RemoveLeftoversPlan(Order):
    node: NodeRef
    devices: tuple[DiskId, ...]
    volumes: tuple[DiskSpec, ...]


@operation("OP_NODE_REMOVE_LEFTOVERS")
class RemoveLeftovers(Operation[None, RemoveLeftoversPlan], kw_only=True):
    """Delete volumes and devices of disks that are gone, or are kept on other nodes.

    Only what Gantry has made, and nothing uses. What was set aside of a disk that is still kept
    here stays: it may be the better copy.
    """

    node_name: NodeArgument

    def locks(self, config: Config, _: None) -> Wanted:
        node = config.node(self.node_name)
        return wanted(nodes_exclusive=[node.uuid], room=[node.uuid])

    async def prepare(self, cluster: Cluster, _: None) -> RemoveLeftoversPlan:
        config = cluster.config
        node = config.node(self.node_name)
        check_online(node)
        pools = tuple(pool for pool in pools_of(config) if pool.kind is PoolKind.VOLUME_GROUP)
        volumes = await cluster.call(Disks, node).volumes(pools=pools)
        facts = await cluster.call(Facts, node).facts()
        devices = () if facts.unmirrored else await cluster.call(Mirrors, node).devices()
        known = owners(config)
        marked = (each.disk for each in devices if each.disk)
        plan = RemoveLeftoversPlan(
            node=node.ref,
            devices=tuple(disk for disk in marked if is_stray(disk, node, known)),
            volumes=tuple(
                _spec(each, each.disk, each.instance)
                for each in volumes
                if each.disk and each.instance and is_stray(each.disk, node, known)
            ),
        )
        if not plan.devices and not plan.volumes:
            cluster.log(f"No volume and no device is left over on {node.name}.")
        return plan

    def recipe(self, cluster: Cluster, plan: RemoveLeftoversPlan) -> Iterator[Step]:
        yield clear_remnants(cluster, cluster.config.nodes[plan.node.uuid])
        for disk in plan.devices:
            yield _take_away(cluster, plan.node, disk)
        for volume in plan.volumes:
            yield _delete(cluster, plan.node, volume)


def _spec(found: VolumeListing, disk: DiskId, instance: InstanceId) -> DiskSpec:
    """Return how a volume is named to its node, whatever it was a part of."""
    backing = LvmBacking(group=found.group, name=found.name)
    return DiskSpec(id=disk, instance=instance, size=found.size, backing=backing)


def _take_away(cluster: Cluster, node: NodeRef, disk: DiskId) -> Step:
    mirrors = cluster.call(Mirrors, node)
    return Step(
        f"take away the device of the disk {disk} on {node}",
        do=lambda: mirrors.take_away(disk=disk),
        point_of_no_return=True,  # asked again, it does the rest
    )


def _delete(cluster: Cluster, node: NodeRef, volume: DiskSpec) -> Step:
    disks = cluster.call(Disks, node)
    return Step(
        f"delete the volume {volume.backing.paths[0]} on {node}",
        do=lambda: disks.ensure_absent(disk=volume),
        point_of_no_return=True,
    )
