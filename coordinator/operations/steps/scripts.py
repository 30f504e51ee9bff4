"""Running scripts of an instance's operating system, on the node that has its disks."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure, NotFound
from common.messages import Order, to_builtins
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.network import told_of
from common.model.nic import Nic
from common.model.node import NodeRef
from common.model.os_name import read_os_name
from common.noderpc.instances import GuestSpec
from common.noderpc.operating_systems import OperatingSystems, ScriptOrder, Subject
from coordinator.disks.holding import Handover, Hold
from coordinator.operating_systems.parameters import (
    private_parameters,
    public_parameters,
    read_parameters,
)
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.specs import backend
from coordinator.operations.step import Step, act
from coordinator.operations.steps.disks import hold_disks
from coordinator.operations.steps.patience import patiently
from coordinator.operations.steps.syncing import see_mirrored
from coordinator.state.config import Config

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 2.0
MOST_LINES = 300  # of its output in the job's log; its node keeps all

Confidential = dict[str, Any] | str
"""Parameters as an operation was given them; ``LOST`` when nobody knows them any more."""


class LostParameters(Conflict):
    """Nobody knows any more what is confidential and was given."""

    code = "conflict.lost-parameters"


class ScriptRun(Order, kw_only=True):
    """A script that is to be run: all but what is confidential."""

    node: NodeRef
    order: ScriptOrder
    attach: Handover
    detach: Handover
    has_second_copy: bool = True  # of what is written, where disks are mirrored


def subject_of(
    config: Config, instance: Instance, disks: tuple[Disk, ...], nics: tuple[Nic, ...],
    guest: GuestSpec, nodes: tuple[NodeRef, ...],
) -> Subject:  # fmt: skip
    """Return an instance, which need not be recorded yet, as scripts are told of it.

    Args:
        config: for the cluster's defaults.
        instance: with the operating system whose script is run.
        disks: its own.
        nics: its own.
        guest: for what its node is told of it.
        nodes: its primary node, and those that hold its disks, too.
    """
    primary, *others = nodes
    networks = [config.networks.get(nic.network) for nic in nics]
    return Subject(
        id=instance.uuid,
        name=instance.name,
        os=instance.os,
        primary_node=primary.name,
        secondary_nodes=tuple(node.name for node in others),
        ctime=instance.ctime,
        mtime=instance.mtime,
        hypervisor=instance.hypervisor,
        disks=guest.disks,
        disk_names=tuple(disk.name for disk in disks),
        nics=guest.nics,
        nic_names=tuple(nic.name for nic in nics),
        nic_networks=tuple(told_of(each) if each else {} for each in networks if any(networks)),
        hvparams=guest.parameters,
        beparams=to_builtins(backend(config, instance)),
    )


def check_not_blacklisted(config: Config, os: str) -> None:
    """Refuse what the cluster does not want to be installed."""
    name = read_os_name(os).definition
    if name in config.cluster.blacklisted_os:
        raise Conflict(
            f"The operating system {name} is blacklisted; “gnt-os modify --blacklisted=no {name}” "
            "lets it be installed.",
            os=name,
        )


def complete(
    cluster: Cluster, order: ScriptOrder, own: Mapping[str, Any], *given: Confidential
) -> ScriptOrder:
    """Return an order with all parameters, as it goes to a node and nowhere else.

    Args:
        cluster: whose parameters come first.
        order: what is run.
        own: public parameters of the instance.
        given: confidential ones, that come last.

    Raises:
        LostParameters: what was given is.
    """
    subject = order.subject
    confidential = private_parameters(cluster.state, subject.os, subject.id)
    for each in given:
        if isinstance(each, str):
            raise lost_parameters()
        confidential |= read_parameters(each, what="the confidential parameters")
    public = public_parameters(cluster.config.cluster, subject.os, own)
    return replace(
        order,
        parameters=public | confidential,
        confidential=tuple(sorted(confidential)),
        debug_level=cluster.debug_level,
    )


def lost_parameters() -> LostParameters:
    """Return what is said where confidential parameters were, which nobody knows any more."""
    return LostParameters(
        "Confidential parameters of the operating system were never stored, and the coordinator "
        "that was told them has ended. Give the command again."
    )


def run_script(
    cluster: Cluster, run: ScriptRun, title: str, full: Callable[[], ScriptOrder]
) -> Step:
    """Run a script to its end, its disks attached; undone, it is ended.

    ``full`` gives the order with what is confidential. Who resumes a job may not know that any
    more, and need not: only a script that is begun is told.
    """
    id, node = cluster.task_id("script"), run.node
    systems = cluster.call(OperatingSystems, node)

    async def begin() -> None:
        try:
            order = full()
        except LostParameters as lost:
            try:
                await systems.look(run=id, offset=0)
            except NotFound:
                raise lost from None
            return
        await hold_disks(cluster, order.subject.disks, run.attach.do)
        await systems.begin(run=id, order=order)

    async def do() -> None:
        await begin()
        await follow_script(cluster, node, id)
        for disk in run.order.subject.disks if run.has_second_copy else ():
            await see_mirrored(cluster, node, disk)

    return act(title, do, undo=lambda: _end(cluster, run, id, run.attach.undo))


def put_script_away(cluster: Cluster, run: ScriptRun) -> Step:
    """Let go of the disks of a script that has ended, and forget it.

    A step of its own: were the node to forget a script before it is noted that it has ended, it
    would be run again.
    """
    id = cluster.task_id("script")
    title = f"let go of what was installed on {run.node}"
    return act(title, lambda: patiently(cluster, lambda: _end(cluster, run, id, run.detach.do)))


async def _end(cluster: Cluster, run: ScriptRun, id: str, holds: tuple[Hold, ...]) -> None:
    await cluster.call(OperatingSystems, run.node).ensure_ended(run=id)
    await hold_disks(cluster, run.order.subject.disks, holds)


async def follow_script(cluster: Cluster, node: NodeRef, id: str) -> None:
    """Pass on what a script says, until it ends.

    Raises:
        Cancelled: the operator wished it.
        NodeFailure: it has failed.
    """
    offset, lines, pause_s = 0, 0, FIRST_PAUSE_S
    while True:
        systems = cluster.call(OperatingSystems, node)
        # `offset` is as it is at each turn: each look is awaited before the next.
        report = await patiently(cluster, lambda: systems.look(run=id, offset=offset))  # noqa: B023
        for line in report.text.splitlines():
            lines += 1
            if lines <= MOST_LINES:
                cluster.log(line)
            elif lines == MOST_LINES + 1:
                cluster.log(f"It says more; all of it is in {report.log} on {node}.")
        if report.problem:
            raise NodeFailure(
                f"{node}: {report.problem} All that it said is in {report.log} there.",
                log=report.log,
            )
        if report.has_ended:
            return
        offset = report.offset
        pause_s = FIRST_PAUSE_S if report.text else min(pause_s * 2, LONGEST_PAUSE_S)
        await cluster.sleep(pause_s)  # also while it speaks: the job may be cancelled
