"""Volumes of which LVM has told: while their devices stay the same, it need not tell again.

Starting LVM costs more than all that it does for a volume, and what makes a disk or ends its use
asks for its volumes several times within seconds.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from noded.storage.lvm.device import can_be_read, find_uuid
from noded.storage.lvm.volumes import Volume, VolumeReport
from noded.system.threads import in_thread

SOUND_S = 60.0  # a part of what a volume is on can go, or LVM be told to change it, unnoticed


class _Known(NamedTuple):
    uuid: str
    until_s: float
    goes_with_origin: bool


class Seen:
    """What is known of volumes that have devices."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def note_told(self, volumes: Mapping[Volume, VolumeReport]) -> None:
        """Remember volumes that are ours, sound and active, as LVM has just told."""
        until_s = _now_s() + SOUND_S
        for volume, report in volumes.items():
            uuid = report.uuid.replace("-", "")
            self._known[volume.name] = _Known(uuid, until_s, report.goes_with_origin)

    async def note_made(self, volumes: Iterable[Volume]) -> None:
        """Remember volumes that we have just made and activated."""
        until_s = _now_s() + SOUND_S
        for volume, uuid in (await _uuids(volumes)).items():
            if uuid:
                self._known[volume.name] = _Known(uuid, until_s, goes_with_origin=False)

    def doubt(self, volumes: Iterable[Volume]) -> None:
        """Have LVM be asked before volumes are used again; whose devices are theirs is known."""
        for volume in volumes:
            if known := self._known.get(volume.name):
                self._known[volume.name] = known._replace(until_s=0.0)

    def forget(self, volumes: Iterable[Volume]) -> None:
        for volume in volumes:
            self._known.pop(volume.name, None)

    def uuid_of(self, volume: Volume) -> str:
        """Return the UUID that a volume's device has to have; empty if it is not known."""
        known = self._known.get(volume.name)
        return known.uuid if known else ""

    async def still_ours(self, volumes: Iterable[Volume]) -> set[Volume]:
        """Return those that have devices of their own which are proven to be theirs."""
        known = {v: self._known[v.name] for v in volumes if v.name in self._known}
        found = await _uuids(v for v, each in known.items() if not each.goes_with_origin)
        return {volume for volume, uuid in found.items() if uuid == known[volume].uuid}

    async def are_sound(self, volumes: Iterable[Volume]) -> bool:
        """Tell whether all are still ours and answer, and were whole not long ago."""
        every, now_s = set(volumes), _now_s()
        known = {v: self._known[v.name] for v in every if v.name in self._known}
        are_fresh = known.keys() == every and all(e.until_s > now_s for e in known.values())
        if not are_fresh or await self.still_ours(every) != every:
            return False
        return await in_thread(lambda: all(can_be_read(v, e.uuid) for v, e in known.items()))


async def _uuids(volumes: Iterable[Volume]) -> dict[Volume, str]:
    every = tuple(volumes)
    if not every:
        return {}
    return await in_thread(lambda: {volume: find_uuid(volume) for volume in every})


def _now_s() -> float:
    return asyncio.get_running_loop().time()
