"""What nodes have that their configuration does not know of, and what they lack of it."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from common.messages import from_json
from common.model.backing import DrbdBacking, FileBacking, LvmBacking
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.job import Job
from common.model.nic import Nic
from common.model.node import Node
from common.names import DiskId, NodeId, NodeName
from noded.network.naming import tap_name

GROUP = "gantry"
T = TypeVar("T")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What ``tests.lab.probe`` prints on a node."""

    volumes: tuple[str, ...]  # group/name
    mirrors: tuple[tuple[int, str, str, str], ...]  # minor, link, roles and states of both ends
    ports: tuple[int, ...]  # of mirrors
    taps: tuple[str, ...]
    running: tuple[str, ...]  # a guest for each QEMU
    homes: tuple[str, ...]
    copies: tuple[str, ...]
    exports: tuple[str, ...]
    files: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]


class Known(msgspec.Struct, frozen=True):
    """The configuration, of a replica's rows."""

    nodes: dict[NodeName, Node]
    instances: tuple[Instance, ...]
    disks: dict[DiskId, Disk]
    nics: dict[str, Nic]
    jobs: tuple[Job, ...]

    def disks_on(self, node: NodeId) -> list[Disk]:
        return [disk for disk in self.disks.values() if node in disk.nodes]

    def disks_of(self, instance: Instance) -> list[Disk]:
        return [self.disks[each] for each in instance.disks]

    def name_of(self, node: NodeId) -> NodeName:
        return next(name for name, each in self.nodes.items() if each.uuid == node)


def read(rows: Mapping[str, tuple[str, ...]]) -> Known:
    """Read the rows of a replica."""

    def of(kind: str, type: type[T]) -> list[T]:
        return [from_json(body, type, what=f"a row of a {kind}") for body in rows[kind]]

    return Known(
        nodes={node.name: node for node in of("node", Node)},
        instances=tuple(of("instance", Instance)),
        disks={disk.uuid: disk for disk in of("disk", Disk)},
        nics={nic.uuid: nic for nic in of("nic", Nic)},
        jobs=tuple(of("job", Job)),
    )


def strays(known: Known, found: Mapping[NodeName, Found]) -> list[str]:
    """Name, in sentences, what the nodes that were looked at have too much or too little.

    It is to be asked in peace: what a job is just making is neither.
    """
    return [
        *(line for name in sorted(found) for line in _of_node(known, name, found[name])),
        *_of_guests(known, found),
    ]


def _of_node(known: Known, name: NodeName, found: Found) -> Iterator[str]:
    uuid = known.nodes[name].uuid
    backings = [disk.backing for disk in known.disks_on(uuid)]
    volumes = {
        path for each in backings if isinstance(each, LvmBacking | DrbdBacking)
        for path in each.paths
    }  # fmt: skip
    mirrors = [each for each in backings if isinstance(each, DrbdBacking)]
    here = [each for each in known.instances if each.primary_node == uuid]
    taps = {tap_name(known.nics[nic].uuid) for each in here for nic in each.nics}
    files = {each.path for each in backings if isinstance(each, FileBacking)}
    of_group = {each for each in found.volumes if each.startswith(f"{GROUP}/")}
    for what, there, wanted in (
        ("volume", of_group, volumes),
        ("mirror", {each[0] for each in found.mirrors}, {each.minors[uuid] for each in mirrors}),
        ("port", set(found.ports), {each.port for each in mirrors}),
        ("tap", set(found.taps), taps),
        ("directory of a guest", set(found.homes), {each.uuid for each in here}),
        ("running guest", set(found.running), {each.uuid for each in here}),
        ("file", set(found.files), files),
        ("copy under way", set(found.copies), set[str]()),
    ):
        for stray in sorted(there - wanted, key=str):
            yield f"{name} has the {what} {stray}, of which the configuration does not know."
    for lost in sorted(volumes - of_group):
        yield f"{name} lacks the volume {lost}, which the configuration has there."


def _of_guests(known: Known, found: Mapping[NodeName, Found]) -> Iterator[str]:
    for instance in known.instances:
        on = [name for name in sorted(found) if instance.uuid in found[name].running]
        wanted = [known.name_of(instance.primary_node)]
        if instance.admin_state is not AdminState.UP:
            wanted = []
        if on != wanted:
            yield (
                f"{instance.name} runs on {' and '.join(on) or 'no node'}, "
                f"and should on {' and '.join(wanted) or 'none'}."
            )
