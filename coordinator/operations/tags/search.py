"""Find tags in the whole cluster."""

from typing import Annotated

from common.messages import Order
from common.pattern import compile_pattern
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.state.config import Config
from coordinator.state.tagged import all_tagged


class Found(Order):
    tags: tuple[tuple[str, str], ...]  # path of the object, and the tag


@operation("OP_TAGS_SEARCH")
class SearchTags(Operation[None, Found], kw_only=True):
    """Find the tags that fit a regular expression, and whose they are."""

    pattern: Annotated[str, argument("regular expression, for a part of the tag")]

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it looks, and locks nothing
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> Found:
        fits = compile_pattern(self.pattern)
        every = ((path, tag) for path, item in all_tagged(cluster.config) for tag in item.tags)
        return Found(tags=tuple((path, tag) for path, tag in every if fits(tag)))

    def result(self, plan: Found) -> list[list[str]]:
        return [[path, tag] for path, tag in plan.tags]
