"""What a node can be asked to do with its network."""

from abc import abstractmethod
from typing import Annotated

from msgspec import Meta

from common.messages import Order, Report
from common.names import InstanceId, Line, NicId, Word
from common.rpc.declare import NodeService, rpc


class NicSpec(Order, kw_only=True):
    """A guest's network card, filled."""

    id: NicId
    instance: InstanceId
    mac: str
    ip: str = ""
    mode: str  # bridged, routed, openvswitch
    link: str
    vlan: str = ""
    queues: Annotated[int, Meta(ge=1, le=8)] = (
        1  # how many of its processors the guest can have send and receive at once
    )
    guarded: bool = True  # the guest can send with this MAC, and this IP if there is one, only


NetworkVariable = Annotated[str, Meta(pattern=r"^NETWORK_[A-Z0-9_]{1,32}\Z")]


class ToldOfNic(Order, omit_defaults=True):
    """What a script for taps is told of a nic that the nic does not need itself.

    Attributes:
        name: of the nic; empty: it has none.
        network: what is told of the network that it is in, by Ganeti's variables.
    """

    name: Line = ""
    network: Annotated[dict[NetworkVariable, Line], Meta(max_length=32)] = {}


class TapReport(Report):
    """A tap device that this node made for a guest."""

    name: Word
    nic: NicId
    instance: InstanceId
    link: Word  # the bridge it is plugged into, or empty


class Network(NodeService, prefix="network"):
    """Taps and links of one node."""

    @rpc(timeout=20, safe_to_repeat=True, one_for_each="nics")
    @abstractmethod
    async def ensure_taps(self, *, nics: tuple[NicSpec, ...]) -> tuple[str, ...]:
        """Make a tap for each nic and plug it in; return their names, in the order asked.

        Raises:
            NodeFailure: the link does not exist, or the kernel refuses.
        """

    @rpc(timeout=20, safe_to_repeat=True)
    @abstractmethod
    async def remove_taps(self, *, nics: tuple[NicId, ...]) -> None:
        """Delete the taps of these nics; those that are not there are fine."""

    @rpc(timeout=10, safe_to_repeat=True, looks=True)
    @abstractmethod
    async def taps(self) -> tuple[TapReport, ...]:
        """Return all taps this node made for guests."""

    @rpc(timeout=10, safe_to_repeat=True, looks=True, one_for_each="names")
    @abstractmethod
    async def links(self, *, names: tuple[str, ...]) -> tuple[bool, ...]:
        """Tell for each name whether it is a bridge, or a switch, of this node."""
