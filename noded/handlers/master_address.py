"""Calls about the address that goes with the mastership."""

from common.addresses import check_reachable_ip
from common.model.master_address import MasterAddress
from common.noderpc.master_address import MasterAddresses
from noded.network.interface import NetworkDriver

_WHAT = "the address of the master"


class MasterAddressHandlers(MasterAddresses):
    def __init__(self, network: NetworkDriver) -> None:
        self._network = network

    async def hold(self, *, address: MasterAddress, for_s: int) -> None:
        check_reachable_ip(address.ip, _WHAT)
        await self._network.hold(address, for_s)

    async def let_go(self, *, ip: str) -> None:
        check_reachable_ip(ip, _WHAT)
        await self._network.let_go(ip)

    async def holds(self, *, ip: str) -> str:
        check_reachable_ip(ip, _WHAT)
        return await self._network.holds(ip)
