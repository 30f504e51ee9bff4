"""The fields of an instance's disks and nics: all (``nic.macs``), and each (``nic.mac/0``)."""

from collections.abc import Callable, Iterator
from typing import Any

from common.model.disk import Disk, Snapshot
from common.model.nic import Nic
from common.model.parameters import NicParameters
from coordinator.queries.field import Field, Kind, Missing
from coordinator.queries.instance_row import InstanceRow

MOST_DISKS = 16
MOST_NICS = 8

OfDisk = Callable[[Disk], Any]
OfNic = Callable[[Nic, NicParameters], Any]


def _ordinal(number: int) -> str:
    """Write 1st, 2nd, 3rd, 4th …; ours stay below 21."""
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"


def _disk(index: int, of: OfDisk) -> Callable[[InstanceRow], Any]:
    def get(row: InstanceRow) -> Any:
        return of(row.disks[index]) if index < len(row.disks) else Missing.UNAVAILABLE

    return get


def _disks(of: OfDisk) -> Callable[[InstanceRow], Any]:
    return lambda row: [_or_none(of(disk)) for disk in row.disks]


def _nic(index: int, of: OfNic) -> Callable[[InstanceRow], Any]:
    def get(row: InstanceRow) -> Any:
        if index >= len(row.nics):
            return Missing.UNAVAILABLE
        return of(row.nics[index], row.nic_parameters[index])

    return get


def _nics(of: OfNic) -> Callable[[InstanceRow], Any]:
    return lambda row: [
        _or_none(of(nic, parameters))
        for nic, parameters in zip(row.nics, row.nic_parameters, strict=True)
    ]


def _or_none(value: Any) -> Any:
    return None if isinstance(value, Missing) else value


def _given(text: str) -> Any:
    return text or Missing.UNAVAILABLE


def _bridge(_: Nic, parameters: NicParameters) -> Any:
    return parameters.link if parameters.mode == "bridged" else Missing.UNAVAILABLE


def _network(nic: Nic, _: NicParameters) -> Any:
    return _given(nic.network)


def _spindles(disk: Disk) -> Any:
    return Missing.UNAVAILABLE if disk.spindles is None else disk.spindles


def _snapshots(row: InstanceRow, disk: Disk) -> list[dict[str, Any]]:
    """Describe what a disk is kept in; of that which all nodes reach, none has it."""

    def node(each: Snapshot) -> str | None:
        holders = [each.node] if each.node else disk.nodes
        return next((row.config.nodes[uuid].name for uuid in holders), None)

    return [
        {
            "name": each.name,
            "taken_at": each.taken_at,
            "size": each.size,
            "room": each.room,
            "node": node(each),
        }
        for each in disk.snapshots
    ]


# fmt: off
_EACH_DISK: tuple[tuple[str, str, Kind, str, OfDisk], ...] = (
    ("disk.name", "DiskName", Kind.TEXT, "Name of {} disk", lambda disk: _given(disk.name)),
    ("disk.size", "Disk", Kind.UNIT, "Disk size of {} disk", lambda disk: disk.size),
    ("disk.spindles", "DiskSpindles", Kind.NUMBER, "Spindles of {} disk", _spindles),
    ("disk.uuid", "DiskUUID", Kind.TEXT, "UUID of {} disk", lambda disk: disk.uuid),
)
_ALL_DISKS: tuple[tuple[str, str, str, OfDisk], ...] = (
    ("disk.names", "Disk_names", "List of disk names", lambda disk: _given(disk.name)),
    ("disk.sizes", "Disk_sizes", "List of disk sizes", lambda disk: disk.size),
    ("disk.spindles", "Disk_spindles", "List of disk spindles", _spindles),
    ("disk.uuids", "Disk_UUIDs", "List of disk UUIDs", lambda disk: disk.uuid),
)
_EACH_NIC: tuple[tuple[str, str, str, OfNic], ...] = (
    ("nic.bridge", "NicBridge", "Bridge", _bridge),
    ("nic.ip", "NicIP", "IP address", lambda nic, _: _given(nic.ip)),
    ("nic.link", "NicLink", "Link", lambda _, parameters: parameters.link),
    ("nic.mac", "NicMAC", "MAC address", lambda nic, _: nic.mac),
    ("nic.mode", "NicMode", "Mode", lambda _, parameters: parameters.mode),
    ("nic.name", "NicName", "Name address", lambda nic, _: _given(nic.name)),
    ("nic.network", "NicNetwork", "Network", _network),
    ("nic.uuid", "NicUUID", "UUID address", lambda nic, _: nic.uuid),
    ("nic.vlan", "NicVLAN", "VLAN", lambda _, parameters: _given(parameters.vlan)),
)
_EACH = "List containing each network interface's "
_ALL_NICS: tuple[tuple[str, str, str, OfNic], ...] = (
    ("nic.bridges", "NIC_bridges", _EACH + "bridge", _bridge),
    ("nic.ips", "NIC_IPs", _EACH + "IP address", lambda nic, _: _given(nic.ip)),
    ("nic.links", "NIC_links", _EACH + "link", lambda _, parameters: parameters.link),
    ("nic.macs", "NIC_MACs", _EACH + "MAC address", lambda nic, _: nic.mac),
    ("nic.modes", "NIC_modes", _EACH + "mode", lambda _, parameters: parameters.mode),
    ("nic.names", "NIC_Names", _EACH + "name", lambda nic, _: _given(nic.name)),
    ("nic.networks", "NIC_networks", "List containing each interface's network", _network),
    ("nic.uuids", "NIC_UUIDs", _EACH + "UUID", lambda nic, _: nic.uuid),
    ("nic.vlans", "NIC_VLANs", _EACH + "VLAN", lambda _, parameters: _given(parameters.vlan)),
)
_FIRST_NIC: tuple[tuple[str, str, str, OfNic], ...] = (  # spellings from before there were several
    ("bridge", "NicBridge", "Bridge", _bridge),
    ("ip", "NicIP", "IP address", lambda nic, _: _given(nic.ip)),
    ("mac", "NicMAC", "MAC address", lambda nic, _: nic.mac),
    ("nic_link", "NicLink", "Link", lambda _, parameters: parameters.link),
    ("nic_mode", "NicMode", "Mode", lambda _, parameters: parameters.mode),
    ("nic_network", "NicNetwork", "Network", _network),
)
# fmt: on


def _fields() -> Iterator[Field[InstanceRow]]:
    yield Field("disk.count", "Disks", Kind.NUMBER, "Number of disks", lambda row: len(row.disks))
    yield Field(
        "disk_usage",
        "DiskUsage",
        Kind.UNIT,
        "Total disk space used by instance on each of its nodes; this is not the disk size "
        "visible to the instance, but the usage on the node",
        lambda row: row.entity.disk_template.traits.disk_space([disk.size for disk in row.disks]),
    )
    for name, title, text, of_disk in _ALL_DISKS:
        yield Field(name, title, Kind.OTHER, text, _disks(of_disk))
    yield Field(
        "disk.snapshots",
        "Disk_snapshots",
        Kind.OTHER,
        "Snapshots of each disk, the oldest first",
        lambda row: [_snapshots(row, disk) for disk in row.disks],
    )
    for name, title, kind, text, of_disk in _EACH_DISK:
        for index in range(MOST_DISKS):
            doc = text.format(_ordinal(index + 1))
            yield Field(f"{name}/{index}", f"{title}/{index}", kind, doc, _disk(index, of_disk))
    for index, name in enumerate(("sda_size", "sdb_size")):
        doc = f"Disk size of {_ordinal(index + 1)} disk"
        yield Field(name, f"Disk/{index}", Kind.UNIT, doc, _disk(index, lambda disk: disk.size))
    yield Field(
        "nic.count", "NICs", Kind.NUMBER, "Number of network interfaces", lambda row: len(row.nics)
    )
    yield Field(
        "custom_nicparams",
        "CustomNicParameters",
        Kind.OTHER,
        "Custom network interface parameters",
        lambda row: [nic.nicparams for nic in row.nics],
    )
    for name, title, text, of_nic in _ALL_NICS:
        yield Field(name, title, Kind.OTHER, text, _nics(of_nic))
    for name, title, text, of_nic in _EACH_NIC:
        for index in range(MOST_NICS):
            doc = f"{text} of {_ordinal(index + 1)} network interface"
            yield Field(f"{name}/{index}", f"{title}/{index}", Kind.TEXT, doc, _nic(index, of_nic))
    yield from _names_of_networks()
    for name, title, text, of_nic in _FIRST_NIC:
        doc = f"{text} of 1st network interface"
        yield Field(name, f"{title}/0", Kind.TEXT, doc, _nic(0, of_nic))


def _names_of_networks() -> Iterator[Field[InstanceRow]]:
    yield Field(
        "nic.networks.names",
        "NIC_networks_names",
        Kind.OTHER,
        "List containing each interface's network",
        lambda row: [row.network_name(nic) for nic in row.nics],
    )
    for index in range(MOST_NICS):
        doc = f"Network name of {_ordinal(index + 1)} network interface"
        name, title = f"nic.network.name/{index}", f"NicNetworkName/{index}"
        yield Field(name, title, Kind.TEXT, doc, _network_name(index))


def _network_name(index: int) -> Callable[[InstanceRow], Any]:
    def get(row: InstanceRow) -> Any:
        found = row.network_name(row.nics[index]) if index < len(row.nics) else None
        return found or Missing.UNAVAILABLE

    return get


DEVICE_FIELDS = tuple(_fields())
