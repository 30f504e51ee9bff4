"""Files of the master's that are to be the same on all nodes; what is in them is in no journal."""

from collections.abc import Iterator, Mapping, Sequence

from common.errors import GntError, NotFound
from common.model.node import Node
from common.names import NodeName
from common.noderpc.remote import Remote
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act


async def copy_file(cluster: Cluster, source: Node, path: str, nodes: Sequence[Node]) -> None:
    """Copy a file to other nodes. One that refuses, or does not answer, keeps no other from it.

    Raises:
        NotFound: the source has no such file.
        NodeFailure: it may not be read there.
    """
    file = await cluster.call(Remote, source).get(path=path)
    if file is None:
        raise NotFound(f"{source.name} has no {path} any more.", path=path)
    others = [node for node in nodes if node.uuid != source.uuid]
    told = await cluster.each({n.name: cluster.call(Remote, n).put(file=file) for n in others})
    log_failures(cluster, told, path)


def log_failures(cluster: Cluster, told: Mapping[NodeName, GntError | None], what: str) -> None:
    """Say which nodes have not got something."""
    for name, outcome in told.items():
        if isinstance(outcome, GntError):
            cluster.log(f"Node {name} has not got {what} anew: {outcome.message}")


def give_files(cluster: Cluster, node: Node, files: Sequence[str]) -> Iterator[Step]:
    """Give a node that has come, or come back, the files that all have; that it fails is told."""

    async def give() -> None:
        for path in files:
            try:
                await copy_file(cluster, cluster.config.master(), path, [node])
            except GntError as error:
                cluster.log(f"Node {node.name} has not got {path}: {error.message}")

    if files:
        yield act(f"copy files to {node.name}", give)
