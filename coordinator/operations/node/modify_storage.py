"""Change a storage unit of a node."""

from collections.abc import Iterator
from typing import Annotated, Any

from common.errors import InvalidRequest, NotFound
from common.messages import Order
from common.model.node import NodeRef
from common.noderpc.physical_volumes import PhysicalVolumes
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.node.storage_units import UnitType
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config

_ALLOCATABLE = "allocatable"


class ModifyStoragePlan(Order):
    node: NodeRef
    device: str
    before: bool
    after: bool


@operation("OP_NODE_MODIFY_STORAGE")
class ModifyStorage(Operation[None, ModifyStoragePlan], kw_only=True):
    """Have new volumes take space of a physical volume, or not any more."""

    node_name: NodeArgument
    storage_type: Annotated[UnitType, argument("lvm-pv")]
    name: Annotated[str, argument("its device")]
    changes: Annotated[
        dict[str, Any],
        option("--allocatable", help="whether new volumes go there", syntax=Syntax.YES_NO),
    ]

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        changes = given.get("changes")
        return given | ({"changes": {_ALLOCATABLE: changes}} if isinstance(changes, bool) else {})

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes_exclusive=[config.node(self.node_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> ModifyStoragePlan:
        if self.storage_type is not UnitType.PHYSICAL_VOLUME:
            raise InvalidRequest(
                f"Storage units of the type {self.storage_type} cannot be changed, but those of "
                f"the type {UnitType.PHYSICAL_VOLUME}."
            )
        after = self.changes.get(_ALLOCATABLE)
        if set(self.changes) != {_ALLOCATABLE} or not isinstance(after, bool):
            raise InvalidRequest(
                "Of a physical volume can be changed whether it is allocatable, with "
                "--allocatable yes or no."
            )
        node = cluster.config.node(self.node_name)
        check_online(node)
        devices = await cluster.call(PhysicalVolumes, node).devices()
        found = next((each for each in devices if each.name == self.name), None)
        if found is None or found.missing:
            there = ", ".join(each.name for each in devices if not each.missing)
            raise NotFound(
                f"Node {node.name} has no physical volume “{self.name}”; it has {there or 'none'}.",
                node=node.name,
            )
        return ModifyStoragePlan(
            node=node.ref, device=found.name, before=found.allocatable, after=after
        )

    def recipe(self, cluster: Cluster, plan: ModifyStoragePlan) -> Iterator[Step]:
        volumes = cluster.call(PhysicalVolumes, plan.node)
        no = "" if plan.after else "not "
        yield act(
            f"have new volumes {no}take space of {plan.device} on {plan.node}",
            lambda: volumes.set_allocatable(device=plan.device, allocatable=plan.after),
            undo=lambda: volumes.set_allocatable(device=plan.device, allocatable=plan.before),
        )
