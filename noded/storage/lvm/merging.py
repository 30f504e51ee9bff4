"""Writing what snapshots kept back to their volumes: in the background, as it may take hours."""

import asyncio

from common.noderpc.disks import Unfinished
from common.tasks import Background
from noded.storage.lvm import commands, lvm
from noded.storage.lvm.volumes import Volume

WAIT_S = 20.0  # for the end of it, before whoever asks is told that it goes on


class Merging:
    """What is being written back on this node; it goes on while nobody asks."""

    def __init__(self) -> None:
        self._background = Background()
        self._going: dict[str, asyncio.Task[None]] = {}

    def is_going(self, snapshot: Volume) -> bool:
        return snapshot.name in self._going

    async def merge(self, snapshot: Volume) -> None:
        """Return when a snapshot is used up; its volume is active, and nobody has it open.

        Raises:
            Unfinished: it goes on; to be asked again.
            NodeFailure: LVM refused.
        """
        if not self.is_going(snapshot):
            work = lvm.change(commands.roll_back(snapshot), timeout_s=lvm.MERGE_S)
            self._going[snapshot.name] = self._background.start(work, name=f"merge {snapshot.name}")
        task = self._going[snapshot.name]
        _, late = await asyncio.wait([task], timeout=WAIT_S)
        if late:
            raise Unfinished(
                f"What {snapshot.name} kept is being written back; it goes on.",
                done_mib=0,
                total_mib=0,
            )
        self._going.pop(snapshot.name, None)
        task.result()
