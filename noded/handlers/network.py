"""Calls about the network of this node."""

from common.names import NicId
from common.noderpc.network import Network, NicSpec, TapReport
from noded.network.interface import NetworkDriver


class NetworkHandlers(Network):
    def __init__(self, network: NetworkDriver) -> None:
        self._network = network

    async def ensure_taps(self, *, nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
        return await self._network.ensure_taps(nics)

    async def remove_taps(self, *, nics: tuple[NicId, ...]) -> None:
        await self._network.remove_taps(nics)

    async def taps(self) -> tuple[TapReport, ...]:
        return await self._network.taps()

    async def links(self, *, names: tuple[str, ...]) -> tuple[bool, ...]:
        return await self._network.links(names)
