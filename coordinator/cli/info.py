"""The ``info`` commands: all about instances, nodes, or the cluster, as an indented text."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.durations import spoken
from common.units import format_mib
from coordinator.cli.asking import Answer, query
from coordinator.cli.cell import cell, format_time
from coordinator.cli.connection import connect
from coordinator.cli.last_known import MARK, read_last_known
from coordinator.cli.parser import Parser, add_ignored, add_json
from coordinator.cli.policy import write_own_policy, write_specs
from coordinator.cli.telling import write
from coordinator.cli.tree import tree

_STATIC_INSTANCE = (
    "name", "uuid", "serial_no", "ctime", "mtime", "admin_state", "pnode", "snodes", "pnode.group",
    "pnode.group.uuid", "os", "osparams", "hypervisor", "hvparams", "custom_hvparams",
    "beparams", "custom_beparams", "disk_template", "disk.sizes", "disk.names", "disk.uuids",
    "disk.snapshots",
    "nic.macs", "nic.ips", "nic.modes", "nic.links", "nic.vlans", "nic.names", "nic.uuids", "tags",
    "maybe_on", "forthcoming", "expires",
)  # fmt: skip
_LIVE_INSTANCE = (
    "status", "guest_state", "oper_state", "oper_ram", "oper_vcpus", "console", "mirror_state",
    "disk.findings",
)  # fmt: skip
_NODE = (
    "name", "uuid", "serial_no", "ctime", "mtime", "pip", "sip", "group", "role",
    "master_candidate", "drained", "offline", "master_capable", "vm_capable", "pinst_list",
    "sinst_list", "ndparams", "custom_ndparams", "mtotal", "mnode", "mfree", "dtotal", "dfree",
    "ctotal", "csockets", "cnodes", "bootid", "tags",
)  # fmt: skip

_GROUP = (
    "name", "uuid", "serial_no", "ctime", "mtime", "alloc_policy", "node_list", "pinst_list",
    "ndparams", "custom_ndparams", "diskparams", "custom_diskparams", "ipolicy", "custom_ipolicy",
    "tags",
)  # fmt: skip


MAPPED = 64  # addresses in a line of the map of a network
MOST_MAPPED = 1024  # in all

_NETWORK = (
    "name", "uuid", "serial_no", "ctime", "mtime", "network", "gateway", "network6", "gateway6",
    "mac_prefix", "free_count", "reserved_count", "map", "external_reservations", "group_list",
    "inst_list", "tags",
)  # fmt: skip


def instance_info(command: str, words: Sequence[str]) -> int:
    """``gnt-instance info``."""
    parser = Parser(command, "Show all about instances.")
    parser.add_argument("names", nargs="*", metavar="INSTANCE", help="its name")
    parser.add_argument("-s", "--static", action="store_true", help="do not ask the nodes")
    parser.add_argument("--all", action="store_true", help="all instances of the cluster")
    add_json(parser)
    options = parser.parse_args(words)
    if not options.names and not options.all:
        parser.error("name an instance, or give --all")
    fields = _STATIC_INSTANCE if options.static else _STATIC_INSTANCE + _LIVE_INSTANCE
    found = query("instance", fields, _named(options.names))
    return _show(found, describe_instance, form=options.json)


def node_info(command: str, words: Sequence[str]) -> int:
    """``gnt-node info``."""
    parser = Parser(command, "Show all about nodes, or about those named.")
    parser.add_argument("names", nargs="*", metavar="NODE", help="its name; none: all nodes")
    add_json(parser)
    options = parser.parse_args(words)
    return _show(query("node", _NODE, _named(options.names)), describe_node, form=options.json)


def group_info(command: str, words: Sequence[str]) -> int:
    """``gnt-group info``."""
    parser = Parser(command, "Show all about groups of nodes, or about those named.")
    parser.add_argument("names", nargs="*", metavar="GROUP", help="its name; none: all groups")
    add_json(parser)
    options = parser.parse_args(words)
    return _show(query("group", _GROUP, _named(options.names)), describe_group, form=options.json)


def network_info(command: str, words: Sequence[str]) -> int:
    """``gnt-network info``."""
    parser = Parser(command, "Show all about networks, or about those named.")
    parser.add_argument("names", nargs="*", metavar="NETWORK", help="its name; none: all networks")
    add_json(parser)
    options = parser.parse_args(words)
    found = query("network", _NETWORK, _named(options.names))
    return _show(found, describe_network, form=options.json)


def cluster_info(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster info``."""
    parser = Parser(command, "Show the cluster's name, master and parameters.")
    add_json(parser)
    add_ignored(parser, ("--roman",))  # a joke of Ganeti's, whose numbers stay Arabic here
    options = parser.parse_args(words)
    with connect() as client:
        told = client.call("QueryClusterInfo")
    if options.json:
        write(options.json, told, indent=2)
    else:
        print("\n".join(tree(describe_cluster(told))))
    return 0


def show_specs(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster show-ispecs-cmd``."""
    parser = Parser(command, "Print how a cluster of this name, with these sizes, is made.")
    parser.parse_args(words)
    with connect() as client:
        told = client.call("QueryClusterInfo")
    print(f"gnt-cluster init {write_specs(told['ipolicy'])} {told['name']}")
    return 0


def show_group_specs(command: str, words: Sequence[str]) -> int:
    """``gnt-group show-ispecs-cmd``."""
    parser = Parser(command, "Print how a group of this name, with this policy, is made.")
    parser.add_argument(
        "--include-defaults", action="store_true", help="what it has of the cluster, too"
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="its name; none: all groups")
    options = parser.parse_args(words)
    field = "ipolicy" if options.include_defaults else "custom_ipolicy"
    wanted = ["|", *(["==", "name", name] for name in options.groups)] if options.groups else None
    for told in query("group", ("name", field), wanted).as_objects():
        words = ("gnt-group add", write_own_policy(told[field]), told["name"])
        print(" ".join(filter(None, words)))
    return 0


def describe_instance(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one instance; absent values stand as text."""
    state = f"configured to be {told['admin_state']}"
    if told["forthcoming"]:
        until = f" until {format_time(told['expires'])}" if told["expires"] else ""
        state = f"only reserved{until}: its room is kept, and no node has anything of it"
    elif "status" in told:
        state += f", actual state is {told['status']}"
        guest = _known(told, "guest_state")
        if guest not in (None, "absent", "running"):
            state += f", its process is {guest}"
        if memory := _known(told, "oper_ram", "unit"):
            state += f", with {memory} and {_known(told, 'oper_vcpus')} vCPUs"
    return {
        "Instance name": told["name"],
        **_silence(told),
        "UUID": told["uuid"],
        "Serial number": told["serial_no"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
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
        "Hypervisor parameters": _marked(told["hvparams"], told["custom_hvparams"]),
        "Back-end parameters": _marked(told["beparams"], told["custom_beparams"]),
        "NICs": _nics(told),
        "Disk template": told["disk_template"],
        "Disks": _disks(told),
        "Tags": told["tags"],
    }


def describe_node(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one node; absent values stand as text."""
    return {
        "Node name": told["name"],
        **_silence(told),
        "UUID": told["uuid"],
        "Serial number": told["serial_no"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
        "primary ip": told["pip"],
        "secondary ip": told["sip"],
        "group": told["group"],
        "role": told["role"],
        "master candidate": told["master_candidate"],
        "drained": told["drained"],
        "offline": told["offline"],
        "master_capable": told["master_capable"],
        "vm_capable": told["vm_capable"],
        "primary for instances": told["pinst_list"],
        "secondary for instances": told["sinst_list"],
        "node parameters": _marked(told["ndparams"], told["custom_ndparams"]),
        "memory": _amounts(told, total="mtotal", node="mnode", free="mfree"),
        "disk": _amounts(told, total="dtotal", free="dfree"),
        "processors": {
            "logical": _known(told, "ctotal") or "unknown",
            "sockets": _known(told, "csockets") or "unknown",
            "NUMA nodes": _known(told, "cnodes") or "unknown",
        },
        "boot id": _known(told, "bootid") or "unknown",
        "Tags": told["tags"],
    }


def describe_group(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one group."""
    return {
        "Group name": told["name"],
        "UUID": told["uuid"],
        "Serial number": told["serial_no"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
        "allocation policy": told["alloc_policy"],
        "nodes": told["node_list"],
        "primary instances": told["pinst_list"],
        "Node parameters": _marked(told["ndparams"], told["custom_ndparams"]),
        "Disk parameters": {
            template: _marked(merged, told["custom_diskparams"].get(template, {}))
            for template, merged in told["diskparams"].items()
            if merged
        },
        "Instance policy": told["ipolicy"],
        "Set for this group": sorted(told["custom_ipolicy"]),
        "Tags": told["tags"],
    }


def describe_network(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what a query told of one network."""
    return {
        "Network name": told["name"],
        "UUID": told["uuid"],
        "Serial number": told["serial_no"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
        "Subnet": told["network"],
        "Gateway": told["gateway"],
        "IPv6 subnet": told["network6"],
        "IPv6 gateway": told["gateway6"],
        "MAC prefix": told["mac_prefix"],
        "Free addresses": told["free_count"],
        "Taken addresses": told["reserved_count"],
        "Usage map": _rows_of(told["map"]),
        "Reserved addresses": told["external_reservations"],
        "Node groups": {
            name: f"mode {mode}, link {link}" + (f", vlan {vlan}" if vlan else "")
            for name, mode, link, vlan in told["group_list"]
        },
        "Instances": told["inst_list"],
        "Tags": told["tags"],
    }


def _rows_of(taken: str) -> dict[str, str]:
    """Cut the map of a network into lines, each called after the first address in it."""
    starts = range(0, min(len(taken), MOST_MAPPED), MAPPED)
    return {str(start): taken[start : start + MAPPED] for start in starts}


def describe_cluster(told: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange what QueryClusterInfo told."""
    return {
        "Cluster name": told["name"],
        "Cluster UUID": told["uuid"],
        "Creation time": format_time(told["ctime"]),
        "Modification time": format_time(told["mtime"]),
        "Master node": told["master"],
        "Architecture (this node)": " ".join(told["architecture"]),
        "Tags": told["tags"],
        **({"Bad parameters": bad} if (bad := told.get("bad_parameters")) else {}),
        "Default hypervisor": told["default_hypervisor"],
        "Enabled hypervisors": told["enabled_hypervisors"],
        "Hypervisor parameters": told["hvparams"],
        "Cluster parameters": {
            "candidate pool size": told["candidate_pool_size"],
            "maximal number of jobs running simultaneously": told["max_running_jobs"],
            "archive jobs after": spoken(told["archive_jobs_after"]),
            "delete archived jobs after": "never"
            if told["delete_jobs_after"] is None
            else spoken(told["delete_jobs_after"]),
            "storage is repaired by the watcher": told["self_repair"],
            "confd answers on all nodes": told["confd_everywhere"],
            "mac prefix": told["mac_prefix"],
            "distributed files": told["distributed_files"],
            "master address": _master_address(told),
            "master netdev": told["master_netdev"] or "none",
            "master netmask": told["master_netmask"],
            "default instance allocator": told["default_iallocator"],
            "default allocators by request": told["default_iallocators"],
            "default allocator parameters": told["default_iallocator_params"],
            "enabled disk templates": told["enabled_disk_templates"],
            "lvm volume group": told["volume_group_name"] or "none",
            "file storage path": told["file_storage_dir"],
            "shared file storage path": told["shared_file_storage_dir"],
            "gluster storage path": told["gluster_storage_dir"],
        },
        "Default node parameters": told["ndparams"],
        "Default instance parameters": told["beparams"],
        "Default nic parameters": told["nicparams"],
        "Disk parameters": {
            template: merged for template, merged in told["diskparams"].items() if merged
        },
        "Detached disks": {
            disk["uuid"]: f"{format_mib(disk['size'])} {disk['template']} “{disk['name']}” on "
            f"{' and '.join(disk['nodes']) or 'all nodes'}"
            for disk in told.get("detached_disks", ())
        },
        "Instance policy": told["ipolicy"],
    }


def _master_address(told: Mapping[str, Any]) -> str:
    if not told["master_ip"]:
        return "none"
    return str(told["master_ip"]) + ("" if told["master_ip_active"] else " (not active)")


def _named(names: Sequence[str]) -> Any:
    return ["|", *(["==", "name", name] for name in names)] if names else None


def _show(answer: Answer, describe: Any, *, form: str) -> int:
    objects = answer.as_objects()
    if form:
        write(form, objects, indent=2)
        return 0
    print("\n\n".join("\n".join(tree(describe(told))) for told in objects))
    return 0


def _marked(merged: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    """Tell which parameters are the object's own, as Ganeti does."""
    return {
        key: str(value) if key in own else f"default ({value})" for key, value in merged.items()
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


def _amounts(told: Mapping[str, Any], **fields: str) -> dict[str, str]:
    return {name: _known(told, field, "unit") or "unknown" for name, field in fields.items()}


def _known(told: Mapping[str, Any], field: str, kind: str = "other") -> str | None:
    """Write what a node tells, or told before, marked as old; None if that is nothing."""
    if told[field] is not None:
        return cell(0, told[field], kind)
    last = read_last_known(told.get("last_known"))
    old = None if last is None else last.values.get(field)
    return None if old is None else cell(0, old, kind) + MARK


def _disks(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    findings, snapshots = told.get("disk.findings") or (), told.get("disk.snapshots") or ()
    described = []
    for index, size in enumerate(told["disk.sizes"]):
        disk = {
            f"disk/{index}": format_mib(size),
            "name": told["disk.names"][index],
            "UUID": told["disk.uuids"][index],
        }
        if index < len(snapshots) and snapshots[index]:
            disk["snapshots"] = ", ".join(each["name"] for each in snapshots[index])
        if index < len(findings):
            disk["mirror"] = findings[index] or told["mirror_state"]
        described.append(disk)
    return described


def _silence(told: Mapping[str, Any]) -> dict[str, str]:
    """Say why values are old or unknown, if a node does not answer."""
    last = read_last_known(told.get("last_known"))
    return {} if last is None else {"No answer": last.explain()}
