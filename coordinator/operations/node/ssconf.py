"""The small files about the cluster that every node has (``ssconf``).

For programs and people on a node, also when no master can be asked. Names and forms are
Ganeti's; lists have one entry a line.
"""

from collections.abc import Iterable

from common.addresses import address_family
from common.model.master_address import address_of
from common.model.node import Node
from common.model.storage_directory import DIRECTORIES
from common.model.uid_pool import format_uid_pool
from common.version import VERSION
from coordinator.state.config import Config

SWITCH = "ganeti_paths"  # a file that is there if nodes have links where Ganeti's programs look


def ssconf_files(config: Config) -> dict[str, str]:
    """Return what each file holds."""
    cluster, nodes = config.cluster, config.sorted_nodes()
    candidates = [node for node in nodes if node.master_candidate]
    networks = sorted(config.networks.values(), key=lambda network: network.name)
    # Nodes that are older refuse all files if there is one that they do not know.
    ours = {SWITCH: "True\n"} if cluster.ganeti_paths else {}
    return {
        **ours,
        "cluster_name": f"{cluster.name}\n",
        "master_ip": f"{cluster.master_ip or config.master().primary_ip}\n",
        "master_netdev": f"{cluster.master_netdev}\n",
        "master_netmask": f"{address.prefix if (address := address_of(cluster)) else 32}\n",
        "master_node": f"{config.master().name}\n",
        "master_candidates": _names(candidates),
        "master_candidates_ips": _lines(node.primary_ip for node in candidates),
        "node_list": _names(nodes),
        "node_primary_ips": _lines(f"{node.name} {node.primary_ip}" for node in nodes),
        "node_secondary_ips": _lines(
            f"{node.name} {node.secondary_ip or node.primary_ip}" for node in nodes
        ),
        "offline_nodes": _names(node for node in nodes if node.offline),
        "online_nodes": _names(node for node in nodes if not node.offline),
        "cluster_tags": _lines(sorted(cluster.tags)),
        "cluster_uuid": f"{cluster.uuid}\n",
        "enabled_user_shutdown": f"{cluster.enabled_user_shutdown}\n",
        "maintain_node_health": f"{cluster.maintain_node_health}\n",
        "master_candidates_certs": _lines(
            f"{node.uuid}={node.key}" for node in candidates if node.key
        ),
        "networks": _lines(f"{each.uuid} {each.name}" for each in networks),
        "node_vm_capable": _lines(f"{node.name}={node.vm_capable}" for node in nodes),
        "nodegroups": _lines(f"{each.uuid} {each.name}" for each in config.sorted_groups()),
        "primary_ip_family": f"{address_family(config.master().primary_ip)}\n",
        "release_version": f"{VERSION}\n",
        "uid_pool": _lines([format_uid_pool(cluster.uid_pool, "\n")] if cluster.uid_pool else []),
        "hypervisor_list": _lines(cluster.enabled_hypervisors),
        **{field: f"{getattr(cluster, field)}\n" for field in DIRECTORIES},
        **{
            f"hvparams_{name}": _lines(
                f"{key}={value}" for key, value in sorted(cluster.hvparams.get(name, {}).items())
            )
            for name in cluster.enabled_hypervisors
        },
    }


def _names(nodes: Iterable[Node]) -> str:
    return _lines(node.name for node in nodes)


def _lines(items: Iterable[str]) -> str:
    return "".join(f"{item}\n" for item in items)
