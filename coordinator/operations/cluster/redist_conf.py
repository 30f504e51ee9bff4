"""Have all nodes told again what they should know, and given the files that are the same on all."""

from collections.abc import Iterator, Mapping

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.names import NodeName
from common.noderpc.files import Files
from common.noderpc.remote import KeptFile, Remote
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
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
    files = ssconf_files(cluster.config)
    told = await cluster.each(
        {n.name: cluster.call(Files, n).publish(files=files) for n in plan.nodes}
    )
    _log_failures(cluster, told, "what it knows of the cluster")


def _copy(cluster: Cluster, plan: RedistPlan, path: str) -> Step:
    """Copy one file of the master; its contents are in no journal."""

    async def copy() -> None:
        file: KeptFile | None = await cluster.call(Remote, plan.source).get(path=path)
        if file is None:
            raise InvalidRequest(f"{plan.source.name} has no {path} any more.")
        others = [node for node in plan.nodes if node.uuid != plan.source.uuid]
        told = await cluster.each({n.name: cluster.call(Remote, n).put(file=file) for n in others})
        _log_failures(cluster, told, path)

    return act(f"copy {path} to all nodes", copy)


def _log_failures(cluster: Cluster, told: Mapping[NodeName, GntError | None], what: str) -> None:
    """A node that refuses, or does not answer, keeps no other from its copy."""
    for name, outcome in told.items():
        if isinstance(outcome, GntError):
            cluster.log(f"Node {name} has not got {what} anew: {outcome.message}")
