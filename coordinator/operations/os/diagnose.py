"""Tell on which nodes which operating systems can be installed."""

from typing import Annotated, Any

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.names import NodeName
from common.noderpc.operating_systems import DefinitionReport, OperatingSystems
from coordinator.locks.names import Wanted
from coordinator.operating_systems.known import KnownOs, known_systems
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.state.config import Config

FIELDS = (
    "name", "valid", "node_status", "variants", "parameters", "api_versions", "hidden",
    "blacklisted", "trusted", "os_hvp", "osparams",
)  # fmt: skip
_UNLESS_ASKED = ("hidden", "blacklisted")  # such systems are left out


class DiagnosePlan(Order):
    rows: list[list[Any]]


@operation("OP_OS_DIAGNOSE")
class DiagnoseOperatingSystems(Operation[None, DiagnosePlan], kw_only=True):
    """Look at the definitions of operating systems on all nodes.

    What is hidden, blacklisted or cannot be used is told if the fields that say so are asked for.
    """

    output_fields: Annotated[tuple[str, ...], hidden("what to tell of each")]
    names: Annotated[tuple[str, ...], hidden("of operating systems; default: all")] = ()

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it only looks
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> DiagnosePlan:
        if unknown := [field for field in self.output_fields if field not in FIELDS]:
            raise InvalidRequest(
                f"Operating systems have no field “{unknown[0]}”; they have {', '.join(FIELDS)}."
            )
        found = [each for each in await look(cluster) if self._is_asked_for(each)]
        rows = [[_value(each, field) for field in self.output_fields] for each in found]
        return DiagnosePlan(rows=rows)

    def result(self, plan: DiagnosePlan) -> list[list[Any]]:
        return plan.rows

    def _is_asked_for(self, found: KnownOs) -> bool:
        if self.names and found.name not in self.names:
            return False
        left_out = any(getattr(found, f) for f in _UNLESS_ASKED if f not in self.output_fields)
        return not left_out and (found.valid or "valid" in self.output_fields)


async def look(cluster: Cluster) -> tuple[KnownOs, ...]:
    """Ask all nodes that may have instances for their definitions; log who does not answer."""
    config = cluster.config
    nodes = [node for node in config.sorted_nodes() if not node.offline and node.vm_capable]
    answers = await cluster.each(
        {node.name: cluster.call(OperatingSystems, node).definitions() for node in nodes}
    )
    told: dict[NodeName, dict[str, DefinitionReport]] = {}
    for name, answer in answers.items():
        if isinstance(answer, GntError):
            cluster.log(f"Node {name} did not tell of its operating systems: {answer}")
        else:
            told[name] = {each.name: each for each in answer}
    return known_systems(told, config.cluster)


def _value(found: KnownOs, field: str) -> Any:
    value = getattr(found, field)
    return list(value) if isinstance(value, tuple) else value
