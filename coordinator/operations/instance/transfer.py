"""Bringing a running guest from its node to another, and having it run on one of them only."""

from contextlib import suppress

from common.errors import Cancelled, GntError, NotFound, Unreachable
from common.messages import Order
from common.model.node import NodeRef
from common.names import InstanceId, TaskId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, Instances, Reception
from common.noderpc.tasks import Tasks
from coordinator.disks.holding import Handover
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.replacing import ReplacePlan
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import is_alive
from coordinator.operations.steps.disks import hold
from coordinator.operations.steps.retelling import Retelling

INSISTENCE_S, PAUSE_S = 60.0, 2.0  # with a node that does not answer in the middle


class MigratePlan(Order, kw_only=True):
    """``source`` and ``target`` are the same node when it is only settled where it is."""

    instance: InstanceId
    source: NodeRef
    target: NodeRef
    target_host: str
    guest: GuestSpec
    share: Handover = Handover()  # of its disks, for the time of the move
    leave: Handover  # of its disks to where it is then
    shells: tuple[NodeRef, ...]  # nodes to be cleared
    runs: bool = True  # on the source, at first
    resume: TaskId | None = None  # the move by which it has come to the source before
    live: bool = True  # else it stands still meanwhile
    post_copy: bool = False  # it may go on before all of its memory is there
    sends: NodeRef | None = None  # where a part of the memory is of a guest that runs elsewhere
    anew: ReplacePlan | None = None  # copies on a target that has none
    now: float


async def receive(cluster: Cluster, plan: MigratePlan) -> Reception:
    await hold(cluster, plan.guest, plan.share.do)
    target = cluster.call(Instances, plan.target)
    return await target.ensure_receiving(guest=plan.guest, move=_move_id(cluster))


async def clear_shell(cluster: Cluster, plan: MigratePlan) -> None:
    """Undo ``receive``."""
    await cluster.call(Instances, plan.target).ensure_no_shell(instance=plan.guest.id)
    await hold(cluster, plan.guest, plan.share.undo)


def _move_id(cluster: Cluster) -> TaskId:
    """Name this move, on both nodes: what they say of it is not taken for news of another."""
    return cluster.task_id("migration")


async def transfer(cluster: Cluster, plan: MigratePlan) -> None:
    """See the guest run on the target; its move goes on while noded is restarted on either node.

    Once it has left there is no way back: whatever is in the way then is tried again, too. Until
    its source says that it has not, and does not, a wish to cancel is no promise yet.

    Raises:
        Cancelled: the operator wished it, and the guest has not left and does not leave.
    """
    limit = cluster.steady() + INSISTENCE_S
    wish: Cancelled | None = None
    left, pause_s = False, 0.0
    why = Retelling(cluster)
    while True:
        try:
            await cluster.sleep(pause_s, heed_cancel=not (left or wish))
            if wish and not left and await _stays(cluster, plan):
                break
            if await _runs_on_target(cluster, plan):
                return None  # a predecessor has seen it through
            left = left or await _has_left(cluster, plan)
            if wish and not left:
                break  # it is nowhere: its source has lost it
            if not left:
                reception = await receive(cluster, plan)
                began = cluster.steady()
                try:
                    await _send(cluster, plan, reception)
                finally:  # patience is for what is in the way, however long the memory takes
                    limit += cluster.steady() - began
            left = True
            target = cluster.call(Instances, plan.target)
            return await target.ensure_resumed(instance=plan.guest.id, move=_move_id(cluster))
        except Cancelled as error:
            wish, pause_s = error, 0.0
        except GntError as error:
            # Either noded is away, or has forgotten its task; or it has left, or has to stay.
            passes = left or wish or isinstance(error, Unreachable | NotFound)
            if not passes or cluster.steady() >= limit:
                raise
            why.tell(error)
            pause_s = PAUSE_S
    raise wish


async def _stays(cluster: Cluster, plan: MigratePlan) -> bool:
    """Have the guest stay on the source, unless it has left or is not there; tell whether it does.

    Raises:
        GntError: that is not known.
    """
    await cluster.call(Tasks, plan.source).cancel(task=_move_id(cluster))
    found = await _find(cluster, plan.source, plan)
    if found is None or found.state is GuestState.MIGRATED:
        return False
    await cluster.call(Instances, plan.source).ensure_not_migrating(instance=plan.guest.id)
    return True


async def _send(cluster: Cluster, plan: MigratePlan, reception: Reception) -> None:
    """Return when the source says that the guest has left; it never runs there again."""
    task = _move_id(cluster)
    with suppress(Unreachable):  # it may have begun; whether it has, the next call tells
        await cluster.call(Instances, plan.source).begin_migration(
            instance=plan.guest.id,
            host=plan.target_host,
            peer=plan.target.name,
            port=reception.port,
            secret=reception.secret,
            parameters=plan.guest.parameters,
            live=plan.live,
            task=task,
        )
    try:
        await cluster.run_task(plan.source, task)
    except GntError:
        # The transfer may have ended well all the same, with only the news of it lost.
        if not await _has_left(cluster, plan):
            raise


async def stop_transfer(cluster: Cluster, plan: MigratePlan) -> None:
    # The task is cancelled even if nobody knows it: it may still be on its way.
    await cluster.call(Tasks, plan.source).cancel(task=_move_id(cluster))
    if await _find(cluster, plan.source, plan) is not None:
        await cluster.call(Instances, plan.source).ensure_not_migrating(instance=plan.guest.id)


async def _has_left(cluster: Cluster, plan: MigratePlan) -> bool:
    """Tell whether the source says that the guest has left by this move, and for good."""
    found = await _find(cluster, plan.source, plan)
    left = found is not None and found.state is GuestState.MIGRATED
    return left and found is not None and found.move == _move_id(cluster)


async def _runs_on_target(cluster: Cluster, plan: MigratePlan) -> bool:
    """Tell whether the guest runs on the target, as it does only when it was told to."""
    return is_alive(await _find(cluster, plan.target, plan))


async def _find(cluster: Cluster, node: NodeRef, plan: MigratePlan) -> GuestReport | None:
    guests = await cluster.call(Instances, node).guests()
    return next((guest for guest in guests if guest.id == plan.guest.id), None)


def clear_away(cluster: Cluster, plan: MigratePlan, node: NodeRef) -> Step:
    """Clear a shell away that is left on a node."""
    instances = cluster.call(Instances, node)
    return act(
        f"clear {plan.guest.name} away from {node}",
        lambda: instances.ensure_no_shell(instance=plan.guest.id),
    )
