"""A node that comes back as a machine that knows nothing any more: same name, same UUID, new key.

From the moment its new key is recorded, nobody talks to the old certificate any more, and nobody
listens to it: nodes are dialled by key, and the list of who may give orders names keys.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest
from common.model.instance import Instance
from common.model.node import Node
from common.names import KeyId, NodeName
from common.noderpc.disks import Disks
from common.tls.certificate import read_pem
from coordinator.disks.missing import remedy
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.node.joining import certificate_for, join
from coordinator.operations.node.pool import change_node, promote
from coordinator.operations.node.revoking import allow_again, revoke
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Put, Update
from coordinator.state.state import State


def returning(config: Config, name: NodeName, now: float) -> Node:
    """Return the node as it will be when it is back: in service, and a candidate if there is room.

    Raises:
        NotFound: there is no such node.
        Conflict: it is the master.
    """
    node = config.node(name)
    if node.uuid == config.cluster.master:
        raise Conflict(
            f"Node {node.name} is the master, and so has not lost what it knows; move the "
            "mastership first, with “gnt-cluster master-failover” on another candidate.",
            node=node.name,
        )
    others = [each for each in config.candidates() if each.uuid != node.uuid]
    return replace(
        node,
        offline=False,
        drained=False,
        announced=False,
        master_candidate=node.master_capable and len(others) < config.cluster.candidate_pool_size,
        mtime=now,
        serial_no=node.serial_no + 1,
    )


def check_is_as_before(node: Node, given: Mapping[str, tuple[object, object]]) -> None:
    """Refuse to have a node come back as another one: that is changed before or afterwards.

    Args:
        node: as it is in the configuration.
        given: by its name what something was, and what the operator says of it; None: nothing.

    Raises:
        InvalidRequest: says what differs.
    """
    for name, (was, wanted) in given.items():
        if wanted not in (None, was):
            raise InvalidRequest(
                f"Node {node.name} comes back as it was, and its {name} was {was or 'not set'}, "
                f"not {wanted}; leave that out, and change it with “gnt-node modify”.",
                node=node.name,
            )


def come_back(cluster: Cluster, before: Node, after: Node, token: str) -> Iterator[Step]:
    """Have a machine be a node that there was before, and say what it lacks."""
    regular = replace(after, master_candidate=False)
    if before.master_candidate:
        # It has lost what it had on disk, so it must not be counted among those who have it.
        demoted = replace(before, master_candidate=False)
        yield change_node(before, demoted, f"count {before.name} among the candidates no more")
        yield tell_roster(cluster)
    yield _record_key(cluster, before, regular, token)
    yield from join(cluster, regular, token)
    if after.master_candidate:
        yield from promote(cluster, regular, after)
    yield _revoke(before)
    yield tell_roster(cluster, f"tell all nodes that the former certificate of {after.name} is out")
    yield act(f"look which disks are missing on {after.name}", lambda: _look(cluster, after))


def _record_key(cluster: Cluster, before: Node, regular: Node, token: str) -> Step:
    """Record the new key before the machine is told who it is, so that it can be found again."""
    learnt: list[KeyId] = []

    async def learn() -> None:
        learnt[:] = [read_pem(await certificate_for(cluster, regular, token)).key]

    def edit(state: State) -> list[Put]:
        return [Put(_as(state, regular, learnt[0], KeyId("")))]

    def unedit(state: State) -> list[Put]:
        return [Put(_as(state, before, before.key, before.next_key))]

    return Step(f"record the new key of {regular.name}", do=learn, edit=edit, unedit=unedit)


def _revoke(before: Node) -> Step:
    """Record that nobody is to answer who shows the certificate of before.

    A machine that has come with the same key as before keeps it.
    """
    former = (before.key, before.next_key)

    def edit(state: State) -> Iterator[Update]:
        present = state.config.nodes[before.uuid].key
        return revoke(state.config, *(key for key in former if key != present))

    return record(
        f"revoke the former certificate of {before.name}",
        edit,
        lambda state: allow_again(state.config, former),
    )


def _as(state: State, node: Node, key: KeyId, next_key: KeyId) -> Node:
    """Return the present record of a node, in the service that ``node`` is in, with these keys."""
    present = state.config.nodes[node.uuid]
    return replace(
        present,
        key=key,
        next_key=next_key,
        offline=node.offline,
        drained=node.drained,
        mtime=node.mtime,
        serial_no=present.serial_no + 1,
    )


async def _look(cluster: Cluster, node: Node) -> None:
    """Tell what of the node's disks is not there; what cannot be asked, verify tells."""
    config = cluster.config
    here = [i for i in config.made_instances if node.uuid in config.nodes_of(i)]
    for instance in here:
        try:
            missing = await _missing(cluster, instance, node)
        except GntError as error:
            cluster.log(f"Whether {node.name} has the disks of {instance.name} is open: {error}")
            continue
        for index in missing:
            cluster.log(
                f"Disk {index} of {instance.name} is missing on {node.name}; "
                f"{remedy(config, instance, node)}."
            )


async def _missing(cluster: Cluster, instance: Instance, node: Node) -> list[int]:
    config = cluster.config
    disks = tuple(disk_spec(config, instance, disk) for disk in config.disks_of(instance))
    found = await cluster.call(Disks, node).find(disks=disks)
    return [index for index, report in enumerate(found) if report is None]
