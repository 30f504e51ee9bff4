"""The fields of a node; names, titles, kinds and texts are Ganeti's.

``port`` is ours: Ganeti has one for the whole cluster, and tells it nowhere.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec

from common.messages import to_builtins
from common.model.group import Group
from common.model.instance import Instance
from common.model.node import Node, Role
from common.model.parameters import NodeParameters, settled
from common.names import MiB
from common.noderpc.facts import NodeFacts, StorageReport
from coordinator.disks.exclusive import free_space, is_exclusive, spindles_of
from coordinator.disks.space import taken_by
from coordinator.queries.field import Field, Kind, Missing, Needs, entity_fields, table
from coordinator.queries.instance_parameters import kind_of
from coordinator.queries.last_known import DOC, last_known
from coordinator.queries.live import Live
from coordinator.state.config import Config


class NodeRow:
    def __init__(self, node: Node, config: Config, live: Live) -> None:
        self.entity = node
        self.config = config
        self.live = live

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Whom to ask about this node."""
        return (self.entity,)

    @property
    def group(self) -> Group:
        return self.config.groups[self.entity.group]

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        return self.config.instances_on(self.entity.uuid)

    @cached_property
    def mirrored(self) -> tuple[Instance, ...]:
        """Those whose disks are copied here."""
        return self.config.instances_with_secondary(self.entity.uuid)

    @property
    def is_master(self) -> bool:
        return self.config.cluster.master == self.entity.uuid

    @property
    def role(self) -> Role:
        if self.is_master:
            return Role.MASTER
        if self.entity.master_candidate:
            return Role.CANDIDATE
        if self.entity.drained:
            return Role.DRAINED
        return Role.OFFLINE if self.entity.offline else Role.REGULAR

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The filled node parameters."""
        layers = (self.config.cluster.ndparams, self.group.ndparams, self.entity.ndparams)
        values: dict[str, Any] = to_builtins(settled(NodeParameters, *layers))
        return values

    @cached_property
    def is_apart(self) -> bool:
        """Tell whether its storage is exclusive."""
        return is_exclusive(self.config, self.entity.uuid)

    @cached_property
    def facts(self) -> NodeFacts | Missing:
        return self.live.facts_of(self.entity)

    @property
    def storage(self) -> StorageReport | Missing:
        """Where disks of the preferred template go."""
        if isinstance(self.facts, Missing):
            return self.facts
        usable = (report for report in self.facts.storage if report.usable)
        return next(usable, Missing.UNAVAILABLE)


def _fact(name: str) -> Callable[[NodeRow], Any]:
    return lambda row: row.facts if isinstance(row.facts, Missing) else getattr(row.facts, name)


def _free_space(row: NodeRow) -> MiB | Missing:
    storage = row.storage
    return storage if isinstance(storage, Missing) else free_space(storage, exclusive=row.is_apart)


def _spindles(name: str) -> Callable[[NodeRow], Any]:
    """Tell of the physical volumes of its volume group; 0 where storage is not exclusive."""

    def get(row: NodeRow) -> int | Missing:
        if isinstance(row.facts, Missing):
            return row.facts
        if not row.is_apart:
            return 0
        found = spindles_of(row.config, row.facts)
        return Missing.UNAVAILABLE if found is None else int(getattr(found, name))

    return get


def _total_space(row: NodeRow) -> MiB | Missing:
    storage = row.storage
    if isinstance(storage, Missing):
        return storage
    disks_here = (*row.instances, *row.mirrored)
    made = (one for one in disks_here if not one.forthcoming)
    taken = (taken_by(row.config.disks_of(one), storage.pool) for one in made)
    return MiB(free_space(storage, exclusive=row.is_apart) + sum(taken))


def _silent_for(row: NodeRow) -> int | Missing:
    if row.entity.offline:
        return Missing.OFFLINE
    if not isinstance(row.facts, Missing):
        return 0
    silent_s = row.live.silent_s.get(row.entity.uuid)
    return Missing.NO_DATA if silent_s is None else int(silent_s)


def _unavailable(_: NodeRow) -> Missing:
    return Missing.UNAVAILABLE


def _last_known(row: NodeRow) -> Any:
    def make_row(live: Live) -> NodeRow:
        return NodeRow(row.entity, row.config, live)

    now = row.live.facts.get(row.entity.uuid)
    return last_known(row.entity, now, row.live.past or Live(), make_row, _TOLD)


# fmt: off
_CONFIGURED: tuple[Field[NodeRow], ...] = (
    Field("name", "Node", Kind.TEXT, "Node name", lambda row: row.entity.name),
    Field("custom_ndparams", "CustomNodeParameters", Kind.OTHER, "Custom node parameters",
          lambda row: row.entity.ndparams),
    Field("disk_state", "DiskState", Kind.OTHER, "Disk state", _unavailable),
    Field("drained", "Drained", Kind.BOOL, "Whether node is drained",
          lambda row: row.entity.drained),
    Field("group", "Group", Kind.TEXT, "Node group", lambda row: row.group.name),
    Field("group.uuid", "GroupUUID", Kind.TEXT, "UUID of node group", lambda row: row.group.uuid),
    Field("hv_state", "HypervisorState", Kind.OTHER, "Hypervisor state", _unavailable),
    Field("master", "IsMaster", Kind.BOOL, "Whether node is master", lambda row: row.is_master),
    Field("master_candidate", "MasterC", Kind.BOOL, "Whether node is a master candidate",
          lambda row: row.entity.master_candidate),
    Field("master_capable", "MasterCapable", Kind.BOOL,
          "Whether node can become a master candidate", lambda row: row.entity.master_capable),
    Field("ndparams", "NodeParameters", Kind.OTHER, "Merged node parameters",
          lambda row: row.parameters),
    Field("offline", "Offline", Kind.BOOL, "Whether node is marked offline",
          lambda row: row.entity.offline),
    Field("pinst_cnt", "Pinst", Kind.NUMBER, "Number of instances with this node as primary",
          lambda row: len(row.instances)),
    Field("pinst_list", "PriInstances", Kind.OTHER, "List of instances with this node as primary",
          lambda row: [instance.name for instance in row.instances]),
    Field("pip", "PrimaryIP", Kind.TEXT, "Primary IP address", lambda row: row.entity.primary_ip),
    Field("key", "Key", Kind.TEXT, "SHA-256 of the public key of its certificate",
          lambda row: row.entity.key),
    Field("port", "Port", Kind.NUMBER, "TCP port of gantry-noded on this node",
          lambda row: row.entity.port),
    Field("powered", "Powered", Kind.BOOL, "Whether node is thought to be powered on",
          lambda row: row.entity.powered if row.parameters["oob_program"]
          else Missing.UNAVAILABLE),
    Field("role", "Role", Kind.TEXT,
          'Node role; "M" for master, "C" for master candidate, "R" for regular, "D" for drained, '
          '"O" for offline', lambda row: row.role),
    Field("sinst_cnt", "Sinst", Kind.NUMBER, "Number of instances with this node as secondary",
          lambda row: len(row.mirrored)),
    Field("sinst_list", "SecInstances", Kind.OTHER,
          "List of instances with this node as secondary",
          lambda row: [instance.name for instance in row.mirrored]),
    Field("sip", "SecondaryIP", Kind.TEXT, "Secondary IP address",
          lambda row: row.entity.secondary_ip or row.entity.primary_ip),
    Field("vm_capable", "VMCapable", Kind.BOOL, "Whether node can host instances",
          lambda row: row.entity.vm_capable),
)
_TOLD: tuple[Field[NodeRow], ...] = (
    Field("bootid", "BootID", Kind.TEXT,
          "Random UUID renewed for each system reboot, can be used for detecting reboots by "
          "tracking changes", _fact("boot_id"), Needs.FACTS),
    Field("cnodes", "CNodes", Kind.NUMBER,
          "Number of NUMA domains on node (if exported by hypervisor)", _fact("cpu_nodes"),
          Needs.FACTS),
    Field("cnos", "CNOs", Kind.NUMBER,
          "Number of logical processors used by the node OS (dom0 for Xen)", _fact("cpus"),
          Needs.FACTS),
    Field("csockets", "CSockets", Kind.NUMBER,
          "Number of physical CPU sockets (if exported by hypervisor)", _fact("cpu_sockets"),
          Needs.FACTS),
    Field("ctotal", "CTotal", Kind.NUMBER, "Number of logical processors", _fact("cpus"),
          Needs.FACTS),
    Field("dfree", "DFree", Kind.UNIT, "Available storage space in storage unit", _free_space,
          Needs.FACTS),
    Field("dtotal", "DTotal", Kind.UNIT,
          "Total storage space in storage unit used for instance disk allocation",
          _total_space, Needs.FACTS),
    Field("mfree", "MFree", Kind.UNIT, "Memory available for instance allocations",
          _fact("memory_free"), Needs.FACTS),
    Field("mnode", "MNode", Kind.UNIT, "Amount of memory used by node (dom0 for Xen)",
          _fact("memory_dom0"), Needs.FACTS),
    Field("mtotal", "MTotal", Kind.UNIT, "Total amount of memory of physical machine",
          _fact("memory_total"), Needs.FACTS),
    Field("spfree", "SpFree", Kind.NUMBER,
          "Available spindles in volume group (exclusive storage only)", _spindles("free"),
          Needs.FACTS),
    Field("sptotal", "SpTotal", Kind.NUMBER,
          "Total spindles in volume group (exclusive storage only)", _spindles("total"),
          Needs.FACTS),
)
# fmt: on

_TITLES = {
    "exclusive_storage": "ExclusiveStorage",
    "oob_program": "OutOfBandProgram",
    "spindle_count": "SpindleCount",
}


def _parameter(name: str) -> Callable[[Any], Any]:
    return lambda row: row.parameters[name]


def node_parameter_fields() -> Iterator[Field[Any]]:
    """Yield the fields ``ndp/…``; rows have the filled parameters as ``parameters``."""
    for declared in msgspec.structs.fields(NodeParameters):
        name = declared.name
        yield Field(
            f"ndp/{name}",
            _TITLES.get(name, f"ndp/{name}"),
            kind_of(name, declared.type),
            f'The "{name}" node parameter',
            _parameter(name),
        )


_REMEMBERED = (
    Field("last_known", "LastKnown", Kind.OTHER, DOC, _last_known, Needs.FACTS,
          is_worth_asking=False),
    Field("silent_for", "SilentFor", Kind.NUMBER,
          "For how many seconds it has not answered this master; 0: it does answer", _silent_for,
          Needs.FACTS),
)  # fmt: skip

NODE_FIELDS = table(_CONFIGURED, _TOLD, _REMEMBERED, entity_fields("Node"), node_parameter_fields())
