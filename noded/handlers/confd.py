"""Calls about what ``gantry-confd`` of this node answers from."""

from pathlib import Path

from common.confd_snapshot import KEY_FILE, SNAPSHOT_FILE
from common.noderpc.confd import Confd
from noded.handlers.group_files import GroupFiles

GROUP = "gantry-confd"  # whose key it is, too


class ConfdHandlers(Confd):
    def __init__(self, directory: Path) -> None:
        self._files = GroupFiles(directory, GROUP)

    async def publish(self, *, key: str, snapshot: bytes) -> None:
        await self._files.write({KEY_FILE: key.encode(), SNAPSHOT_FILE: snapshot})

    async def withdraw(self) -> None:
        # The key goes first: without it nothing is answered.
        await self._files.remove((KEY_FILE, SNAPSHOT_FILE))
