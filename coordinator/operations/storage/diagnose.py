"""Tell on which nodes and in which groups providers of external storage can be used."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.model.group import Group
from common.model.node import Node
from common.names import NodeName
from common.natural import natural_key
from common.noderpc.providers import ProviderReport, Providers
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.state.config import Config

FIELDS = ("name", "node_status", "nodegroup_status", "parameters")

Told = Mapping[NodeName, Mapping[str, ProviderReport]]
"""The providers of each node that answers, by their names."""


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
        names = {provider for there in told.values() for provider in there}
        chosen = sorted(names.intersection(self.names or names), key=natural_key)
        rows = [_row(provider, config.sorted_groups(), nodes, told) for provider in chosen]
        return DiagnosePlan(rows=[[row[field] for field in self.output_fields] for row in rows])

    def result(self, plan: DiagnosePlan) -> list[list[Any]]:
        return plan.rows


def _row(provider: str, groups: tuple[Group, ...], nodes: list[Node], told: Told) -> dict[str, Any]:
    """Tell of one provider in Ganeti's form; a group can use it if each of its nodes can."""
    found = {name: there.get(provider) for name, there in told.items()}
    usable = {name for name, each in found.items() if each is not None and not each.problem}
    members = {group.name: [n.name for n in nodes if n.group == group.uuid] for group in groups}
    return {
        "name": provider,
        "node_status": {
            name: [] if each is None else [_status(each)] for name, each in sorted(found.items())
        },
        "nodegroup_status": {
            group: bool(names) and usable.issuperset(names) for group, names in members.items()
        },
        "parameters": _common(each for name, each in found.items() if each and name in usable),
    }


def _status(found: ProviderReport) -> list[Any]:
    parameters = [list(each) for each in found.parameters]
    return [found.path, not found.problem, found.problem, parameters]


def _common(found: Iterable[ProviderReport]) -> list[list[str]]:
    """Return the parameters that a provider has wherever it can be used."""
    every = [each.parameters for each in found]
    if not every:
        return []
    return [list(each) for each in every[0] if all(each in others for others in every)]
