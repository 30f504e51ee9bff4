"""Tell the tags of an object."""

from common.messages import Order
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.tags.tagged import KindArgument, NameArgument
from coordinator.state.config import Config
from coordinator.state.tagged import find_tagged


class Tags(Order):
    of: tuple[str, ...]


@operation("OP_TAGS_GET")
class GetTags(Operation[None, Tags], kw_only=True):
    """Tell the tags of an object."""

    kind: KindArgument
    name: NameArgument = None

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it looks, and locks nothing
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> Tags:
        return Tags(of=find_tagged(cluster.config, self.kind, self.name).tags)

    def result(self, plan: Tags) -> list[str]:
        return sorted(plan.of)
