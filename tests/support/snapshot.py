"""What a simulated cluster is like at one moment, for comparison before and after."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from common.messages import from_json, to_builtins, to_json
from common.model.backing import DrbdBacking
from common.model.disk import Disk
from common.model.node import Node
from common.names import NodeName
from coordinator.state.config import Config
from noded.network.naming import tap_name
from noded.storage.fake import FakeFiles
from tests.support.machine import Machine, sizes_in


@dataclass(frozen=True)
class Snapshot:
    """All that an operation may change, for comparison before and after.

    Left out is what counts and dates changes, the jobs, and who is master.
    """

    config: dict[str, Any]
    guests: dict[str, Any]
    seen: dict[str, Any]
    disks: dict[str, Any]
    contents: dict[str, Any]
    sizes: dict[str, Any]
    devices: dict[str, Any]  # of volume groups
    attached: dict[str, Any]
    without_copy: dict[str, Any]  # mirrored disks that are attached
    taps: dict[str, Any]
    tasks: dict[str, Any]
    copies: dict[str, Any]
    scripts: dict[str, Any]
    members: dict[str, Any]
    boots: dict[str, int]
    held: tuple[str, ...] = ()  # locks, and promises of room, of jobs

    def differences(self, other: "Snapshot") -> list[str]:
        """Name what differs, a line each."""
        lines: list[str] = []
        for part in self.__dataclass_fields__:
            mine, theirs = getattr(self, part), getattr(other, part)
            if not isinstance(mine, dict):
                lines += [f"{part}: {mine} / {theirs}"] if mine != theirs else []
                continue
            lines += [
                f"{part} {key}: {mine.get(key)} / {theirs.get(key)}"
                for key in sorted(mine.keys() | theirs.keys())
                if mine.get(key) != theirs.get(key)
            ]
        return lines


async def take_snapshot(
    config: Config, machines: Mapping[str, Machine], shared: FakeFiles, held: tuple[str, ...]
) -> Snapshot:
    """Take in everything, once nothing changes any more by itself."""
    every = machines.items()
    taken = Snapshot(
        config=_configured(config),
        guests={name: await _guests(machine) for name, machine in every},
        seen={name: await _seen(machine) for name, machine in every},
        disks={name: machine.local_disks for name, machine in every}
        | {"shared": sorted(shared.disks)},
        contents={name: machine.contents for name, machine in every}
        | {"shared": dict(sorted(shared.contents.items()))},
        sizes={name: machine.local_sizes for name, machine in every} | {"shared": sizes_in(shared)},
        devices={name: machine.physical.told for name, machine in every},
        attached={name: dict(sorted(machine.attached.items())) for name, machine in every},
        without_copy={name: machine.drbd.without_copy for name, machine in every},
        taps={name: await machine.network.taps() for name, machine in every},
        tasks={name: _tasks(machine) for name, machine in every},
        copies={name: machine.copier.known for name, machine in every},
        scripts={name: machine.operating_systems.known for name, machine in every},
        members={name: _membership(machine) for name, machine in every},
        boots={name: machine.boots for name, machine in every},
        held=held,
    )
    return _named(config, taken)


def _named(config: Config, taken: Snapshot) -> Snapshot:
    """Put names for what is made of chance: UUIDs, MAC addresses, names of taps."""
    names: dict[str, str] = {node.uuid: node.name for node in config.nodes.values()}
    for instance in config.instances.values():
        names[instance.uuid] = instance.name
        for number, disk in enumerate(instance.disks):
            name = names[disk] = f"{instance.name} disk {number}"
            backing = config.disks[disk].backing
            for kept in config.disks[disk].snapshots:
                names[kept.uuid] = f"snapshot {kept.name} of {name}"
            if isinstance(backing, DrbdBacking):
                names[backing.secret] = f"secret of {name}"
        for number, nic in enumerate(instance.nics):
            name = names[nic] = f"{instance.name} nic {number}"
            names |= {tap_name(nic): f"tap of {name}", config.nics[nic].mac: f"mac of {name}"}
    text = to_json(taken).decode()
    for chance, name in names.items():
        text = text.replace(chance, name)
    named = from_json(text, Snapshot, what="a snapshot")
    disks = {place: sorted(paths) for place, paths in named.disks.items()}
    return dataclasses.replace(named, disks=disks)


def _configured(config: Config) -> dict[str, Any]:
    """Return all objects by kind and UUID, without what counts, dates and orders their changes."""
    revoked = tuple(sorted(config.revoked.keys))
    cluster = replace(config.cluster, master=NodeName(""), overrides=(), revoked_keys=revoked)
    tables: Mapping[str, Any] = {
        "group": config.groups, "node": config.nodes, "instance": config.instances,
        "disk": config.disks, "nic": config.nics, "cluster": {cluster.uuid: cluster},
    }  # fmt: skip
    return {
        f"{kind} {uuid}": to_builtins(_timeless(item))
        for kind, table in tables.items()
        for uuid, item in table.items()
    }


def _timeless(item: Any) -> Any:
    same = replace(item, ctime=0.0, mtime=0.0, serial_no=0)
    if isinstance(same, Disk):
        same = replace(same, snapshots=tuple(replace(s, taken_at=0.0) for s in same.snapshots))
    return replace(same, key="") if isinstance(same, Node) else same


async def _guests(machine: Machine) -> dict[str, str]:
    return {guest.name: str(guest.state) for guest in await machine.guest_list()}


async def _seen(machine: Machine) -> dict[str, Any]:
    """Return the disks that guests which run have: slots, and sizes in MiB."""
    every = [guest for guest in await machine.guest_list() if guest.state.is_alive]
    disks = {guest.name: machine.guests.seen(guest.id).items() for guest in every}
    return {name: {f"slot {slot}": size for slot, size in of} for name, of in disks.items()}


def _tasks(machine: Machine) -> tuple[str, ...]:
    return () if machine.noded is None else machine.noded._tasks.running


def _membership(machine: Machine) -> dict[str, Any]:
    """Return what a node is, whom it listens to, and whether it has a copy of the state.

    A node that had to make its key anew has another one, so keys are left out.
    """
    shown = machine.shows()
    listens = machine.noded.candidates.roster.candidates if machine.noded and shown else {}
    return {
        "shows": None if shown is None else shown.peer.node,
        "listens to": sorted(listens),
        "replica": machine.paths.replica.exists(),
    }
