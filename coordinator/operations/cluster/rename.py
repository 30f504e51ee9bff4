"""Give the cluster another name, and with it perhaps another address."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.names import ClusterName, check_name
from coordinator.checks.parameters import bad_parameters, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster.fields import MasterIp
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Edit, Step, record
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State


class Called(Order):
    """How the cluster is called, and where it is found."""

    name: ClusterName
    ip: str


class RenamePlan(Order):
    before: Called
    after: Called
    now: float


@operation("OP_CLUSTER_RENAME")
class RenameCluster(Operation[None, RenamePlan], kw_only=True):
    """Give the cluster another name; nodes stay what they are, and guests run on."""

    name: Annotated[ClusterName, argument("new name of the cluster")]
    master_ip: MasterIp = None

    def is_for_root(self) -> bool:
        return True

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002
        return wanted(parameters=True)

    async def prepare(self, cluster: Cluster, _: None) -> RenamePlan:
        check_name(self.name, "cluster")
        present = cluster.config.cluster
        before = Called(name=present.name, ip=present.master_ip)
        after = Called(name=self.name, ip=before.ip if self.master_ip is None else self.master_ip)
        if after == before:
            raise InvalidRequest(f"The cluster is called {before.name} already.")
        changed = replace(present, name=after.name, master_ip=after.ip)
        found = bad_parameters(cluster.config.apply([Put(changed)]))
        check_parameters(found, known=bad_parameters(cluster.config))
        if after.ip and self.master_ip is None:
            cluster.log(
                f"The address of the master is still {after.ip}; “gnt-cluster modify --master-ip” "
                "gives it another."
            )
        return RenamePlan(before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RenamePlan) -> Iterator[Step]:  # noqa: ARG002
        yield record(
            f"rename {plan.before.name} to {plan.after.name}",
            _called(plan.after, plan.now),
            _called(plan.before, plan.now),
        )

    def result(self, plan: RenamePlan) -> str:
        return plan.after.name


def _called(how: Called, now: float) -> Edit:
    def edit(state: State) -> list[Put]:
        cluster = state.config.cluster
        serial = cluster.serial_no + 1
        changed = replace(cluster, name=how.name, master_ip=how.ip, mtime=now, serial_no=serial)
        return [Put(changed)]

    return edit
