"""``gnt-cluster info``: the cluster's name, master and parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

from common.durations import spoken
from common.model.uid_pool import format_uid_pool
from common.units import format_mib
from coordinator.cli.cell import format_time
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser, add_ignored, add_json
from coordinator.cli.telling import write
from coordinator.cli.tree import tree


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
            "maintenance of node health": told["maintain_node_health"],
            "confd answers on all nodes": told["confd_everywhere"],
            "links for Ganeti's programs": told["ganeti_paths"],
            "mac prefix": told["mac_prefix"],
            "guests may turn themselves off": told["enabled_user_shutdown"],
            "uid pool": format_uid_pool(told["uid_pool"]) or "none",
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
