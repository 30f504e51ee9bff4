"""The rest of a guest's memory, which follows when it has moved by post-copy.

Half of its memory is on either node: neither may be cleared away, and when the line between them
breaks, the guest waits until they are given another. If one of them dies, so does the guest.
"""

from enum import Enum, auto

from common.errors import GntError, NodeFailure
from common.model.node import NodeRef
from common.names import InstanceName, TaskId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, Instances, Rest
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.whereabouts import lost
from coordinator.operations.steps.retelling import Retelling

INSISTENCE_S = 60.0  # with a line that is cut again and again, or a node that does not answer
LOOK_EVERY_S = 1.0


class Course(Enum):
    """How the rest of a guest's memory goes."""

    OVER = auto()  # the guest has all, or is not there any more
    COMES = auto()
    CUT = auto()  # the line has to be mended
    HANGS = auto()  # the guest does not answer, and no cut line says why; or was not told to run
    LOST = auto()  # the guest lacks what is nowhere any more


def course_of(there: GuestReport | None, here: GuestReport | None) -> Course:
    """Conclude that from what the node where it is tells of it, and the one that it has left."""
    if there is None or there.state in (GuestState.STOPPED, GuestState.MIGRATED):
        return Course.OVER
    sends = here.rest if here and here.state is GuestState.MIGRATED else Rest.NONE
    if there.state is GuestState.INCOMING:
        return Course.HANGS if sends else Course.LOST
    if there.state is GuestState.UNKNOWN and not (there.rest and sends is Rest.CUT):
        # While its source sends, it may just be slow; if the line is dead, that finds out, too.
        return Course.HANGS
    match there.rest, sends:
        case Rest.NONE, _:
            return Course.OVER
        case Rest.COMES, Rest.COMES | Rest.NONE:  # the latter in its last moment
            return Course.COMES
        case Rest.CUT, Rest.NONE:
            return Course.LOST
        case _:
            return Course.CUT


async def see_rest_come(
    cluster: Cluster, guest: GuestSpec, *, source: NodeRef, target: NodeRef
) -> None:
    """See all memory of a guest come to ``target``, then end what is left of it on ``source``.

    It is not cancelled: there is no way back. What it fails with leaves both halves where they are.

    Raises:
        Conflict: a part of its memory is nowhere any more.
        NodeFailure: the line could not be mended, or a node does not answer.
    """
    limit = cluster.steady() + INSISTENCE_S
    why = Retelling(cluster)
    while True:
        try:
            course = await _look_and_mend(cluster, guest, source=source, target=target)
        except GntError as error:
            if cluster.steady() >= limit:
                raise _waits(guest.name, source, target, error) from error
            why.tell(error)
        else:
            if course is Course.OVER:
                return
            if course is Course.LOST:
                raise lost(guest.name, source.name, target.name)
            if course is Course.COMES:
                limit = cluster.steady() + INSISTENCE_S
            elif cluster.steady() >= limit:
                broken = NodeFailure("Each line between the two that it is given breaks.")
                raise _waits(guest.name, source, target, broken)
        await cluster.sleep(LOOK_EVERY_S, heed_cancel=False)


async def _look_and_mend(
    cluster: Cluster, guest: GuestSpec, *, source: NodeRef, target: NodeRef
) -> Course:
    there = await _find(cluster, guest, target)
    here = await _find(cluster, guest, source)
    course = course_of(there, here)
    if course is Course.HANGS:
        raise NodeFailure(f"{guest.name} does not answer on {target}.", node=target.name)
    if course is Course.CUT and there:
        await _mend(cluster, guest, TaskId(there.move), source=source, target=target)
        cluster.log(f"The rest of the memory of {guest.name} has another line.")
    if course is Course.OVER and here and here.state is GuestState.MIGRATED:
        await cluster.call(Instances, source).ensure_gone(instance=guest.id)
    return course


async def _find(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> GuestReport | None:
    guests = await cluster.call(Instances, node).guests()
    return next((each for each in guests if each.id == guest.id), None)


async def _mend(
    cluster: Cluster, guest: GuestSpec, move: TaskId, *, source: NodeRef, target: NodeRef
) -> None:
    reception = await cluster.call(Instances, target).await_rest(instance=guest.id, move=move)
    node = cluster.config.nodes[target.uuid]
    await cluster.call(Instances, source).send_rest(
        instance=guest.id,
        host=node.secondary_ip or node.primary_ip,
        port=reception.port,
        secret=reception.secret,
        move=move,
    )


def _waits(name: InstanceName, source: NodeRef, target: NodeRef, why: GntError) -> NodeFailure:
    return NodeFailure(
        f"A part of the memory of {name} is on {source} still, and does not get to {target}, where "
        f"it runs and waits for it: {why} Neither of its two processes may be ended. “gnt-instance "
        f"migrate --cleanup {name}” tries again; if {source} or {target} is dead, mark it offline "
        "first.",
        instance=name,
    )
