"""Make what ``gantry-confd`` answers from, of a configuration."""

from typing import Any

from common.confd_snapshot import (
    CONFIG_VERSION,
    PublishedCluster,
    PublishedDisk,
    PublishedGroup,
    PublishedInstance,
    PublishedNetwork,
    PublishedNic,
    PublishedNode,
    Snapshot,
)
from common.model.disk import Disk
from common.model.entity import Entity
from common.model.instance import Instance
from common.model.master_address import wanted_address
from common.model.nic import Nic
from common.model.parameters import Layer, NicParameters, settled
from common.names import Serial
from coordinator.state.config import Config


def snapshot_of(config: Config, serial: Serial) -> Snapshot:
    """Return what is published of ``config``, which is as the commit ``serial`` has left it."""
    return Snapshot(
        version=CONFIG_VERSION,
        serial_no=serial,
        cluster=_cluster(config),
        nodes={
            node.uuid: PublishedNode(
                **_common(node, node.name),
                primary_ip=node.primary_ip,
                secondary_ip=node.secondary_ip or node.primary_ip,
                group=node.group,
                master_candidate=node.master_candidate,
                offline=node.offline,
                drained=node.drained,
                master_capable=node.master_capable,
                vm_capable=node.vm_capable,
            )
            for node in config.nodes.values()
        },
        nodegroups={
            group.uuid: PublishedGroup(
                **_common(group, group.name), alloc_policy=group.alloc_policy
            )
            for group in config.groups.values()
        },
        networks={
            network.uuid: PublishedNetwork(
                **_common(network, network.name),
                network=network.network,
                gateway=network.gateway,
                network6=network.network6,
                gateway6=network.gateway6,
            )
            for network in config.networks.values()
        },
        instances={
            instance.uuid: _instance(config, instance) for instance in config.instances.values()
        },
    )


def _cluster(config: Config) -> PublishedCluster:
    cluster = config.cluster
    return PublishedCluster(
        **_common(cluster, cluster.name),
        cluster_name=cluster.name,
        master_node=cluster.master,
        master_ip=address.ip if (address := wanted_address(cluster)) else "",
        candidate_pool_size=cluster.candidate_pool_size,
        enabled_hypervisors=cluster.enabled_hypervisors,
        enabled_disk_templates=cluster.enabled_disk_templates,
        mac_prefix=cluster.mac_prefix,
        volume_group_name=cluster.volume_group_name,
        file_storage_dir=cluster.file_storage_dir,
        shared_file_storage_dir=cluster.shared_file_storage_dir,
        nicparams=_nic_parameters(cluster.nicparams),
    )


def _instance(config: Config, instance: Instance) -> PublishedInstance:
    disks, nics = config.disks_of(instance), config.nics_of(instance)
    template = instance.disk_template
    return PublishedInstance(
        **_common(instance, instance.name),
        primary_node=instance.primary_node,
        secondary_nodes=config.secondary_nodes(instance) if template.traits.is_mirrored else (),
        admin_state=instance.admin_state,
        hypervisor=instance.hypervisor,
        os=instance.os,
        disk_template=template,
        disks=tuple(_disk(disk, index, template) for index, disk in enumerate(disks)),
        nics=tuple(_nic(config, instance, nic) for nic in nics),
        forthcoming=instance.forthcoming,
    )


def _disk(disk: Disk, index: int, template: str) -> PublishedDisk:
    backing = disk.backing
    return PublishedDisk(
        uuid=disk.uuid,
        name=disk.name,
        iv_name=f"disk/{index}",
        dev_type=template,
        size=disk.size,
        mode=disk.mode,
        logical_id=tuple(backing.logical_id(disk.nodes)),
        nodes=disk.nodes,
        minors={str(node): minor for node, minor in backing.minors.items()},
    )


def _nic(config: Config, instance: Instance, nic: Nic) -> PublishedNic:
    return PublishedNic(
        uuid=nic.uuid,
        name=nic.name,
        mac=nic.mac,
        ip=nic.ip,
        network=nic.network,
        nicparams=_nic_parameters(*config.nic_layers(nic, instance.primary_node)),
    )


def _nic_parameters(*layers: Layer) -> dict[str, str]:
    told = settled(NicParameters, *layers)
    return {"mode": told.mode, "link": told.link, "vlan": told.vlan}


def _common(item: Entity, name: str) -> dict[str, Any]:
    return {
        "uuid": item.uuid,
        "name": name,
        "serial_no": item.serial_no,
        "ctime": item.ctime,
        "mtime": item.mtime,
        "tags": item.tags,
    }
