"""What instances ask of nodes, kept for as long as nothing changes that it follows from."""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import NamedTuple

from common.model.disk import Disk
from common.model.instance import AdminState
from common.model.node import Node
from common.model.parameters import Layer, NodeParameters, settled
from common.model.policy import InstancePolicy, Spec
from common.model.pool import Pool
from common.model.template import DiskTemplate
from common.names import InstanceId, MiB
from common.record import fields_of, replace
from coordinator.allocator import policy as policies
from coordinator.allocator import snapshot as seen
from coordinator.allocator.snapshot import NOWHERE, STATUS_OF
from coordinator.disks.space import taken_by
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.specs import backend
from coordinator.state.config import Config


def demand_of(config: Config, planned: PlannedInstance, pool: Pool | None) -> seen.Instance:
    """Return what an instance asks, wherever it is; of disk space, what it asks of a pool."""
    instance, disks = planned.instance, planned.disks
    wants = backend(config, instance)
    sizes = tuple(MiB(disk.size) for disk in disks)
    return seen.Instance(
        name=instance.name,
        template=instance.disk_template,
        memory=wants.maxmem,
        vcpus=wants.vcpus,
        disk=disk_space(instance.disk_template, disks, pool),
        disks=sizes,
        spindle_use=wants.spindle_use,
        disk_spindles=_spindles(disks),
        status=STATUS_OF[AdminState.UP if instance.takes_memory else instance.admin_state],
        tags=instance.tags,
        networks=_networks(config, planned),
        auto_balance=wants.auto_balance,
    )


def _spindles(disks: Sequence[Disk]) -> int | None:
    """Return what disks take where storage is exclusive; None if not all tell."""
    told = [disk.spindles for disk in disks if disk.spindles is not None]
    return sum(told) if len(told) == len(disks) else None


def _networks(config: Config, planned: PlannedInstance) -> frozenset[str]:
    """Return the networks that its nics need."""
    if not config.networks:
        return frozenset()
    present = (config.nics[nic] for nic in planned.instance.nics if nic in config.nics)
    return frozenset(nic.network for nic in planned.nics or present if nic.network)


def disk_space(template: DiskTemplate, disks: Sequence[Disk], pool: Pool | None) -> MiB:
    """Return what disks take on each node as the allocator reckons, in MiB.

    It takes that of those in volume groups off what nodes have; of the others it tells it only.
    """
    if template.traits.is_in_volume_group and pool is not None:
        return taken_by(disks, pool)
    return template.traits.disk_space([disk.size for disk in disks])


def seen_policy(policy: InstancePolicy) -> policies.InstancePolicy:
    """Return a policy as the allocator knows it."""
    return policies.InstancePolicy(
        minmax=tuple(
            policies.Bounds(_seen_spec(bounds.min), _seen_spec(bounds.max))
            for bounds in policy.minmax
        ),
        std=_seen_spec(policy.std),
        disk_templates=policy.disk_templates,
        vcpu_ratio=policy.vcpu_ratio,
        spindle_ratio=policy.spindle_ratio,
    )


def _seen_spec(spec: Spec) -> policies.Spec:
    return policies.Spec(*(getattr(spec, name) for name in fields_of(policies.Spec)))


def node_parameters(config: Config, node: Node) -> NodeParameters:
    """Return the filled ``ndparams`` of a node."""
    layers = (config.cluster.ndparams, config.groups[node.group].ndparams, node.ndparams)
    return settled(NodeParameters, *layers)


class _Entry(NamedTuple):
    """A demand, and all that it was made from."""

    defaults: Layer
    one: PlannedInstance
    demand: seen.Instance

    def holds_for(
        self,
        defaults: Layer,
        one: PlannedInstance,
        homes: tuple[int, ...],
        networks: frozenset[str],
    ) -> bool:
        before, now = self.one, one
        return (
            self.defaults is defaults
            and self.demand.networks == networks
            and self.demand.homes == homes
            and before.instance is now.instance
            and len(before.disks) == len(now.disks)
            and all(map(is_, before.disks, now.disks))
        )


class Demands:
    """The demands of a cluster's instances; reading parameters is most of the work of a snapshot.

    A question to the allocator is answered in a thread while jobs take snapshots of their own.
    So an entry is never changed, and names everything it follows from: whoever finds one that
    another has made knows whether it holds.
    """

    def __init__(self) -> None:
        self._known: dict[Pool | None, Mapping[InstanceId, _Entry]] = {}

    def of(
        self,
        config: Config,
        placed: Sequence[PlannedInstance],
        homes: Sequence[tuple[int, ...]],
        pool: Pool | None,
    ) -> tuple[seen.Instance, ...]:
        """Return what each instance asks, on the nodes with these indices, primary first.

        Its disk space is what it takes of ``pool``.
        """
        defaults, known = config.cluster.beparams, self._known.get(pool, {})
        entries: dict[InstanceId, _Entry] = {}
        for one, nodes in zip(placed, homes, strict=True):
            entry = known.get(one.instance.uuid)
            if entry is None or not entry.holds_for(defaults, one, nodes, _networks(config, one)):
                primary, secondary, *_ = *nodes, NOWHERE
                demand = demand_of(config, one, pool)
                demand = replace(demand, primary=primary, secondary=secondary)
                entry = _Entry(defaults, one, demand)
            entries[one.instance.uuid] = entry
        self._known[pool] = entries
        return tuple(entry.demand for entry in entries.values())
