"""Working on the disks of an instance that is stopped, by a script of its operating system."""

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.instances import GuestSpec
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.second_copy import check_good_copy, find_cast
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.specs import present_guest
from coordinator.operations.steps.checks import (
    check_has_disks,
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.scripts import ScriptRun, subject_of


class ScriptPlan(Order, kw_only=True):
    """A script, and what has to be noted before it writes."""

    run: ScriptRun
    guest: GuestSpec
    lost: tuple[NodeRef, ...]  # whose copies fall behind


async def plan_script(
    cluster: Cluster,
    script: Script,
    before: Instance,
    after: Instance,
    *,
    may_be_unknown: bool = False,
) -> ScriptPlan:
    """Check that a script can work on an instance's disks, and plan it.

    Args:
        cluster: as the job sees it.
        script: which.
        before: the instance as it is.
        after: as it will be, which is what the script is told.
        may_be_unknown: the variant need not be one that the definition declares.

    Raises:
        Conflict: it runs, or may run elsewhere, or a copy of its disks is behind.
        NodeFailure: a node that is needed does not answer.
    """
    config = cluster.config
    check_has_disks(before)
    check_settled(cluster, before)
    node = config.nodes[before.primary_node]
    check_online(node)
    if may_run(await find_guest(cluster, before, node)):
        raise Conflict(
            f"Instance {before.name} runs; stop it first, with “gnt-instance shutdown "
            f"{before.name}”.",
            instance=before.name,
        )
    await check_not_elsewhere(cluster, before, node)
    guest = present_guest(config, before)
    cast = await find_cast(cluster, before, node, guest)
    check_good_copy(cluster, before, cast)
    kind = kind_of(before.disk_template)
    homes = tuple(config.nodes[uuid].ref for uuid in config.nodes_of(before))
    disks, nics = config.disks_of(before), config.nics_of(before)
    order = ScriptOrder(
        script=script,
        subject=subject_of(config, after, disks, nics, guest, homes),
        is_reinstallation=script is Script.CREATE,
        old_name=before.name if script is Script.RENAME else "",
        may_be_unknown=may_be_unknown,
    )
    attach, stays = kind.before_start(cast.nodes), before.has_active_disks
    run = ScriptRun(
        node=node.ref,
        order=order,
        # What the operator has had attached before stays so.
        attach=replace(attach, undo=()) if stays else attach,
        detach=Handover() if stays else kind.after_stop(cast.nodes),
        has_second_copy=not cast.lost,
    )
    return ScriptPlan(run=run, guest=guest, lost=cast.lost)
