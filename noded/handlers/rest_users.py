"""Calls about who may use ``gantry-rapi`` of this node."""

from pathlib import Path

from common.noderpc.rest_users import RestUsers
from noded.handlers.group_files import GroupFiles

GROUP = "gantry-rapi"


class RestUsersHandlers(RestUsers):
    def __init__(self, file: Path) -> None:
        self._files, self._name = GroupFiles(file.parent, GROUP), file.name

    async def publish(self, *, users: str) -> None:
        await self._files.write({self._name: users.encode()})

    async def withdraw(self) -> None:
        await self._files.remove((self._name,))
