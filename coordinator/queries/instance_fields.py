"""The fields of an instance; names, titles, kinds and texts are Ganeti's."""

from typing import Any

from common.noderpc.guest_agent import in_lists
from coordinator.queries.field import Field, Kind, Missing, Needs, entity_fields, table
from coordinator.queries.instance_devices import DEVICE_FIELDS
from coordinator.queries.instance_parameters import PARAMETER_FIELDS
from coordinator.queries.instance_row import InstanceRow
from coordinator.queries.last_known import DOC, last_known
from coordinator.queries.live import Live

STATUS = (
    'Instance status; "running" if instance is set to be running and actually is, "ADMIN_down" if '
    'instance is stopped and is not running, "ERROR_wrongnode" if instance running, but not on its '
    'designated primary node, "ERROR_up" if instance should be stopped, but is actually running, '
    '"ERROR_down" if instance should run, but doesn\'t, "ERROR_nodedown" if instance\'s primary '
    'node is down, "ERROR_nodeoffline" if instance\'s primary node is marked offline, '
    '"ADMIN_offline" if instance is offline and does not use dynamic, "USER_down" if the user '
    "shutdown the instance resources"
)


def _of_guest(row: InstanceRow, name: str) -> Any:
    return row.guest if isinstance(row.guest, Missing) else getattr(row.guest, name)


def _is_running(row: InstanceRow) -> Any:
    if isinstance(row.guest, Missing):
        return False if row.guest is Missing.UNAVAILABLE else row.guest
    return True


def _port_of_display(row: InstanceRow) -> Any:
    if row.entity.network_port:
        return row.entity.network_port
    if isinstance(row.guest, Missing):
        return row.guest
    _, _, port = row.guest.display.rpartition(":")
    return int(port) if port.isdecimal() else Missing.UNAVAILABLE


def _console(row: InstanceRow) -> Any:
    if isinstance(row.guest, Missing):
        return row.guest
    name = row.entity.name
    message = f"Use “gnt-instance console {name}”."
    if row.guest.display:
        is_local = row.guest.display.startswith(("127.0.0.1:", "[::1]:"))
        how = " over ssh" if is_local else ""
        password = "with" if row.guest.display_wants_password else "without"
        message += f" Its display is at {row.guest.display} of its node, for VNC{how}, {password} "
        message += "a password."
    told = {"instance": name, "kind": "msg", "message": message}
    return told | dict.fromkeys(("host", "port", "user", "command", "display"))


def _interfaces(row: InstanceRow) -> Any:
    told = _of_guest(row, "interfaces")
    if isinstance(told, Missing):
        return told
    return Missing.UNAVAILABLE if told is None else in_lists(told)


def _addresses(row: InstanceRow) -> Any:
    told = _interfaces(row)
    if isinstance(told, Missing):
        return told
    return [address for interface in told for address in interface["addresses"]]


def _last_known(row: InstanceRow) -> Any:
    def make_row(live: Live) -> InstanceRow:
        return InstanceRow(row.entity, row.config, live)

    now = row.live.guests.get(row.primary.uuid)
    return last_known(row.primary, now, row.live.past or Live(), make_row, _TOLD)


# fmt: off
_CONFIGURED: tuple[Field[InstanceRow], ...] = (
    Field("name", "Instance", Kind.TEXT, "Instance name", lambda row: row.entity.name),
    Field("admin_state", "InstanceState", Kind.TEXT, "Desired state of the instance",
          lambda row: row.entity.admin_state),
    Field("admin_state_source", "InstanceStateSource", Kind.TEXT,
          "Who last changed the desired state of the instance",
          lambda row: row.entity.admin_state_source),
    Field("admin_up", "Autostart", Kind.BOOL, "Desired state of the instance",
          lambda row: row.is_wanted_up),
    Field("disk_template", "Disk_template", Kind.TEXT, "Instance disk template",
          lambda row: row.entity.disk_template),
    Field("disks_active", "DisksActive", Kind.BOOL, "Desired state of the instance disks",
          lambda row: row.entity.has_active_disks),
    Field("forthcoming", "Forthcoming", Kind.BOOL, "Whether the Instance is forthcoming",
          lambda row: row.entity.forthcoming),
    Field("expires", "Expires", Kind.TIMESTAMP,
          "When it goes by itself, if it is only reserved until then",
          lambda row: row.expires),
    Field("hypervisor", "Hypervisor", Kind.TEXT, "Hypervisor name",
          lambda row: row.entity.hypervisor),
    Field("maybe_on", "MaybeOn", Kind.OTHER,
          "Nodes on which it may be, while it is moved or since that was cut off",
          lambda row: row.maybe_on),
    Field("os", "OS", Kind.TEXT, "Operating system", lambda row: row.entity.os),
    Field("osparams", "OpSysParameters", Kind.OTHER, "Operating system parameters (merged)",
          lambda row: row.os_parameters),
    Field("custom_osparams", "CustomOpSysParameters", Kind.OTHER,
          "Custom operating system parameters", lambda row: row.entity.osparams),
    Field("pnode", "Primary_node", Kind.TEXT, "Primary node", lambda row: row.primary.name),
    Field("pnode.group", "PrimaryNodeGroup", Kind.TEXT, "Primary node's group",
          lambda row: row.group.name),
    Field("pnode.group.uuid", "PrimaryNodeGroupUUID", Kind.TEXT, "Primary node's group UUID",
          lambda row: row.group.uuid),
    Field("snodes", "Secondary_Nodes", Kind.OTHER,
          "Secondary nodes; usually this will just be one node",
          lambda row: [node.name for node in row.secondaries]),
    Field("snodes.group", "SecondaryNodesGroups", Kind.OTHER, "Node groups of secondary nodes",
          lambda row: [row.config.groups[node.group].name for node in row.secondaries]),
    Field("snodes.group.uuid", "SecondaryNodesGroupsUUID", Kind.OTHER,
          "Node group UUIDs of secondary nodes", lambda row: [n.group for n in row.secondaries]),
)
_TOLD: tuple[Field[InstanceRow], ...] = (
    Field("guest_addresses", "GuestAddresses", Kind.OTHER,
          "Addresses that it has, as the agent in it says", _addresses, Needs.GUESTS),
    Field("guest_interfaces", "GuestInterfaces", Kind.OTHER,
          "Network interfaces as the agent in it calls them, with MAC and IP addresses",
          _interfaces, Needs.GUESTS),
    Field("guest_state", "GuestState", Kind.TEXT,
          "State of its process on the primary node, and for how long that has been silent",
          lambda row: row.guest_state, Needs.GUESTS),
    Field("network_port", "Network_port", Kind.OTHER,
          "Instance network port if available (e.g. for VNC console)", _port_of_display,
          Needs.GUESTS),
    Field("oper_ram", "Memory", Kind.UNIT, "Actual memory usage as seen by hypervisor",
          lambda row: _of_guest(row, "used_memory") or _of_guest(row, "memory"), Needs.GUESTS),
    Field("oper_state", "Running", Kind.BOOL, "Actual state of instance", _is_running,
          Needs.GUESTS),
    Field("oper_vcpus", "VCPUs", Kind.NUMBER, "Actual number of VCPUs as seen by hypervisor",
          lambda row: _of_guest(row, "vcpus"), Needs.GUESTS),
)
_CONCLUDED: tuple[Field[InstanceRow], ...] = (
    Field("console", "Console", Kind.OTHER, "Instance console information", _console,
          Needs.GUESTS),
    Field("last_known", "LastKnown", Kind.OTHER, DOC, _last_known, Needs.GUESTS,
          is_worth_asking=False),
    Field("mirror_state", "MirrorState", Kind.TEXT,
          "How mirrored disks are: whole, at-rest, copying, unknown, parted, degraded or split",
          lambda row: row.mirror_state, Needs.MIRRORS),
    Field("mirror_faulty", "MirrorFaulty", Kind.BOOL,
          "Whether a copy of a mirrored disk has lost its volume", lambda row: row.mirror_faulty,
          Needs.MIRRORS),
    Field("mirror_news", "MirrorNews", Kind.BOOL,
          "Whether nodes tell of copies otherwise than is noted", lambda row: row.mirror_news,
          Needs.MIRRORS),
    Field("disk.allocated", "Disk_allocated", Kind.OTHER,
          "What each disk takes by now that takes less than its size at first (MiB)",
          lambda row: row.taken, Needs.THIN),
    Field("disk.findings", "Disk_findings", Kind.OTHER,
          "What is wrong with each mirrored disk, and what mends it",
          lambda row: [finding.text for finding in row.findings], Needs.MIRRORS),
    Field("status", "Status", Kind.TEXT, STATUS, lambda row: row.status, Needs.GUESTS),
)
# fmt: on

INSTANCE_FIELDS = table(
    _CONFIGURED, _TOLD, _CONCLUDED, entity_fields("Instance"), DEVICE_FIELDS, PARAMETER_FIELDS
)
