"""The steps by which an instance is stopped on one node, or dead there, and started on another."""

import dataclasses
from collections.abc import Iterator

from common.messages import Order
from common.model.node import NodeRef
from common.names import InstanceId
from common.noderpc.instances import GuestSpec, Instances
from coordinator.disks.holding import Handover
from coordinator.disks.mirrors import mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.anywhere import (
    Pairing,
    meet,
    part,
    prepare_target,
    start_there,
    start_there_in_sync,
)
from coordinator.operations.step import Edit, Step, act, record, saying
from coordinator.operations.steps.disks import detach_elsewhere
from coordinator.operations.steps.edits import note_copies, set_primary
from coordinator.operations.steps.guests import start_guest, stop_guest
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.one_copy import take_back
from coordinator.state.rows import Put
from coordinator.state.state import State


class FailoverPlan(Order, kw_only=True):
    instance: InstanceId
    source: NodeRef
    source_offline: bool
    target: NodeRef
    others: tuple[NodeRef, ...] = ()  # on which it might have been, too
    guest: GuestSpec
    detach: Handover  # from where it was
    attach: Handover  # to where it is going to be
    lost: tuple[NodeRef, ...] = ()  # whose copies of its disks fall behind
    declares: bool = False  # the target's copy good, whatever it lacks
    half_there: bool = False  # of its memory, on the target; it has ended where it ran
    pairing: Pairing | None = None  # where the target gets a copy that it has not
    was_running: bool
    start: bool
    wait_s: float
    now: float


def fail_over(cluster: Cluster, plan: FailoverPlan, *, waits: bool = False) -> Iterator[Step]:
    """Have it end where it was and start where it is going to be; undone, it runs where it was.

    One that ``waits`` does not start on the target before that has a copy of its own.
    """
    started: list[Step] = []  # by this coordinator, not by one before it
    if plan.pairing:
        yield from prepare_target(cluster, plan.pairing, plan.target)
    if not plan.source_offline:
        yield from _stop(cluster, plan, started)
    yield from detach_elsewhere(cluster, plan.guest, plan.others)
    clear = _clear_away(cluster, plan)
    if plan.pairing:
        yield clear
        yield from _start_with_new_copy(cluster, plan, plan.pairing, waits=waits)
        return
    # First of all: if the target dies from here on, it is noted that its copy is behind.
    yield record(
        f"record that {plan.guest.name} is on {plan.target}",
        set_primary(plan.instance, plan.target.uuid, plan.now),
        undo=_back_on_source(plan),
    )
    yield clear
    good = (plan.target,) if plan.declares else ()
    yield from fall_behind(plan.guest, plan.lost, plan.now, good=good)
    if plan.start:
        yield _noted(start_guest(cluster, plan.guest, plan.target, plan.attach), started)


def _stop(cluster: Cluster, plan: FailoverPlan, started: list[Step]) -> Iterator[Step]:
    """Stop it where it runs; undone, it is taken back, which depends on what was ``started``."""
    stopped: list[Step] = []

    async def back() -> None:
        await take_back(
            cluster,
            plan.guest,
            plan.source,
            plan.detach.undo,
            plan.target,
            is_untouched=bool(stopped) and not started,
        )

    stop, *let_go = stop_guest(
        cluster,
        plan.guest,
        plan.source,
        plan.detach,
        plan.now,
        wait_s=plan.wait_s,
        was_running=plan.was_running,
        take_back=None if plan.pairing else back,
    )
    yield _noted(stop, stopped)
    yield from let_go


def _clear_away(cluster: Cluster, plan: FailoverPlan) -> Step:
    instances = cluster.call(Instances, plan.target)
    # Half of the memory of what was lost with its other node is needed by nobody any more.
    clear = instances.ensure_gone if plan.half_there else instances.ensure_no_shell
    return act(
        f"clear away what is left of {plan.guest.name} on {plan.target}",
        lambda: clear(instance=plan.guest.id),
    )


def _start_with_new_copy(
    cluster: Cluster, plan: FailoverPlan, pairing: Pairing, *, waits: bool
) -> Iterator[Step]:
    """Start it on a target that gets a copy of its disks first, or while it runs there."""
    for step in (
        *part(cluster, pairing, plan.guest),
        meet(cluster, pairing, plan.target, plan.guest, waits=waits),
    ):
        yield step if plan.was_running else saying(step, _how_to_go_on(plan, pairing))
    follow = start_there_in_sync if waits else start_there
    yield from follow(cluster, pairing, plan.target, plan.guest, plan.now)


def _noted(step: Step, begun: list[Step]) -> Step:
    """Return a step that tells by ``begun`` that its action was begun."""

    async def do() -> None:
        begun.append(step)
        assert step.do
        await step.do()

    return dataclasses.replace(step, do=do)


def _how_to_go_on(plan: FailoverPlan, pairing: Pairing) -> str:
    name, again = plan.guest.name, f"gnt-instance failover -n {plan.target} {plan.guest.name}"
    return (
        f"{name} stays down: with {pairing.base} there, “{again}” starts it, unless that node has "
        f"lost its power: then bring {plan.source} back, too, or take what {pairing.base} has, "
        f"which may not be all, with “gnt-instance failover --ignore-consistency {name}”."
    )


def _back_on_source(plan: FailoverPlan) -> Edit:
    """Record that it stays where it was, which may have to go on without the target."""
    disks = mirrored(plan.guest) if plan.was_running else ()
    primary = set_primary(plan.instance, plan.source.uuid, plan.now)

    def edit(state: State) -> list[Put]:
        noted = state.config.disks
        good = tuple(d.id for d in disks if plan.source.uuid not in noted[d.id].behind)
        lagging = note_copies(good, plan.now, behind=(plan.target.uuid,))
        return [*primary(state), *lagging(state)]

    return edit
