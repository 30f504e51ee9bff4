"""A cluster of which there is no more than placements look at."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from common.model.node import Node
from common.noderpc.facts import NodeFacts
from coordinator.locks.names import Owner
from coordinator.nodes.reports import Live, Reports
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.promises import Promise
from coordinator.operations.placement.shared import Placing
from coordinator.state.config import Config


class PlacingCluster:
    """As much of a cluster as placements look at."""

    owner = Owner("the job")

    def __init__(
        self, config: Config, live: Mapping[str, NodeFacts], answer: object = None, *, path: Path
    ) -> None:
        self.config, self.live, self.answer = config, live, answer
        self.placing = Placing(
            Reports(self._ask),
            Reports(self._ask),
            self._run,
            search_path=(None,) if answer is None else (path, None),
        )
        self.asked: list[dict[str, Any]] = []
        self.said: list[str] = []

    async def _ask(self, node: Node) -> NodeFacts:
        return self.live[node.name]

    async def _run(self, path: Path, options: Sequence[str], message: str) -> str:
        self.asked.append(json.loads(message)["request"])
        return json.dumps({"success": True, "info": "", "result": self.answer})

    async def facts_of(self, nodes: Iterable[Node], *, space: bool = True) -> Live:
        return await (self.placing.reports if space else self.placing.spaceless).of(nodes)

    def promise(self, *promises: Promise) -> None:
        self.placing.promises.make(self.owner, promises)

    def log(self, message: str, *, detail: bool = False) -> None:
        self.said.append(message)

    @property
    def promised(self) -> list[list[str]]:
        """The nodes that planned instances are promised."""
        return [
            [one.instance.primary_node, *one.disks[0].nodes[1:]]
            for promise in self.placing.promises.standing()
            if (one := promise.planned)
        ]


def cluster_of(
    config: Config,
    live: Mapping[str, NodeFacts],
    answer: object = None,
    path: Path = Path("/nowhere"),
) -> tuple[Cluster, PlacingCluster]:
    """Return the same cluster as jobs and as tests see it."""
    made = PlacingCluster(config, live, answer, path=path)
    return cast("Cluster", made), made
