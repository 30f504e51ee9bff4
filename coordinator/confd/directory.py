"""A published configuration, arranged by what is asked about it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from common.confd_snapshot import PublishedInstance, PublishedNode, Snapshot

MASTER, CANDIDATE, OFFLINE, DRAINED, REGULAR = range(5)
"""Roles of nodes, as Ganeti numbers them."""


class Directory:
    """Finds what is in a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.master = snapshot.nodes[snapshot.cluster.master_node]
        self.default_link = snapshot.cluster.nicparams["link"]
        self._nodes = {node.name: node for node in snapshot.nodes.values()}
        self._instances = {each.name: each for each in snapshot.instances.values()}
        self._by_link: dict[str, dict[str, PublishedInstance]] = {}
        self._primaries: dict[str, list[PublishedInstance]] = {}
        self._secondaries: dict[str, list[PublishedInstance]] = {}
        for instance in self._instances.values():
            self._primaries.setdefault(instance.primary_node, []).append(instance)
            for node in instance.secondary_nodes:
                self._secondaries.setdefault(node, []).append(instance)
            for nic in instance.nics:
                if nic.ip:
                    self._by_link.setdefault(nic.nicparams["link"], {})[nic.ip] = instance

    def find_node(self, ref: str) -> PublishedNode | None:
        """Return the node of a name or UUID."""
        return self._nodes.get(ref) or self.snapshot.nodes.get(ref)

    def find_instance(self, ref: str) -> PublishedInstance | None:
        return self._instances.get(ref) or self.snapshot.instances.get(ref)

    def nodes(self) -> Iterable[PublishedNode]:
        return self.snapshot.nodes.values()

    def role_of(self, node: PublishedNode) -> int:
        if node is self.master:
            return MASTER
        if node.offline:
            return OFFLINE
        if node.drained:
            return DRAINED
        return CANDIDATE if node.master_candidate else REGULAR

    def ips(self, link: str) -> list[str]:
        """Return the addresses that instances have on a link."""
        return sorted(self._by_link.get(link, {}))

    def find_host(self, link: str, ip: str) -> PublishedNode | None:
        """Return the primary node of the instance that has an address."""
        instance = self._by_link.get(link, {}).get(ip)
        return None if instance is None else self.snapshot.nodes[instance.primary_node]

    def instances_of(
        self, node: PublishedNode
    ) -> tuple[list[PublishedInstance], list[PublishedInstance]]:
        """Return those whose primary node it is, and those of which it has the second copy."""
        return self._primaries.get(node.uuid, []), self._secondaries.get(node.uuid, [])

    def mirrors(self, node: PublishedNode) -> list[tuple[str, int, str, str, str, str]]:
        """Return the devices of mirrored disks of a node, as Ganeti lists them.

        Each: name of the node, number of the device, instance, disk, role and name of the peer.
        """
        primaries, secondaries = self.instances_of(node)
        return [
            (
                node.name,
                disk.minors[node.uuid],
                instance.name,
                disk.iv_name,
                "primary" if instance.primary_node == node.uuid else "secondary",
                self.snapshot.nodes[peer].name,
            )
            for instance in (*primaries, *secondaries)
            for disk in instance.disks
            if node.uuid in disk.minors
            for peer in disk.minors
            if peer != node.uuid
        ]

    def at(self, pointer: str) -> Any:
        """Return the part of the configuration that a JSON pointer names (RFC 6901).

        Raises:
            LookupError: there is none.
        """
        part: Any = self.snapshot
        if pointer and not pointer.startswith("/"):
            raise LookupError(pointer)
        for word in pointer.split("/")[1:]:
            part = _step(part, word.replace("~1", "/").replace("~0", "~"))
        return part


def _step(part: Any, word: str) -> Any:
    match part:
        case dict():
            return part[word]
        case list() | tuple() if word.isascii() and word.isdigit() and len(word) < 9:
            return part[int(word)]
        case msgspec.Struct() if word in part.__struct_fields__:
            return getattr(part, word)
        case _:
            raise LookupError(word)
