"""Disks and nics as they are asked for, and what is made of that."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from common.addresses import check_ip
from common.errors import Conflict, GntError, InvalidRequest
from common.messages import Order
from common.model.disk import Disk, Mode
from common.model.disk_parameters import Reach
from common.model.parameters import NicParameters, filled
from common.names import MiB
from common.units import parse_mib
from coordinator.disks.wish import DiskWish
from coordinator.state.config import Config

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_SPINDLES = re.compile(r"[1-9][0-9]{0,2}")
_ACCESS: dict[object, Mode] = {"r": Mode.READ_ONLY, "w": Mode.READ_WRITE}
_BOOLEANS: dict[object, bool] = {"yes": True, "no": False}
AUTO = "auto"  # as a link: the cluster's
_ASK = ("", AUTO, "generate")
NONE = "none"  # as a name, an address or a network: there is none
_MAY_BE_NONE = frozenset({"ip", "name", "network"})
POOL = "pool"  # as an address: one of the network that is free

MOST_DISKS, MOST_NICS = 16, 8  # Ganeti's


class DiskRequest(DiskWish, kw_only=True):
    """One ``--disk``; ``size`` is in MiB, or text with a unit; 0: as what it adopts has it."""

    size: int | str = 0
    mode: Mode = Mode.READ_WRITE
    name: str = ""
    spindles: int | str | None = None  # physical volumes for itself, where storage is exclusive

    def __post_init__(self) -> None:
        if self.size_mib < 1 and not (self.adopt and self.size_mib == 0):
            raise ValueError("a disk has at least 1 MiB, as in size=10G")
        if self.spindles is not None and not _SPINDLES.fullmatch(str(self.spindles)):
            raise ValueError(f"spindles is a number from 1 to 999, not “{self.spindles}”")

    @property
    def spindle_count(self) -> int | None:
        return None if self.spindles is None else int(self.spindles)

    @property
    def size_mib(self) -> MiB:
        try:
            return parse_mib(str(self.size))
        except GntError as error:
            raise ValueError(error.message.rstrip(".")) from error

    @classmethod
    def like(cls, disk: Disk, wish: DiskWish) -> "DiskRequest":
        """Ask for a disk like another one, which is where ``wish`` says."""
        where = {name: getattr(wish, name) for name in DiskWish.__struct_fields__}
        return cls(**where, size=disk.size, mode=disk.mode, name=disk.name, spindles=disk.spindles)


def in_directory(disk: DiskRequest, directory: str | None) -> DiskRequest:
    """Return a request for a disk whose file is in this directory, unless it says another one."""
    return replace(disk, directory=disk.directory or directory or "")


class DiskEdit(Order):
    """What can be changed of a disk that is there; what is left out stays as it is."""

    name: str | None = None
    mode: Mode | None = None

    def applied_to(self, disk: Disk) -> Disk:
        """Return a disk with these changes; “none” takes the name away."""
        changes: dict[str, Any] = {}
        if self.name is not None:
            changes["name"] = "" if is_none(self.name) else self.name
        if self.mode is not None:
            changes["mode"] = self.mode
        return replace(disk, **changes)


def is_none(value: object) -> bool:
    """Tell whether somebody has written that there is no such thing."""
    return isinstance(value, str) and value.lower() == NONE


def without_nones(told: Any) -> Any:
    """Leave out what a new disk or nic is said not to have, as Ganeti's clients say it: “none”."""
    if not isinstance(told, dict):
        return told
    return {
        key: value for key, value in told.items() if key not in _MAY_BE_NONE or not is_none(value)
    }


def as_one_disk(told: Any) -> Any:
    """Return what Ganeti's clients write of a disk in the words of ours.

    Its ``access`` is two things: “r” and “w” are modes, and “kernelspace” is how guests reach
    any disk here. What is neither is left, to be refused by its name.
    """
    if not isinstance(told, dict):
        return told
    disk, access = dict(told), told.get("access")
    if isinstance(access, str) and access in _ACCESS and "mode" not in disk:
        del disk["access"]
        disk["mode"] = _ACCESS[access]
    elif access == Reach.KERNEL:
        del disk["access"]
    return _with_provider_parameters(disk)


def as_new_devices(given: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of an order with what they say of new disks and nics in our words."""
    told = dict(given)
    for key in ("disks", "nics"):
        if isinstance(devices := told.get(key), list):
            told[key] = [without_nones(device) for device in devices]
    if isinstance(disks := told.get("disks"), list):
        told["disks"] = [as_one_disk(disk) for disk in disks]
    return told


def _with_provider_parameters(disk: dict[str, Any]) -> dict[str, Any]:
    """Gather what is written among the rest of a disk: what its provider is told."""
    if not disk.get("provider"):
        return disk
    known = {name: value for name, value in disk.items() if name in DiskRequest.__struct_fields__}
    others = {name: str(value) for name, value in disk.items() if name not in known}
    told = {**others, **known.get("provider_parameters", {})}
    return known | ({"provider_parameters": told} if told else {})


class NicRequest(Order):
    """One ``--net``; what is left out comes from the cluster's parameters."""

    mac: str = AUTO
    ip: str | None = ""
    mode: str | None = None
    link: str | None = None
    vlan: str | None = None
    bridge: str | None = None  # Ganeti's old name for the link
    guarded: bool | Literal["yes", "no"] | None = None
    network: str | None = None  # its name or UUID
    name: str = ""

    def __post_init__(self) -> None:
        if self.network and (self.mode or self.link or self.bridge or self.vlan):
            raise ValueError("the network says how its nics are plugged in: mode, link and vlan")
        if self.ip and self.ip != POOL:
            check_ip(self.ip, "the address of a nic")
        if self.mac not in _ASK and not _MAC.fullmatch(self.mac.lower()):
            raise ValueError(f"“{self.mac}” is no MAC address, as in aa:00:00:12:34:56")
        if self.wanted_mac() and int(self.mac[:2], 16) & 1:
            raise ValueError(f"“{self.mac}” is the address of a group of machines, not of one")
        what = "what a nic is to be"
        try:
            filled(NicParameters, self.parameters(), what=what)
        except InvalidRequest as error:  # who reads this says again what it is about
            told = error.message.removeprefix(f"Cannot read {what}: ")
            raise ValueError(told.rstrip(".")) from error

    def wanted_mac(self) -> str:
        """The address asked for, or nothing."""
        return "" if self.mac in _ASK else self.mac.lower()

    def parameters(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "mode": self.mode,
            "link": None if AUTO in (self.link, self.bridge) else self.link or self.bridge,
            "vlan": self.vlan,
        }
        told |= {"guarded": _BOOLEANS.get(self.guarded, self.guarded)}
        return {key: value for key, value in told.items() if value is not None}


def check_counts(disks: Sequence[DiskRequest], nics: Sequence[NicRequest]) -> None:
    """Refuse more devices than a machine has places for.

    Raises:
        InvalidRequest: tells how many there may be.
    """
    for devices, most, what in ((disks, MOST_DISKS, "disks"), (nics, MOST_NICS, "nics")):
        if len(devices) > most:
            raise InvalidRequest(
                f"An instance has at most {most} {what}; {len(devices)} were asked for."
            )


class Named(Protocol):
    @property
    def name(self) -> str: ...


def check_names(devices: Iterable[Named], *, kind: str, before: Iterable[Named] = ()) -> None:
    """Refuse a name that two devices of an instance would have: it would tell which one of none.

    Args:
        devices: of one kind, as they will be.
        kind: disk, or nic.
        before: as they are; what an older version let in may stay.

    Raises:
        InvalidRequest: the name.
    """
    had = Counter(device.name for device in before)
    for name, times in Counter(device.name for device in devices).items():
        if name and times > max(1, had[name]):
            raise InvalidRequest(
                f"Two {kind}s of an instance cannot both be called “{name}”: names tell them apart."
            )


def check_macs(config: Config, macs: Iterable[str]) -> None:
    """Refuse an address that another nic has: neither would be reached reliably.

    Raises:
        Conflict: names the instance that has it.
    """
    given = Counter(macs)
    for mac, times in given.items():
        if times > 1:
            raise Conflict(f"The MAC address {mac} is given to {times} nics of the instance.")
    taken = {nic.mac: nic.uuid for nic in config.nics.values() if nic.mac in given}
    for mac, uuid in taken.items():
        owner = next((i.name for i in config.instances.values() if uuid in i.nics), "another")
        raise Conflict(f"The MAC address {mac} is taken by a nic of {owner}.", mac=mac)
