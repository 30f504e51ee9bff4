"""What nodes report of themselves, asked once for all who want to know at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from common.errors import GntError
from common.model.node import Node
from common.names import NodeId
from common.noderpc.facts import NodeFacts
from common.tasks import Background, unharmed
from coordinator.nodes.each import each

Ask = Callable[[Node], Awaitable[NodeFacts]]
Live = Mapping[NodeId, NodeFacts | GntError]


@dataclass(frozen=True, slots=True)
class _Asked:
    begun: float
    answer: asyncio.Task[NodeFacts | GntError]


class Reports:
    """Asks each node once at a time, however many jobs want its report.

    Whoever needs a report from now on, and finds a question under way that was asked before,
    waits for the next one together with all others who do.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._asked: dict[NodeId, _Asked] = {}
        self._questions = Background()

    async def of(self, nodes: Iterable[Node], *, max_age_s: float = 0.0) -> Live:
        """Return what nodes told, or why they did not, by UUID. Offline nodes are left out.

        Args:
            nodes: of the configuration.
            max_age_s: how long ago the question may have been asked; 0: not before this call.
        """
        since = asyncio.get_running_loop().time() - max_age_s
        return await each({node.uuid: self._of(node, since) for node in nodes if not node.offline})

    async def close(self) -> None:
        await self._questions.close()

    async def _of(self, node: Node, since: float) -> NodeFacts | GntError:
        while True:
            asked = self._asked.get(node.uuid)
            if asked is None or (asked.begun < since and asked.answer.done()):
                asked = self._begin(node)
            if asked.begun >= since:
                return await unharmed(asked.answer)
            await asyncio.wait([asked.answer])

    def _begin(self, node: Node) -> _Asked:
        question = self._questions.start(
            self._outcome(node), name=f"ask {node.name} what it has free"
        )
        asked = _Asked(asyncio.get_running_loop().time(), question)
        self._asked[node.uuid] = asked
        return asked

    async def _outcome(self, node: Node) -> NodeFacts | GntError:
        return (await each({node.uuid: self._ask(node)}))[node.uuid]
