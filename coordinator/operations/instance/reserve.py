"""Reserve what an instance takes, and make nothing yet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from common.durations import parse_duration
from common.errors import Conflict, InvalidRequest
from common.model.disk import Disk
from common.model.instance import AdminState, Instance, Reservation
from common.model.nic import Nic
from common.model.template import WITHOUT_DISKS, DiskTemplate
from common.names import NodeId
from coordinator.disks.kinds import check_enabled, kind_of
from coordinator.operations.base import variant
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.new_instance import CreatePlan
from coordinator.operations.instance.place import Place
from coordinator.operations.step import Step, record
from coordinator.state.config import Config


@variant("forthcoming")
class ReserveInstance(CreateInstance, kw_only=True):
    """Reserve an instance: all that it takes counts as if it were there, and no node is told.

    What is not said is as small as it can be: called by its UUID, without disks. It is said later,
    by ``gnt-instance modify`` and ``rename``.
    """

    takes_reservations: ClassVar[bool] = True  # it says itself that there is one of the name
    needs: ClassVar[Mapping[str, str]] = {}

    async def prepare(self, cluster: Cluster, place: Place) -> CreatePlan:
        self.check_words(cluster.config)
        plan = await self._placed(cluster, place)
        nodes = " and ".join(map(str, (plan.node, *plan.others)))
        cluster.log(f"Its UUID is {plan.instance.uuid}; its room is kept on {nodes}.")
        return plan

    def recipe(self, cluster: Cluster, plan: CreatePlan) -> Iterator[Step]:  # noqa: ARG002
        yield record(
            f"reserve {plan.instance.name}",
            lambda state: self._added(state, plan),
            undo=lambda _: self._taken_back(plan),
        )

    def result(self, plan: CreatePlan) -> str:
        """Return the UUID: it may have no name."""
        return plan.instance.uuid

    @property
    def template(self) -> DiskTemplate:
        return self.disk_template or WITHOUT_DISKS

    def _check_name(self, config: Config) -> None:
        if self.instance_name:
            super()._check_name(config)

    def _check_disks(self, config: Config) -> None:
        if self.disk_template:
            check_enabled(config.cluster, self.disk_template)
        kind = kind_of(self.template)
        if kind.traits.is_adopted or any(disk.adopt for disk in self.disks):
            raise InvalidRequest(
                "What is there before takes no room that could be kept free: adopt it when the "
                "instance is made, without reserving it first."
            )
        if self.disks:
            kind.check_number(self.disks)
        self._check_wishes(kind)

    def _check_rest(self, config: Config) -> None:
        super()._check_rest(config)
        if self.mode != "create":
            raise InvalidRequest("What comes from another cluster is made at once, not reserved.")
        if self.expires is not None:
            parse_duration(self.expires)
        if self.osparams_private or self.osparams_secret:
            raise InvalidRequest(
                "Private and secret parameters are for its operating system, and are said when "
                "that is installed: give them with --commit."
            )

    def _objects(
        self, cluster: Cluster, nodes: Sequence[NodeId], requests: Sequence[DiskRequest]
    ) -> tuple[Instance, tuple[Disk, ...], tuple[Nic, ...]]:
        instance, disks, nics = super()._objects(cluster, nodes, requests)
        expires_at = (
            cluster.now() + parse_duration(self.expires) if self.expires is not None else 0.0
        )
        reservation = Reservation(expires_at=expires_at, has_template=bool(self.disk_template))
        down = replace(instance, admin_state=AdminState.DOWN, reservation=reservation)
        return down, disks, nics


def reservation_of(instance: Instance) -> Reservation:
    """Return what there is of an instance that is only reserved.

    Raises:
        Conflict: it is made already.
    """
    if instance.reservation is None:
        raise Conflict(
            f"Instance {instance.name} is there already; it is not only reserved.",
            instance=instance.name,
        )
    return instance.reservation
