"""What is imported under another name is told its own by a script of its operating system."""

import dataclasses
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from common.errors import NodeFailure
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.operations.backup.by_script import has_script
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step
from coordinator.operations.steps.scripts import (
    LostParameters,
    ScriptRun,
    put_script_away,
    run_script,
)


async def plan_renaming(cluster: Cluster, run: ScriptRun, old_name: str) -> ScriptRun | None:
    """Return what makes the name of an instance known on its disks, which were another one's.

    Args:
        cluster: as the job sees it.
        run: the script that has made its disks.
        old_name: of whose disks they were.

    Returns:
        Nothing, if it has the same name, or its operating system has no script for that.
    """
    subject = run.order.subject
    if subject.name == old_name:
        return None
    if not await has_script(cluster, run.node, subject.os, Script.RENAME):
        return None
    order = replace(
        run.order, script=Script.RENAME, disk=None, old_name=old_name, may_be_unknown=True
    )
    return replace(run, order=order)


def rename_within(
    cluster: Cluster, run: ScriptRun, full: Callable[[], ScriptOrder]
) -> Iterator[Step]:
    """Run the script that renames what is on disks; what was brought there stays if it fails.

    So it does if nobody knows any more what is confidential.

    Source: as Ganeti 3.0 does, since a guest whose own name was changed cannot be renamed.
    """
    subject, old_name = run.order.subject, run.order.old_name
    title = f"rename {old_name} to {subject.name} on its disks"
    script = run_script(cluster, run, title, full)
    run_to_its_end = script.do
    assert run_to_its_end is not None

    async def do() -> None:
        try:
            await run_to_its_end()
        except (NodeFailure, LostParameters) as error:
            lost = "what is confidential for the script is not known any more."
            why = lost if isinstance(error, LostParameters) else error
            cluster.log(
                f"{subject.name} may have the name {old_name} on its disks still: {why} "
                f"“gnt-instance rename --no-script {subject.name} {old_name}”, and then "
                f"“gnt-instance rename {old_name} {subject.name}” while it is stopped, runs the "
                "script for that; or rename it within the guest."
            )

    yield dataclasses.replace(script, do=do)
    yield put_script_away(cluster, run)
