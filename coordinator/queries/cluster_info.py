"""All that LUXI's QueryClusterInfo tells of the cluster, which is what RAPI's /2/info shows."""

from typing import Any

from common.messages import to_builtins
from common.model.disk import Disk
from common.model.disk_parameters import DISK_PARAMETERS
from common.model.hypervisors import HYPERVISORS
from common.model.master_address import address_of
from common.model.parameters import Backend, NicParameters, NodeParameters, settled
from common.model.policy import wire_policy
from common.model.storage_directory import DIRECTORIES
from common.version import VERSION
from coordinator.checks.parameters import bad_of_cluster
from coordinator.queries.cluster_fields import CONFIG_VERSION, OS_API_VERSION
from coordinator.state.config import Config

# What Ganeti's clients expect to find of things that we do not have, or not yet.
_NOT_OURS: dict[str, Any] = {
    "compression_tools": [],
    "data_collector_interval": {},
    "drbd_usermode_helper": None,
    "enabled_data_collectors": {},
    "install_image": "",
    "instance_communication_network": "",
    "max_tracked_jobs": 25,
    "modify_ssh_setup": False,
    "prealloc_wipe_disks": True,  # new disks are zeros
    "primary_ip_version": 4,
    "reserved_lvs": [],
    "ssh_key_bits": 2048,
    "ssh_key_type": "rsa",
    "use_external_mip_script": False,
    "zeroing_image": "",
}


def cluster_info(config: Config) -> dict[str, Any]:
    """Return what QueryClusterInfo tells, under Ganeti's keys."""
    cluster = config.cluster
    return {
        "software_version": VERSION,
        "protocol_version": CONFIG_VERSION,
        "config_version": CONFIG_VERSION,
        "os_api_version": OS_API_VERSION,
        "export_version": 0,
        "vcs_version": f"gantry-{VERSION}",
        "architecture": ["64bit", "x86_64"],
        "name": cluster.name,
        "uuid": cluster.uuid,
        "ctime": cluster.ctime,
        "mtime": cluster.mtime,
        "tags": list(cluster.tags),
        "master": config.master().name,
        "default_hypervisor": cluster.enabled_hypervisors[0],
        "enabled_hypervisors": list(cluster.enabled_hypervisors),
        "enabled_disk_templates": list(cluster.enabled_disk_templates),
        "hvparams": {
            name: to_builtins(settled(kind, cluster.hvparams.get(name, {})))
            for name, kind in HYPERVISORS.items()
            if name in cluster.enabled_hypervisors
        },
        "os_hvp": cluster.os_hvp,
        "hidden_os": list(cluster.hidden_os),
        "blacklisted_os": list(cluster.blacklisted_os),
        "beparams": {"default": to_builtins(settled(Backend, cluster.beparams))},
        "nicparams": {"default": to_builtins(settled(NicParameters, cluster.nicparams))},
        "ndparams": to_builtins(settled(NodeParameters, cluster.ndparams)),
        "osparams": cluster.osparams,
        "diskparams": {
            template: to_builtins(settled(kind, cluster.diskparams.get(template, {})))
            for template, kind in DISK_PARAMETERS.items()
        },
        "detached_disks": [_detached(config, disk) for disk in config.detached_disks()],  # ours
        "ipolicy": wire_policy(cluster.ipolicy),
        "candidate_pool_size": cluster.candidate_pool_size,
        "bad_parameters": list(bad_of_cluster(cluster)),  # ours: sentences
        "max_running_jobs": cluster.max_running_jobs,
        "archive_jobs_after": cluster.archive_jobs_after_s,  # these two are ours; seconds
        "delete_jobs_after": cluster.delete_jobs_after_s,
        "self_repair": cluster.self_repair,  # ours
        "confd_everywhere": cluster.confd_everywhere,  # ours
        "ganeti_paths": cluster.ganeti_paths,  # ours
        "maintain_node_health": cluster.maintain_node_health,
        "default_iallocator": cluster.default_iallocator,
        "default_iallocators": {k: list(v) for k, v in cluster.default_iallocators.items()},
        "default_iallocator_params": cluster.default_iallocator_params,
        "enabled_user_shutdown": cluster.enabled_user_shutdown,
        "mac_prefix": cluster.mac_prefix,
        "uid_pool": [list(each) for each in cluster.uid_pool],
        "distributed_files": list(cluster.distributed_files),  # ours
        "master_ip": cluster.master_ip,  # these two are ours
        "master_ip_active": cluster.master_ip_active,
        "master_netdev": cluster.master_netdev,
        "master_netmask": address.prefix if (address := address_of(cluster)) else 32,
        "volume_group_name": cluster.volume_group_name or None,
        **{field: getattr(cluster, field) for field in DIRECTORIES},
        **_NOT_OURS,
    }


def _detached(config: Config, disk: Disk) -> dict[str, Any]:
    return {
        "uuid": disk.uuid,
        "name": disk.name,
        "size": disk.size,
        "template": disk.template,
        "nodes": [config.nodes[uuid].name for uuid in disk.nodes],
    }
