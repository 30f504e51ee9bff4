"""What scripts are told about the objects of the configuration; names are Ganeti's.

Without the prefix that tells the phase: ``INSTANCE_NAME`` is ``GANETI_INSTANCE_NAME`` before the
operation, and ``GANETI_POST_INSTANCE_NAME`` after it.
"""

from collections.abc import Iterator, Mapping, Sequence

from common.messages import to_builtins
from common.model.disk import Disk
from common.model.group import Group
from common.model.hypervisors import HYPERVISORS
from common.model.instance import Instance, nodes_of
from common.model.network import Network, told_of
from common.model.nic import Nic
from common.model.node import Node
from common.model.parameters import NicMode, NicParameters, settled
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.operations.specs import backend
from coordinator.state.config import Config

Variables = Mapping[str, object]


def of_instance(
    config: Config, instance: Instance, disks: Sequence[Disk], nics: Sequence[Nic]
) -> Variables:
    """Say all about an instance, which need not be in the configuration, yet or any more."""
    names = [_node_name(config, uuid) for uuid in nodes_of(instance, disks)]
    memory = backend(config, instance)
    kind = HYPERVISORS[instance.hypervisor]
    hypervisor = settled(
        kind, base_hvparams(config.cluster, instance.hypervisor, instance.os), instance.hvparams
    )
    return {
        "OP_TARGET": instance.name,
        "INSTANCE_NAME": instance.name,
        "INSTANCE_UUID": instance.uuid,
        "INSTANCE_PRIMARY": names[0],
        "INSTANCE_SECONDARIES": " ".join(names[1:]),
        "INSTANCE_OS_TYPE": instance.os,
        "INSTANCE_STATUS": instance.admin_state,
        "INSTANCE_FORTHCOMING": instance.forthcoming,
        "INSTANCE_MINMEM": memory.minmem,
        "INSTANCE_MAXMEM": memory.maxmem,
        "INSTANCE_MEMORY": memory.maxmem,
        "INSTANCE_VCPUS": memory.vcpus,
        "INSTANCE_DISK_TEMPLATE": instance.disk_template,
        "INSTANCE_DISK_SIZES": " ".join(str(disk.size) for disk in disks),
        "INSTANCE_HYPERVISOR": instance.hypervisor,
        "INSTANCE_TAGS": " ".join(sorted(instance.tags)),
        "INSTANCE_NIC_COUNT": len(nics),
        "INSTANCE_DISK_COUNT": len(disks),
        **{f"INSTANCE_BE_{name}": value for name, value in to_builtins(memory).items()},
        **{f"INSTANCE_HV_{name}": value for name, value in to_builtins(hypervisor).items()},
        **dict(_of_disks(instance, disks)),
        **dict(_of_nics(config, instance, nics)),
    }


def of_node(node: Node) -> Variables:
    return {
        "OP_TARGET": node.name,
        "NODE_NAME": node.name,
        "NODE_PIP": node.primary_ip,
        "NODE_SIP": node.secondary_ip or node.primary_ip,
        "MASTER_CANDIDATE": node.master_candidate,
        "MASTER_CAPABLE": node.master_capable,
        "VM_CAPABLE": node.vm_capable,
        "OFFLINE": node.offline,
        "DRAINED": node.drained,
    }


def of_group(group: Group) -> Variables:
    return {"OP_TARGET": group.name, "GROUP_NAME": group.name}


def of_network(network: Network) -> Variables:
    return {"OP_TARGET": network.name, **told_of(network)}


def of_cluster(config: Config) -> Variables:
    cluster = config.cluster
    tags = {f"NODE_TAGS_{node.name}": node.tags for node in config.sorted_nodes()}
    return {
        "OP_TARGET": cluster.name,
        "CLUSTER": cluster.name,
        "MASTER": cluster.master,
        "CLUSTER_TAGS": " ".join(sorted(cluster.tags)),
        **{name: " ".join(sorted(each)) for name, each in tags.items()},
    }


def _node_name(config: Config, uuid: str) -> str:
    node = config.find_node(uuid)
    return node.name if node else uuid


def _of_disks(instance: Instance, disks: Sequence[Disk]) -> Iterator[tuple[str, object]]:
    for index, disk in enumerate(disks):
        yield f"INSTANCE_DISK{index}_SIZE", disk.size
        yield f"INSTANCE_DISK{index}_MODE", disk.mode
        yield f"INSTANCE_DISK{index}_NAME", disk.name
        yield f"INSTANCE_DISK{index}_UUID", disk.uuid
        yield f"INSTANCE_DISK{index}_DEV_TYPE", disk.template or instance.disk_template


def _of_nics(
    config: Config, instance: Instance, nics: Sequence[Nic]
) -> Iterator[tuple[str, object]]:
    for index, nic in enumerate(nics):
        layers = config.nic_layers(nic, instance.primary_node)
        parameters = settled(NicParameters, *layers)
        yield f"INSTANCE_NIC{index}_NAME", nic.name
        yield f"INSTANCE_NIC{index}_UUID", nic.uuid
        yield f"INSTANCE_NIC{index}_MAC", nic.mac
        yield f"INSTANCE_NIC{index}_IP", nic.ip
        yield f"INSTANCE_NIC{index}_MODE", parameters.mode
        yield f"INSTANCE_NIC{index}_LINK", parameters.link
        yield f"INSTANCE_NIC{index}_VLAN", parameters.vlan
        if parameters.mode is not NicMode.ROUTED:
            yield f"INSTANCE_NIC{index}_BRIDGE", parameters.link
        if network := config.networks.get(nic.network):
            for name, value in told_of(network).items():
                yield f"INSTANCE_NIC{index}_{name}", value
