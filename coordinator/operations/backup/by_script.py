"""Dumps that scripts of operating systems write, and make disks from: Ganeti's way of exporting.

Where an operating system has no such scripts, dumps are what is on disks as a whole.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from common.noderpc.copies import Compression
from common.noderpc.operating_systems import OperatingSystems, ScriptOrder
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.copies import Side
from coordinator.operations.steps.definitions import find_definition
from coordinator.operations.steps.script_copies import ScriptCopy
from coordinator.operations.steps.scripts import Confidential, ScriptRun, complete


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
    if not await _has_script(cluster, run):
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


async def _has_script(cluster: Cluster, run: ScriptRun) -> bool:
    os, script = run.order.subject.os, run.order.script
    if not os:
        return False
    found = await find_definition(cluster, run.node, os)
    if found is None:
        return False
    if found.problem:
        cluster.log(f"{run.node} cannot use the scripts of {found.name}: {found.problem}")
    return not found.problem and script in found.scripts


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
