"""Have the master's address in force, or not: before and after something is done to its network."""

from collections.abc import Iterator

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.messages import Order
from common.model.cluster import Cluster as ClusterRecord
from common.model.master_address import address_of
from common.noderpc.master_address import MasterAddresses
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.step import Edit, Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Put

LOOK_S, PATIENCE_S = 1.0, 90.0  # until a new master is sure that nobody else has the address


class MasterAddressPlan(Order):
    ip: str
    was_active: bool
    now: float


class _Switching(Operation[None, MasterAddressPlan], kw_only=True):
    def is_for_root(self) -> bool:
        return True  # of the address of a node

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002
        return wanted(parameters=True)

    async def prepare(self, cluster: Cluster, _: None) -> MasterAddressPlan:
        present = cluster.config.cluster
        address = address_of(present)
        if address is None:
            raise InvalidRequest(
                "No address goes with the mastership of this cluster; “gnt-cluster modify "
                "--master-ip=IP --master-netdev=DEVICE” gives it one."
            )
        return MasterAddressPlan(
            ip=address.ip, was_active=present.master_ip_active, now=cluster.now()
        )


@operation("OP_CLUSTER_ACTIVATE_MASTER_IP")
class ActivateMasterIp(_Switching, kw_only=True):
    """Have the master take its address again."""

    def recipe(self, cluster: Cluster, plan: MasterAddressPlan) -> Iterator[Step]:
        yield record(
            "have the master keep its address",
            _active(plan, is_active=True),
            _active(plan, is_active=plan.was_active),
        )
        yield act(f"wait until the master has {plan.ip}", lambda: _wait(cluster, plan.ip))


@operation("OP_CLUSTER_DEACTIVATE_MASTER_IP")
class DeactivateMasterIp(_Switching, kw_only=True):
    """Have the master, whoever that is, do without its address until it is activated again."""

    def recipe(self, cluster: Cluster, plan: MasterAddressPlan) -> Iterator[Step]:
        yield record(
            "have the master do without its address",
            _active(plan, is_active=False),
            _active(plan, is_active=plan.was_active),
        )
        yield act(f"have the master let go of {plan.ip}", lambda: _let_go(cluster, plan.ip))


def _active(plan: MasterAddressPlan, *, is_active: bool) -> Edit:
    def changed(cluster: ClusterRecord) -> ClusterRecord:
        serial = cluster.serial_no + 1
        return replace(cluster, master_ip_active=is_active, mtime=plan.now, serial_no=serial)

    return lambda state: [Put(changed(state.config.cluster))]


async def _let_go(cluster: Cluster, ip: str) -> None:
    await cluster.call(MasterAddresses, cluster.config.master()).let_go(ip=ip)


async def _wait(cluster: Cluster, ip: str) -> None:
    """Wait for the coordinator's own work: it alone knows when the address is free.

    Raises:
        NodeFailure: it is not there after a while.
    """
    until_s = cluster.steady() + PATIENCE_S
    while not await cluster.call(MasterAddresses, master := cluster.config.master()).holds(ip=ip):
        if cluster.steady() > until_s:
            raise NodeFailure(
                f"{master.name} does not have {ip} after {PATIENCE_S:g} s; the log of "
                "gantry-coordinator there says why.",
                node=master.name,
            )
        await cluster.sleep(LOOK_S)
