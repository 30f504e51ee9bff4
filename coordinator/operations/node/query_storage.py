"""List the storage units of nodes."""

from typing import Annotated, Any

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.names import NodeName
from common.natural import natural_key
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.node.storage_units import FIELDS, UnitType, look_at_units, type_for
from coordinator.operations.parameter import hidden
from coordinator.state.config import Config


class QueryStoragePlan(Order):
    rows: list[list[Any]]


@operation("OP_NODE_QUERY_STORAGE")
class QueryStorage(Operation[None, QueryStoragePlan], kw_only=True):
    """List what nodes keep disks in. Nodes that do not answer are named in the job's log."""

    output_fields: Annotated[tuple[str, ...], hidden("what to tell of each")]
    storage_type: Annotated[UnitType | None, hidden("default: that of new disks")] = None
    nodes: Annotated[tuple[NodeName, ...], hidden("default: all")] = ()
    name: Annotated[str | None, hidden("of one unit; default: all")] = None

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it only looks
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> QueryStoragePlan:
        if unknown := [field for field in self.output_fields if field not in FIELDS]:
            raise InvalidRequest(
                f"Storage units have no field “{unknown[0]}”; they have {', '.join(FIELDS)}."
            )
        config = cluster.config
        unit = self.storage_type or type_for(cluster)
        named = [config.node(name) for name in self.nodes]
        nodes = [node for node in named or config.sorted_nodes() if not node.offline]
        found = await look_at_units(cluster, nodes, unit)
        rows = []
        for node in sorted(found, key=natural_key):
            units = found[node]
            if isinstance(units, GntError):
                cluster.log(f"Node {node} did not tell of its storage: {units}")
                continue
            for each in sorted(units, key=lambda row: natural_key(row["name"])):
                if self.name in (None, each["name"]):
                    told = each | {"node": node, "type": unit}
                    rows.append([told[field] for field in self.output_fields])
        failed = [each for each in found.values() if isinstance(each, GntError)]
        if failed and len(failed) == len(found):  # and the log tells of the others
            raise failed[0]
        return QueryStoragePlan(rows=rows)

    def result(self, plan: QueryStoragePlan) -> list[list[Any]]:
        return plan.rows
