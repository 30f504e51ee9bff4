"""Calls about who may use ``gantry-rapi`` of this node, and what it shows them."""

from common.noderpc.rest_users import RestUsers
from common.paths import Paths
from noded.handlers.group_files import GroupFiles

GROUP = "gantry-rapi"


class RestUsersHandlers(RestUsers):
    def __init__(self, paths: Paths) -> None:
        self._users = paths.cluster_rapi_users.name
        self._certificate = paths.cluster_rapi_certificate.name
        self._files = GroupFiles(paths.cluster_rapi_users.parent, GROUP)

    async def publish(self, *, users: str) -> None:
        await self._files.write({self._users: users.encode()})

    async def publish_certificate(self, *, pem: str) -> None:
        await self._files.write({self._certificate: pem.encode()})

    async def withdraw(self) -> None:
        await self._files.remove((self._users, self._certificate))
