"""One instance, as its fields look at it."""

from functools import cached_property
from typing import Any

from common.errors import GntError
from common.messages import to_builtins
from common.model.disk import Disk
from common.model.group import Group
from common.model.hypervisors import HYPERVISORS
from common.model.instance import AdminState, Instance, StateSource
from common.model.nic import Nic
from common.model.node import Node
from common.model.parameters import Backend, NicParameters, settled
from common.names import MiB
from common.noderpc.instances import GuestReport
from coordinator.disks.diagnosis import Finding, Side, diagnose, mark, worst
from coordinator.disks.kinds import kind_of
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.operating_systems.parameters import merged_parameters
from coordinator.queries.field import Missing
from coordinator.queries.instance_status import InstanceStatus, instance_status
from coordinator.queries.live import Live, value_of
from coordinator.state.config import Config


class InstanceRow:
    """What is worked out for one field is kept for the others."""

    def __init__(self, instance: Instance, config: Config, live: Live) -> None:
        self.entity = instance
        self.config = config
        self.live = live

    @cached_property
    def primary(self) -> Node:
        return self.config.nodes[self.entity.primary_node]

    @cached_property
    def secondaries(self) -> tuple[Node, ...]:
        return tuple(self.config.nodes[uuid] for uuid in self.config.secondary_nodes(self.entity))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Whom to ask about this instance."""
        return () if self.entity.forthcoming else (self.primary,)

    @property
    def group(self) -> Group:
        return self.config.groups[self.primary.group]

    @cached_property
    def disks(self) -> tuple[Disk, ...]:
        return self.config.disks_of(self.entity)

    @property
    def taken(self) -> list[MiB | None] | Missing:
        """What each disk takes that takes less than its size at first."""
        kind = kind_of(self.entity.disk_template)
        if self.entity.forthcoming or not any(kind.is_thin(disk.backing) for disk in self.disks):
            return Missing.UNAVAILABLE
        if self.primary.offline:
            return Missing.OFFLINE
        taken = self.live.taken.get(self.primary.uuid)
        return Missing.NO_DATA if taken is None else [taken.get(disk.uuid) for disk in self.disks]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """How each disk is, if they are mirrored."""
        name, sides = self.entity.name, self._sides
        return tuple(diagnose(name, disk, *sides) for disk in self.disks) if sides else ()

    @property
    def mirror_news(self) -> bool:
        """Whether something is to be noted of the copies."""
        return bool(self._sides) and any(mark(disk, *self._sides) for disk in self.disks)

    @property
    def mirror_faulty(self) -> bool:
        """Whether a copy has lost its volume."""
        return any(finding.is_faulty for finding in self.findings)

    @cached_property
    def _sides(self) -> "tuple[Side, Side] | tuple[()]":
        if not self.entity.disk_template.traits.is_mirrored or self.entity.forthcoming:
            return ()
        (second,) = self.secondaries
        return _side(self.primary, self.live), _side(second, self.live)

    @property
    def mirror_state(self) -> str | Missing:
        return worst(self.findings) if self.findings else Missing.UNAVAILABLE

    @cached_property
    def nics(self) -> tuple[Nic, ...]:
        return self.config.nics_of(self.entity)

    @cached_property
    def nic_parameters(self) -> tuple[NicParameters, ...]:
        """The filled parameters of each nic, in order."""
        layers = (self.config.nic_layers(nic, self.entity.primary_node) for nic in self.nics)
        return tuple(settled(NicParameters, *each) for each in layers)

    def network_name(self, nic: Nic) -> str | None:
        network = self.config.networks.get(nic.network)
        return network.name if network else None

    @cached_property
    def backend(self) -> Backend:
        return settled(Backend, self.config.cluster.beparams, self.entity.beparams)

    @cached_property
    def hypervisor(self) -> dict[str, Any]:
        """The filled hypervisor parameters."""
        kind = self.entity.hypervisor
        if kind not in HYPERVISORS:  # another version's
            return {}
        base = base_hvparams(self.config.cluster, kind, self.entity.os)
        layers = (base, self.entity.hvparams)
        parameters: dict[str, Any] = to_builtins(settled(HYPERVISORS[kind], *layers))
        return parameters

    @property
    def os_parameters(self) -> dict[str, Any]:
        """The filled public parameters of its operating system."""
        return merged_parameters(self.config.cluster, self.entity.os, self.entity.osparams)

    @cached_property
    def guest(self) -> GuestReport | Missing:
        """The guest, wherever it is alive, the primary node first."""
        if self.entity.forthcoming:
            return Missing.UNAVAILABLE
        answer = value_of(self.live.guests, self.primary)
        if isinstance(answer, Missing):
            return answer
        hosts = self.live.hosts_of(self.entity.uuid)
        here = hosts.get(self.entity.primary_node)
        if here is not None and here.state.is_alive:
            return here
        alive = (guest for guest in hosts.values() if guest.state.is_alive)
        return next(alive, Missing.UNAVAILABLE)

    @cached_property
    def status(self) -> InstanceStatus:
        if self.entity.forthcoming:  # Ganeti has no word of its own for that
            return InstanceStatus.ADMIN_DOWN
        hosts = self.live.hosts_of(self.entity.uuid)
        here = hosts.get(self.entity.primary_node)
        answer = self.live.guests.get(self.primary.uuid)
        return instance_status(
            self.entity.admin_state,
            offline=self.primary.offline,
            answered=answer is not None and not isinstance(answer, GntError),
            here=here.state if here else None,
            elsewhere=any(
                guest.state.is_alive
                for node, guest in hosts.items()
                if node != self.entity.primary_node
            ),
            by_user=self._is_down_by_user(here),
        )

    def _is_down_by_user(self, here: GuestReport | None) -> bool:
        if self.entity.admin_state is AdminState.DOWN:
            return self.entity.admin_state_source is StateSource.USER
        allowed = self.config.cluster.enabled_user_shutdown
        return allowed and here is not None and here.user_down

    @property
    def expires(self) -> float | Missing:
        reservation = self.entity.reservation
        expires_at = reservation.expires_at if reservation else 0.0
        return expires_at or Missing.UNAVAILABLE

    @property
    def maybe_on(self) -> list[str]:
        nodes = self.config.nodes
        return [nodes[uuid].name if uuid in nodes else uuid for uuid in self.entity.maybe_on]

    @property
    def guest_state(self) -> str | Missing:
        """The state of what is on the primary node, in words."""
        if self.entity.forthcoming:
            return "absent"
        answer = value_of(self.live.guests, self.primary)
        if isinstance(answer, Missing):
            return answer
        here = self.live.hosts_of(self.entity.uuid).get(self.entity.primary_node)
        if here is None:
            return "absent"
        if here.lacks_space:
            return f"{here.state}, as what it wrote found no room"
        if here.held:
            return f"{here.state}, as it was started so"
        if here.lost_tpm:
            return f"{here.state}, without its TPM, which has ended"
        silent = f", silent for {here.silent_s:.0f} s" if here.silent_s else ""
        return f"{here.state}{silent}"

    @property
    def is_wanted_up(self) -> bool:
        return self.entity.admin_state is AdminState.UP


def _side(node: Node, live: Live) -> Side:
    return Side(node, None if node.offline else live.mirrors.get(node.uuid))
