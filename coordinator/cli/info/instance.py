"""``gnt-instance info``: all about instances."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.units import format_mib
from coordinator.cli.asking import query
from coordinator.cli.cell import format_time
from coordinator.cli.info.shown import identity, known, marked, named, show, silence
from coordinator.cli.parser import Parser, add_ignored, add_json
from coordinator.cli.refused import add_refused

STATIC = (
    "name", "uuid", "serial_no", "ctime", "mtime", "admin_state", "pnode", "snodes", "pnode.group",
    "pnode.group.uuid", "os", "osparams", "hypervisor", "hvparams", "custom_hvparams",
    "beparams", "custom_beparams", "disk_template", "disk.sizes", "disk.names", "disk.uuids",
    "disk.snapshots", "disk.spindles",
    "nic.macs", "nic.ips", "nic.modes", "nic.links", "nic.vlans", "nic.names", "nic.uuids", "tags",
    "maybe_on", "forthcoming", "expires",
)  # fmt: skip
LIVE = (
    "status", "guest_state", "oper_state", "oper_ram", "oper_vcpus", "console", "mirror_state",
    "disk.allocated", "disk.findings", "guest_interfaces",
)  # fmt: skip


def instance_info(command: str, words: Sequence[str]) -> int:
    """``gnt-instance info``."""
    parser = Parser(command, "Show all about instances.")
    add_ignored(parser, ("--roman",))
    add_refused(parser, command)
    parser.add_argument("names", nargs="*", metavar="INSTANCE", help="its name")
    parser.add_argument("-s", "--static", action="store_true", help="do not ask the nodes")
    parser.add_argument("--all", action="store_true", help="all instances of the cluster")
    add_json(parser)
    options = parser.parse_args(words)
    if not options.names and not options.all:
        parser.error("name an instance, or give --all")
    fields = STATIC if options.static else STATIC + LIVE
    found = query("instance", fields, named(options.names))
    return show(found, describe_instance, form=options.json)


def describe_instance(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one instance; absent values stand as text."""
    state = f"configured to be {told['admin_state']}"
    if told["forthcoming"]:
        until = f" until {format_time(told['expires'])}" if told["expires"] else ""
        state = f"only reserved{until}: its room is kept, and no node has anything of it"
    elif "status" in told:
        state += f", actual state is {told['status']}"
        guest = known(told, "guest_state")
        if guest not in (None, "absent", "running"):
            state += f", its process is {guest}"
        if memory := known(told, "oper_ram", "unit"):
            state += f", with {memory} and {known(told, 'oper_vcpus')} vCPUs"
    return {
        "Instance name": told["name"],
        **silence(told),
        **identity(told),
        "State": state,
        **({"Console": console["message"]} if (console := told.get("console")) else {}),
        "Nodes": {
            "primary": told["pnode"],
            **({"secondaries": ", ".join(told["snodes"])} if told["snodes"] else {}),
            "group": f"{told['pnode.group']} (UUID {told['pnode.group.uuid']})",
            **({"may be on": ", ".join(told["maybe_on"])} if told["maybe_on"] else {}),
        },
        "Operating system": told["os"],
        "Operating system parameters": told["osparams"],
        "Hypervisor": told["hypervisor"],
        "Hypervisor parameters": marked(told["hvparams"], told["custom_hvparams"]),
        "Back-end parameters": marked(told["beparams"], told["custom_beparams"]),
        "NICs": _nics(told),
        **_guests_own(told),
        "Disk template": told["disk_template"],
        "Disks": _disks(told),
        "Tags": told["tags"],
    }


def _nics(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    columns = ("nic.macs", "nic.ips", "nic.modes", "nic.links", "nic.vlans", "nic.names",
               "nic.uuids")  # fmt: skip
    return [
        {
            f"nic/{index}": name,
            "MAC": mac,
            "IP": ip,
            "mode": mode,
            "link": link,
            "vlan": vlan,
            "UUID": uuid,
        }
        for index, (mac, ip, mode, link, vlan, name, uuid) in enumerate(
            zip(*(told[column] for column in columns), strict=True)
        )
    ]


def _guests_own(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the addresses that the agent in the guest says it has, by interface."""
    addresses = {
        " ".join(filter(None, (each["name"], each["mac"]))): ", ".join(each["addresses"])
        for each in told.get("guest_interfaces") or ()
    }
    return {"Addresses by its agent": addresses} if addresses else {}


def _disks(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    findings, snapshots = told.get("disk.findings") or (), told.get("disk.snapshots") or ()
    taken, spindles = told.get("disk.allocated") or (), told.get("disk.spindles") or ()
    described = []
    for index, size in enumerate(told["disk.sizes"]):
        disk = {
            f"disk/{index}": format_mib(size),
            "name": told["disk.names"][index],
            "UUID": told["disk.uuids"][index],
        }
        if index < len(spindles) and spindles[index] is not None:
            disk["spindles"] = spindles[index]
        if index < len(taken) and taken[index] is not None:
            disk["takes"] = format_mib(taken[index])
        if index < len(snapshots) and snapshots[index]:
            disk["snapshots"] = ", ".join(each["name"] for each in snapshots[index])
        if index < len(findings):
            disk["mirror"] = findings[index] or told["mirror_state"]
        described.append(disk)
    return described
