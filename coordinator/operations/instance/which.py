"""Devices as they are named: by number, by name or by UUID.

A number may be a text, as in what Ganeti's commands send; it is looked for before a name.
"""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from common.errors import InvalidRequest, NotFound
from common.model.disk import Disk
from common.model.nic import Nic
from common.names import InstanceName
from coordinator.state.config import Config

Device = TypeVar("Device", Disk, Nic)

LAST = -1
"""As a number: of the last device, or the place behind it."""

_NUMBER = re.compile(r"-?[0-9]{1,4}", re.ASCII)


def find_device(
    devices: Sequence[Device], which: int | str, *, kind: str, name: InstanceName
) -> int:
    """Return the number of a device, counted from 0.

    Args:
        devices: of the instance, in order.
        which: a number, -1 for the last one, a name or a UUID.
        kind: "disk" or "nic", for messages.
        name: of the instance.

    Raises:
        InvalidRequest: several have the name.
        NotFound: none is meant.
    """
    number = _read(which)
    if isinstance(number, int) and devices and LAST <= number < len(devices):
        return number % len(devices)
    found = [n for n, each in enumerate(devices) if which and which in (each.uuid, each.name)]
    if len(found) > 1:
        raise InvalidRequest(f"{name} has {len(found)} {kind}s of the name “{which}”.")
    if found:
        return found[0]
    count = f"it has {len(devices)}, counted from 0"
    raise NotFound(f"Instance {name} has no {kind} {which}; {count}.", instance=name)


def find_detached(config: Config, which: str) -> Disk:
    """Return a disk that belongs to no instance, by its UUID or its name.

    Raises:
        InvalidRequest: several have the name.
        NotFound: there is none.
    """
    found = [disk for disk in config.detached_disks() if which in (disk.uuid, disk.name)]
    if len(found) > 1:
        raise InvalidRequest(f"{len(found)} detached disks have the name “{which}”; give the UUID.")
    if not found:
        raise NotFound(f"There is no detached disk “{which}”; “gnt-cluster info” names them.")
    return found[0]


def place_for(devices: Sequence[Any], where: int | str, *, kind: str, name: InstanceName) -> int:
    """Return the number that a new device gets.

    Raises:
        InvalidRequest: it would not be next to another one.
    """
    number = _read(where)
    if number == LAST:
        return len(devices)
    if isinstance(number, int) and 0 <= number <= len(devices):
        return number
    raise InvalidRequest(
        f"A {kind} of {name} is added at the end, or before one of the numbers 0 to "
        f"{len(devices)}, not at “{where}”."
    )


def _read(which: int | str) -> int | str:
    is_number = isinstance(which, str) and _NUMBER.fullmatch(which)
    return int(which) if is_number else which
