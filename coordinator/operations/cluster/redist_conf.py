"""Have all nodes told again what they should know, and given the files that are the same on all."""

from collections.abc import Iterator

from common.errors import InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.noderpc.files import Files
from common.noderpc.remote import Remote
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.node.distribution import copy_file, log_failures
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.operations.step import Step, act
from coordinator.state.config import Config


class RedistPlan(Order):
    source: Node  # the master by then: another one, who goes on with this, may have other files
    nodes: tuple[Node, ...]  # in service
    files: tuple[str, ...]


@operation("OP_CLUSTER_REDIST_CONF")
class RedistConf(Operation[None, RedistPlan], kw_only=True):
    """Have all nodes learn again what they know of the cluster, and copy files to them.

    The former happens by itself whenever something changes. The files are those of the master
    that “gnt-cluster modify --distributed-files” names.
    """

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes=[node.uuid for node in config.sorted_nodes()])

    async def prepare(self, cluster: Cluster, _: None) -> RedistPlan:
        config = cluster.config
        files = config.cluster.distributed_files
        for path in files:
            if await cluster.call(Remote, config.master()).get(path=path) is None:
                raise InvalidRequest(
                    f"The master {config.master().name} has no {path}, which is to be the same on "
                    "all nodes; “gnt-cluster modify --distributed-files” names others."
                )
        nodes = tuple(node for node in config.sorted_nodes() if not node.offline)
        return RedistPlan(source=config.master(), nodes=nodes, files=files)

    def recipe(self, cluster: Cluster, plan: RedistPlan) -> Iterator[Step]:
        yield tell_roster(cluster)
        yield act("tell all nodes about the cluster", lambda: _publish(cluster, plan))
        for path in plan.files:
            yield _copy(cluster, plan, path)


async def _publish(cluster: Cluster, plan: RedistPlan) -> None:
    files: dict[str, str] = {}
    # What changed meanwhile was told to nodes, too, and perhaps before this.
    while (newest := ssconf_files(cluster.config)) != files:
        files = newest
        told = await cluster.each(
            {n.name: cluster.call(Files, n).publish(files=files) for n in plan.nodes}
        )
        log_failures(cluster, told, "what it knows of the cluster")


def _copy(cluster: Cluster, plan: RedistPlan, path: str) -> Step:
    return act(
        f"copy {path} to all nodes", lambda: copy_file(cluster, plan.source, path, plan.nodes)
    )
