"""A network that exists in memory only."""

import asyncio
from collections.abc import Iterable

from common.errors import Conflict, NodeFailure
from common.model.master_address import MasterAddress
from common.names import NicId
from common.noderpc.network import NicSpec, TapReport
from noded.network.interface import NetworkDriver
from noded.network.naming import check_nic, tap_name


class FakeNetwork(NetworkDriver):
    """``bridges``, ``switches``, ``devices`` and ``own`` addresses are for scenarios to change."""

    def __init__(self, *bridges: str, switches: Iterable[str] = ()) -> None:
        self.bridges, self.switches = set(bridges), set(switches)
        self.devices, self.own = {"eth0", *bridges}, dict[str, str]()
        self._held: dict[str, tuple[str, float]] = {}  # on which device, until when
        self._taps: dict[str, TapReport] = {}

    async def prepare(self) -> None:
        """Know everything already."""

    @property
    def unguarded(self) -> str:
        return ""

    async def check(self, nics: tuple[NicSpec, ...]) -> None:
        for nic in nics:
            check_nic(nic)
            if nic.mode == "bridged" and nic.link not in self.bridges:
                raise NodeFailure(
                    f"The bridge {nic.link!r} does not exist on this node; create it, or give "
                    "the nic another link.",
                    link=nic.link,
                )
            if nic.mode == "openvswitch" and nic.link not in self.switches:
                raise NodeFailure(
                    f"The switch {nic.link!r} does not exist on this node; make it with “ovs-vsctl "
                    f"add-br {nic.link}”, or give the nic another link.",
                    link=nic.link,
                )

    async def ensure_taps(self, nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
        await self.check(nics)
        for nic in nics:
            name = tap_name(nic.id)
            self._taps[name] = TapReport(
                name=name,
                nic=nic.id,
                instance=nic.instance,
                link="" if nic.mode == "routed" else nic.link,
            )
        return tuple(tap_name(nic.id) for nic in nics)

    async def remove_taps(self, nics: tuple[NicId, ...]) -> None:
        for nic in nics:
            self._taps.pop(tap_name(nic), None)

    async def taps(self) -> tuple[TapReport, ...]:
        return tuple(self._taps[name] for name in sorted(self._taps))

    async def links(self, names: tuple[str, ...]) -> tuple[bool, ...]:
        return tuple(name in self.bridges | self.switches for name in names)

    async def hold(self, address: MasterAddress, for_s: int) -> None:
        if address.device not in self.devices:
            raise NodeFailure(
                f"This node has no network device {address.device} for the master's address; "
                "“gnt-cluster modify --master-netdev” names another.",
                device=address.device,
            )
        if address.ip in self.own:
            raise Conflict(
                f"{address.ip} is an address of this node itself, and cannot go with the "
                "mastership; take it away, or give the master another.",
                ip=address.ip,
            )
        until_s = asyncio.get_running_loop().time() + for_s
        self._held[address.ip] = address.device, until_s

    async def let_go(self, ip: str) -> None:
        self._held.pop(ip, None)

    async def holds(self, ip: str) -> str:
        device, until_s = self._held.get(ip, ("", 0.0))
        return device if until_s > asyncio.get_running_loop().time() else self.own.get(ip, "")

    def forget_addresses(self) -> None:
        """Lose what is held, as with the power."""
        self._held.clear()
