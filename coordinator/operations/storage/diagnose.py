"""Tell on which nodes and in which groups providers of external storage can be used."""

from collections.abc import Mapping
from typing import Annotated, Any

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.names import NodeName
from common.noderpc.providers import ProviderReport, Providers
from coordinator.disks.known_providers import FIELDS, known_providers
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.state.config import Config


class DiagnosePlan(Order):
    rows: list[list[Any]]


@operation("OP_EXT_STORAGE_DIAGNOSE")
class DiagnoseExternalStorage(Operation[None, DiagnosePlan], kw_only=True):
    """Look at the providers of external storage on all nodes."""

    output_fields: Annotated[tuple[str, ...], hidden("what to tell of each")]
    names: Annotated[tuple[str, ...], hidden("of providers; default: all")] = ()

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it only looks
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> DiagnosePlan:
        if unknown := [field for field in self.output_fields if field not in FIELDS]:
            raise InvalidRequest(
                f"Providers have no field “{unknown[0]}”; they have {', '.join(FIELDS)}."
            )
        config = cluster.config
        nodes = [node for node in config.sorted_nodes() if not node.offline and node.vm_capable]
        answers = await cluster.each(
            {node.name: cluster.call(Providers, node).providers() for node in nodes}
        )
        told: dict[NodeName, Mapping[str, ProviderReport]] = {}
        for name, answer in answers.items():
            if isinstance(answer, GntError):
                cluster.log(f"Node {name} did not tell of its providers: {answer}")
            else:
                told[name] = {each.name: each for each in answer}
        known = known_providers(told, config.sorted_groups(), nodes)
        rows = [row for row in known if not self.names or row["name"] in self.names]
        return DiagnosePlan(rows=[[row[field] for field in self.output_fields] for row in rows])

    def result(self, plan: DiagnosePlan) -> list[list[Any]]:
        return plan.rows
