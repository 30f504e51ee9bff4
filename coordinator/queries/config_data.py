"""The whole configuration in the form of Ganeti's ``config.data``, without any secret.

For people, and for programs that were made for that file: to keep, to compare, to look something
up. Parameters are as somebody has set them; what is not there is as in the layer below.
"""

from collections.abc import Iterable
from typing import Any

from common.addresses import address_family
from common.messages import to_builtins
from common.model.disk import Disk
from common.model.entity import Entity
from common.model.instance import Instance
from common.model.master_address import address_of
from common.model.network import Network
from common.model.nic import Nic
from common.model.node import Node
from common.model.policy import wire_policy
from common.model.storage_directory import DIRECTORIES
from common.model.template import ON_ONE_NODE, DiskTemplate
from coordinator.queries.cluster_fields import CONFIG_VERSION
from coordinator.queries.live import Live
from coordinator.queries.network_fields import NetworkRow
from coordinator.state.config import Config
from coordinator.state.kinds import FILTER
from coordinator.state.state import State

# Fields that the cluster's record and Ganeti's have under the same name, and nodes'.
_OF_CLUSTER = (
    "tags", "enabled_hypervisors", "enabled_disk_templates", "candidate_pool_size",
    "max_running_jobs", "default_iallocator", "default_iallocator_params", "mac_prefix",
    "master_ip", "master_netdev", "volume_group_name", *DIRECTORIES, "maintain_node_health",
    "hvparams", "ndparams", "diskparams", "hidden_os", "blacklisted_os", "os_hvp", "osparams",
    "uid_pool", "enabled_user_shutdown",
)  # fmt: skip
_OF_NODE = (
    "name", "tags", "primary_ip", "group", "ndparams", "master_candidate",
    "master_capable", "vm_capable",    "offline", "drained", "powered",
)  # fmt: skip


_OF_INSTANCE = (
    "name", "tags", "primary_node", "os", "hypervisor", "hvparams", "beparams", "osparams",
    "admin_state", "admin_state_source", "disks", "disk_template", "forthcoming",
)  # fmt: skip

# What Ganeti's programs expect of things that we do not have.
_NOT_OURS: dict[str, Any] = {
    "compression_tools": [],
    "data_collectors": {},
    "disk_state_static": {},
    "drbd_usermode_helper": "/bin/true",
    "hv_state_static": {},
    "install_image": "",
    "instance_communication_network": "",
    "max_tracked_jobs": 25,
    "modify_etc_hosts": False,
    "modify_ssh_setup": False,
    "prealloc_wipe_disks": True,  # new disks are zeros
    "reserved_lvs": [],
    "tcpudp_port_pool": [],
    "use_external_mip_script": False,
    "zeroing_image": "",
}


def config_data(state: State) -> dict[str, Any]:
    """Return the configuration as JSON values."""
    config, serial = state.config, state.stamp.serial
    told: dict[str, Any] = to_builtins({
        "version": CONFIG_VERSION,
        "serial_no": serial,
        "ctime": config.cluster.ctime,
        "mtime": config.cluster.mtime,
        "cluster": _cluster(config),
        "nodes": {node.uuid: _node(node) for node in config.sorted_nodes()},
        "nodegroups": {
            group.uuid: _entity(group)
            | _same(group, ("name", "tags", "alloc_policy", "ndparams", "diskparams", "networks"))
            | {"ipolicy": wire_policy(group.ipolicy.given()) if group.ipolicy else {}}
            for group in config.sorted_groups()
        },
        "instances": {each.uuid: _instance(config, each) for each in config.sorted_instances()},
        "networks": {each.uuid: _network(config, each) for each in config.networks.values()},
        "disks": _disks(config),
        "filters": {
            rule.uuid: {
                "uuid": rule.uuid,
                "watermark": rule.watermark,
                "priority": rule.priority,
                "predicates": rule.predicates,
                "action": rule.wire_action,
                "reason_trail": rule.reason_trail,
            }
            for rule in config.table(FILTER).values()
        },
    })  # fmt: skip
    return told


def _entity(item: Entity) -> dict[str, Any]:
    return _same(item, ("uuid", "serial_no", "ctime", "mtime"))


def _same(item: Entity, fields: Iterable[str]) -> dict[str, Any]:
    return {field: getattr(item, field) for field in fields}


def _cluster(config: Config) -> dict[str, Any]:
    cluster = config.cluster
    return {
        **_NOT_OURS,
        **_entity(cluster),
        **_same(cluster, _OF_CLUSTER),
        "cluster_name": cluster.name,
        "master_netmask": address.prefix if (address := address_of(cluster)) else 32,
        "primary_ip_family": address_family(config.master().primary_ip),
        "candidate_certs": {n.uuid: n.key for n in config.candidates() if n.key},
        "master_node": cluster.master,
        "beparams": {"default": cluster.beparams},
        "nicparams": {"default": cluster.nicparams},
        "ipolicy": wire_policy(cluster.ipolicy),
    }


def _node(node: Node) -> dict[str, Any]:
    own = {"secondary_ip": node.secondary_ip or node.primary_ip}
    return _entity(node) | _same(node, _OF_NODE) | own


def _instance(config: Config, instance: Instance) -> dict[str, Any]:
    return (
        _entity(instance)
        | _same(instance, _OF_INSTANCE)
        | {
            "disks_active": instance.has_active_disks,
            "network_port": instance.network_port or None,
            "nics": [_nic(nic) for nic in config.nics_of(instance)],
            "osparams_private": {},  # they are a secret of the state
        }
    )


def _nic(nic: Nic) -> dict[str, Any]:
    own = {field: getattr(nic, field) or None for field in ("name", "ip", "network")}
    return _same(nic, ("uuid", "mac", "nicparams")) | own


def _network(config: Config, network: Network) -> dict[str, Any]:
    fields = ("network", "gateway", "network6", "gateway6", "mac_prefix")
    own = {field: getattr(network, field) or None for field in fields}
    bits = {"reservations": _bits(config, network), "ext_reservations": ""}
    return _entity(network) | _same(network, ("name", "tags")) | own | bits


def _bits(config: Config, network: Network) -> str:
    """Return a digit for each address in order: 1 is taken, by a nic or by an operator."""
    letters = NetworkRow(network, config, Live()).pool.map
    return letters.translate(str.maketrans("X.", "10"))


def _disks(config: Config) -> dict[str, Any]:
    """Return all disks; those of no instance keep the template that they have themselves."""
    owned = {
        uuid: (index, instance)
        for instance in config.instances.values()
        for index, uuid in enumerate(instance.disks)
    }
    told: dict[str, Any] = {}
    for disk in config.disks.values():
        index, owner = owned.get(disk.uuid, (None, None))
        template = owner.disk_template if owner else disk.template
        told[disk.uuid] = _disk(disk, template) | {
            "iv_name": "" if index is None else f"disk/{index}",
            "forthcoming": bool(owner and owner.forthcoming),
        }
    return told


def _disk(disk: Disk, template: DiskTemplate | None) -> dict[str, Any]:
    backing = disk.backing
    children = [
        {
            "dev_type": ON_ONE_NODE,
            "logical_id": volume.logical_id(disk.nodes),
            "size": size,
            "nodes": disk.nodes,
            "children": [],
            "params": {},
        }
        for volume, size in backing.children(disk.size)
    ]
    own: dict[str, Any] = {
        "dev_type": template or "",
        "logical_id": backing.logical_id(disk.nodes),  # of a mirrored one without its secret
        "children": children,
        "params": {},
    }
    return _entity(disk) | _same(disk, ("name", "size", "mode", "nodes")) | own
