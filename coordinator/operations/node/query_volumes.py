"""List the logical volumes of nodes."""

from collections.abc import Iterator
from typing import Annotated, Any

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.model.pool_kind import PoolKind
from common.names import NodeName
from common.noderpc.disks import Disks, VolumeListing
from coordinator.disks.kinds import pools_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.state.config import Config

FIELDS = ("node", "phys", "vg", "name", "size", "instance")


class QueryVolumesPlan(Order):
    rows: list[list[Any]]


@operation("OP_NODE_QUERYVOLS")
class QueryVolumes(Operation[None, QueryVolumesPlan], kw_only=True):
    """List volumes in the cluster's groups; one on several devices has a row for each."""

    output_fields: Annotated[tuple[str, ...], hidden("what to tell of each")]
    nodes: Annotated[tuple[NodeName, ...], hidden("default: all")] = ()

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it only looks
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> QueryVolumesPlan:
        if unknown := [field for field in self.output_fields if field not in FIELDS]:
            raise InvalidRequest(
                f"Volumes have no field “{unknown[0]}”; they have {', '.join(FIELDS)}."
            )
        config = cluster.config
        groups = tuple(pool for pool in pools_of(config) if pool.kind is PoolKind.VOLUME_GROUP)
        named = [config.node(name) for name in self.nodes]
        asked = [node for node in named or config.sorted_nodes() if not node.offline]
        told = await cluster.each(
            {node.uuid: cluster.call(Disks, node).volumes(pools=groups) for node in asked}
        )
        rows = []
        for node in asked:
            volumes = told[node.uuid]
            if isinstance(volumes, GntError):
                cluster.log(f"Node {node.name} did not tell of its volumes: {volumes}")
                continue
            found = (row for each in volumes for row in _rows(config, node, each))
            rows += [[row[field] for field in self.output_fields] for row in found]
        return QueryVolumesPlan(rows=rows)

    def result(self, plan: QueryVolumesPlan) -> list[list[Any]]:
        return plan.rows


def _rows(config: Config, node: Node, volume: VolumeListing) -> Iterator[dict[str, Any]]:
    """Yield a row for each device; what is in a thin pool is on none of its own."""
    instance = config.instances.get(volume.instance) if volume.instance else None
    for device in volume.devices or ("-",):
        yield {
            "node": node.name,
            "phys": device,
            "vg": volume.group,
            "name": volume.name,
            "size": volume.size,
            "instance": instance.name if instance else "-",
        }
