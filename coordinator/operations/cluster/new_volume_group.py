"""A volume group becomes the cluster's if all its nodes have it."""

from common.errors import GntError, InvalidRequest
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.noderpc.facts import Facts
from coordinator.operations.cluster_view import Cluster


async def check_volume_group(cluster: Cluster, name: str) -> None:
    """Refuse a volume group that a node has not got; one that does not answer is not waited for.

    Raises:
        InvalidRequest: names the nodes, and what is wrong there.
    """
    pool = Pool(kind=PoolKind.VOLUME_GROUP, name=name)
    nodes = [node for node in cluster.config.sorted_nodes() if node.vm_capable and not node.offline]
    told = await cluster.each(
        {node.uuid: cluster.call(Facts, node).facts(storage=(pool,)) for node in nodes}
    )
    problems = []
    for node in nodes:
        answer = told[node.uuid]
        if isinstance(answer, GntError):
            cluster.log(f"{node.name} cannot say whether it has {pool}: {answer.message}")
            continue
        problems += [f"{node.name}: {each.problem}" for each in answer.storage if not each.usable]
    if problems:
        raise InvalidRequest(f"Not all nodes have {pool}. {' '.join(problems)}")
