"""A network that exists in memory only."""

from common.errors import NodeFailure
from common.names import NicId
from common.noderpc.network import NicSpec, TapReport
from noded.network.interface import NetworkDriver
from noded.network.naming import check_nic, tap_name


class FakeNetwork(NetworkDriver):
    """``bridges`` is for scenarios to change."""

    def __init__(self, *bridges: str) -> None:
        self.bridges = set(bridges)
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

    async def ensure_taps(self, nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
        await self.check(nics)
        for nic in nics:
            name = tap_name(nic.id)
            self._taps[name] = TapReport(
                name=name,
                nic=nic.id,
                instance=nic.instance,
                link=nic.link if nic.mode == "bridged" else "",
            )
        return tuple(tap_name(nic.id) for nic in nics)

    async def remove_taps(self, nics: tuple[NicId, ...]) -> None:
        for nic in nics:
            self._taps.pop(tap_name(nic), None)

    async def taps(self) -> tuple[TapReport, ...]:
        return tuple(self._taps[name] for name in sorted(self._taps))

    async def links(self, names: tuple[str, ...]) -> tuple[bool, ...]:
        return tuple(name in self.bridges for name in names)
