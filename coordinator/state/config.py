"""The configuration: what there is in the cluster, and how to find it."""

from dataclasses import dataclass
from functools import cached_property

from immutables import Map

from common.errors import NotFound
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import Instance, nodes_of
from common.model.network import Network
from common.model.nic import Nic
from common.model.node import Node
from common.model.parameters import Layer
from common.model.policy import InstancePolicy
from common.model.pool import Pool
from common.names import DiskId, GroupId, InstanceId, KeyId, NetworkId, NicId, NodeId, NodeName
from common.revoked_keys import RevokedKeys
from coordinator.state.kinds import (
    CLUSTER,
    DISK,
    GROUP,
    INSTANCE,
    NETWORK,
    NIC,
    NODE,
    ON_PRIMARY,
    RESERVED,
    REVOKED_KEY,
)
from coordinator.state.objects import Objects


@dataclass(frozen=True)
class Config(Objects):
    """One immutable configuration. Whatever kind has no words here is found by ``Objects``."""

    @property
    def cluster(self) -> Cluster:
        """The cluster itself.

        Raises:
            NotFound: nothing was ever committed.
        """
        if self._cluster is None:
            raise NotFound("There is no cluster yet; make one with “gnt-cluster init”.")
        return self._cluster

    @property
    def is_empty(self) -> bool:
        return self._cluster is None

    @property
    def groups(self) -> Map[GroupId, Group]:
        return self.table(GROUP)

    @property
    def nodes(self) -> Map[NodeId, Node]:
        return self.table(NODE)

    @property
    def instances(self) -> Map[InstanceId, Instance]:
        return self.table(INSTANCE)

    @property
    def disks(self) -> Map[DiskId, Disk]:
        return self.table(DISK)

    @property
    def nics(self) -> Map[NicId, Nic]:
        return self.table(NIC)

    @property
    def networks(self) -> Map[NetworkId, Network]:
        return self.table(NETWORK)

    def find_group(self, ref: str) -> Group | None:
        return self.find(GROUP, ref)

    def find_node(self, ref: str) -> Node | None:
        return self.find(NODE, ref)

    def find_instance(self, ref: str) -> Instance | None:
        return self.find(INSTANCE, ref)

    def group(self, ref: str) -> Group:
        return self.get(GROUP, ref)

    def node(self, ref: str) -> Node:
        return self.get(NODE, ref)

    def instance(self, ref: str) -> Instance:
        return self.get(INSTANCE, ref)

    def sorted_groups(self) -> tuple[Group, ...]:
        return self.sorted(GROUP)

    def sorted_nodes(self) -> tuple[Node, ...]:
        return self.sorted(NODE)

    def sorted_instances(self) -> tuple[Instance, ...]:
        return self.sorted(INSTANCE)

    @cached_property
    def reservations(self) -> tuple[Instance, ...]:
        """The instances that are only reserved, by name."""
        return self.at(INSTANCE, RESERVED, "")

    @cached_property
    def made_instances(self) -> tuple[Instance, ...]:
        """The instances that are more than reserved, by name: those that nodes have."""
        return tuple(each for each in self.sorted_instances() if not each.forthcoming)

    def instances_on(self, node: NodeId) -> tuple[Instance, ...]:
        """Return the instances whose primary node has this UUID, by name."""
        return self.at(INSTANCE, ON_PRIMARY, node)

    def instances_with_secondary(self, node: NodeId) -> tuple[Instance, ...]:
        """Return the instances that have a secondary node of this UUID, by name."""
        return self._secondaries.get(node, ())

    def nodes_of(self, instance: Instance) -> tuple[NodeId, ...]:
        """Return the primary node of an instance, then its secondary nodes."""
        return nodes_of(instance, self.disks_of(instance))

    def secondary_nodes(self, instance: Instance) -> tuple[NodeId, ...]:
        return self.nodes_of(instance)[1:]

    def disks_of(self, instance: Instance) -> tuple[Disk, ...]:
        disks = self.disks
        return tuple(disks[uuid] for uuid in instance.disks)

    def detached_disks(self) -> tuple[Disk, ...]:
        """Return the disks that belong to no instance, by name."""
        found = (disk for disk in self.disks.values() if disk.template is not None)
        return tuple(sorted(found, key=lambda disk: (disk.name, disk.uuid)))

    def nics_of(self, instance: Instance) -> tuple[Nic, ...]:
        nics = self.nics
        return tuple(nics[uuid] for uuid in instance.nics)

    def nic_layers(self, nic: Nic, node: NodeId) -> tuple[Layer, ...]:
        """Return the layers of parameters of a nic on a node, the outermost first."""
        group = self.groups[self.nodes[node].group]
        connection = group.networks.get(nic.network, {}) if nic.network else {}
        return (self.cluster.nicparams, connection, nic.nicparams)

    def policy_of(self, group: Group) -> InstancePolicy:
        """Return the instance policy that counts in a group."""
        own, clusters = group.ipolicy, self.cluster.ipolicy
        return clusters if own is None else own.over(clusters)

    def candidates(self) -> tuple[Node, ...]:
        """Return the master candidates, the master among them, by name."""
        return self._candidates

    @cached_property
    def candidate_names(self) -> frozenset[NodeName]:
        return frozenset(node.name for node in self._candidates)

    def obeyed(self) -> dict[NodeName, KeyId]:
        """Return whose orders nodes are to take, with their keys: candidates, and those to be."""
        nodes = self.sorted_nodes()
        return {node.name: node.key for node in nodes if node.master_candidate or node.announced}

    def obeyed_too(self) -> dict[NodeName, KeyId]:
        """Return the keys that count as well, of those of them that are about to have another."""
        following = {name: self.node(name).next_key for name in self.obeyed()}
        return {name: key for name, key in following.items() if key}

    @cached_property
    def revoked(self) -> RevokedKeys:
        """The keys that open nothing any more; what an older version has kept comes first."""
        rows = self.table(REVOKED_KEY).values()
        later = sorted(rows, key=lambda row: (row.number, row.id))
        return RevokedKeys((*self.cluster.revoked_keys, *(row.id for row in later)))

    def master(self) -> Node:
        return self.node(self.cluster.master)

    @cached_property
    def _cluster(self) -> Cluster | None:
        return next(iter(self.table(CLUSTER).values()), None)

    @cached_property
    def _secondaries(self) -> dict[NodeId, tuple[Instance, ...]]:
        found: dict[NodeId, list[Instance]] = {}
        for instance in self.sorted_instances():
            if instance.disk_template.traits.is_mirrored:
                for node in self.secondary_nodes(instance):
                    found.setdefault(node, []).append(instance)
        return {node: tuple(instances) for node, instances in found.items()}

    @cached_property
    def used_pools(self) -> tuple[Pool, ...]:
        """The pools that disks name themselves, wherever new ones go."""
        used = {pool for disk in self.disks.values() for pool in disk.pools}
        return tuple(sorted(used, key=lambda pool: (pool.kind, pool.name)))

    @cached_property
    def _candidates(self) -> tuple[Node, ...]:
        return tuple(node for node in self.sorted_nodes() if node.master_candidate)
