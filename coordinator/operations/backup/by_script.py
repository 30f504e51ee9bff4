"""Dumps that scripts of operating systems write, and make disks from: Ganeti's way of exporting.

Where an operating system has no such scripts, dumps are what is on disks as a whole.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.copies import Compression
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.operating_systems import OperatingSystems, Script, ScriptOrder
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.copies import Side
from coordinator.operations.steps.definitions import find_definition
from coordinator.operations.steps.script_copies import ScriptCopy
from coordinator.operations.steps.scripts import Confidential, ScriptRun, complete, subject_of
from coordinator.state.config import Config


async def plan_scripts(
    cluster: Cluster,
    run: ScriptRun,
    osparams: dict[str, Any],
    dumps: Sequence[Side],
    *,
    compression: Compression,
    rate: int,
) -> tuple[ScriptCopy, ...]:
    """Return what is done for the first disks of an instance, which have these dumps.

    Args:
        cluster: as the job sees it.
        run: the script, of no disk yet.
        osparams: those of the instance that anybody may see.
        dumps: where dumps are, or are going to be.
        compression: of what is sent.
        rate: of what is sent.

    Returns:
        Nothing, if the instance's operating system has no such script.
    """
    if not await has_script(cluster, run.node, run.order.subject.os, run.order.script):
        return ()
    return tuple(
        ScriptCopy(
            # It is there already, whatever its definition says of variants now.
            run=replace(run, order=replace(run.order, disk=index, may_be_unknown=True)),
            osparams=osparams,
            dump=dump,
            compression=compression,
            rate=rate,
        )
        for index, dump in enumerate(dumps)
    )


def export_run(
    config: Config, instance: Instance, guest: GuestSpec, sources: Sequence[Side]
) -> ScriptRun:
    """Return the script that exports what is on ``sources``, of no disk yet."""
    told = replace(guest, disks=tuple(source.disk for source in sources))
    homes = tuple(config.nodes[uuid].ref for uuid in config.nodes_of(instance))
    disks, nics = config.disks_of(instance), config.nics_of(instance)
    subject = subject_of(config, instance, disks, nics, told, homes)
    return ScriptRun(
        node=homes[0],
        order=ScriptOrder(script=Script.EXPORT, subject=subject),
        attach=sources[0].attach,
        detach=sources[0].detach,
    )


async def has_script(cluster: Cluster, node: NodeRef, os: str, script: Script) -> bool:
    """Tell whether a node can run a script of an operating system; what is amiss is logged."""
    if not os:
        return False
    found = await find_definition(cluster, node, os)
    if found is None:
        return False
    if found.problem:
        cluster.log(f"{node} cannot use the scripts of {found.name}: {found.problem}")
    return not found.problem and script in found.scripts


async def can_pass_on(
    cluster: Cluster, node: NodeRef, os: str, disks: Iterable[DiskSpec], script: Script
) -> bool:
    """Tell whether a script's stream can go to another cluster, or come from there, at once.

    Scripts that are not trusted wait for one another on each node: on two nodes they could do so
    for ever. Why one that is there is not run is logged.
    """
    if not await has_script(cluster, node, os, script):
        return False
    found = await find_definition(cluster, node, os)
    why = ""
    if found is None or not found.is_trusted:
        why = "scripts that are not trusted run one at a time on a node"
    elif not found.tells_endings:
        why = f"the noded of {node} is too old to tell how it ended; upgrade it"
    elif any(disk.backing.has_own_format for disk in disks):
        why = "it takes a disk byte for byte, and one is in the format qcow2"
    if why:
        cluster.log(f"Whole disks are sent, and the script “{script}” of {os} is not run: {why}.")
    return not why


def full_order(cluster: Cluster, copy: ScriptCopy, *given: Confidential) -> ScriptOrder:
    """Return the order of a script with all its parameters; ``given`` are confidential ones."""
    return complete(cluster, copy.run.order, copy.osparams, *given)


async def check_scripts(
    cluster: Cluster, copies: Sequence[ScriptCopy], *given: Confidential
) -> None:
    """Refuse what the node of the scripts would refuse.

    Raises:
        InvalidRequest, NodeFailure: see ``OperatingSystems.check``.
    """
    for copy in copies[:1]:  # of one definition, with the same parameters
        order = full_order(cluster, copy, *given)
        await cluster.call(OperatingSystems, copy.run.node).check(order=order)
