"""What each node told last when it was looked at, for lists to show when it is silent.

Nothing else may use it: that a guest ran two minutes ago proves nothing about now. It is taken of
whatever is heard, so it costs no question; and it is kept as it came, which takes the least
memory, and read when somebody asks for it.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from common.errors import GntError
from common.names import NodeId
from common.noderpc.facts import Facts, NodeFacts
from common.noderpc.instances import GuestReport, Instances
from common.rpc.declare import CallSpec
from common.rpc.envelope import open_answer
from common.rpc.server import Reply

T = TypeVar("T")

_FACTS, _GUESTS = Facts.calls["facts"], Instances.calls["guests"]
_KEPT = frozenset({_FACTS.name, _GUESTS.name})


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """``asked_s`` is when the question was sent, by the loop's clock: it is no older than that."""

    value: T
    asked_s: float


class Heard:
    """One answer of each kind a node, for one mastership."""

    def __init__(self) -> None:
        self._last: dict[tuple[NodeId, str], Told[bytes]] = {}

    def note(self, node: NodeId, call: CallSpec, asked_s: float, reply: Reply) -> None:
        """Keep what ``node`` answered, if it is a report and none younger is known."""
        if call.name not in _KEPT or reply.status != 200:
            return
        known = self._last.get((node, call.name))
        if known is None or known.asked_s <= asked_s:
            self._last[node, call.name] = Told(reply.body, asked_s)

    def keep_only(self, nodes: Container[str]) -> None:
        """Forget the nodes that are not among ``nodes``, UUIDs: they have left the cluster."""
        gone = [key for key in self._last if key[0] not in nodes]
        for key in gone:
            del self._last[key]

    def facts(self, node: NodeId) -> Told[NodeFacts] | None:
        """Return what a node told of itself; None if nothing is known that can be read."""
        return self._read(node, _FACTS)

    def guests(self, node: NodeId) -> Told[tuple[GuestReport, ...]] | None:
        """Return which guests a node had; None if nothing is known that can be read."""
        return self._read(node, _GUESTS)

    def _read(self, node: NodeId, call: CallSpec) -> Told[Any] | None:
        told = self._last.get((node, call.name))
        if told is None:
            return None
        try:
            value = open_answer(told.value, call.returns, what=f"the last answer to {call.name}")
        except GntError:
            return None
        return Told(value, told.asked_s)
