"""How an export gets to a node of the cluster: as whole disks, or as scripts write them."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.messages import Order
from common.model.backing import DumpBacking
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.copies import Compression
from common.noderpc.exports import Exports
from coordinator.operations.backup.by_script import check_scripts, export_run, plan_scripts
from coordinator.operations.backup.description import describe
from coordinator.operations.backup.dumps import dump_on
from coordinator.operations.backup.export_plan import ExportPlan
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.copies import DiskCopy, Side
from coordinator.operations.steps.script_copies import ScriptCopy


class Way(Order):
    """``whole_disks``: whatever scripts there are; the rest is of what is sent."""

    whole_disks: bool
    compression: Compression
    rate: int


async def planned_to_node(
    cluster: Cluster,
    plan: ExportPlan,
    instance: Instance,
    sources: Sequence[Side],
    target: NodeRef,
    way: Way,
) -> ExportPlan:
    """Return the plan with what is read and written; ``sources`` have what is on its disks."""
    config, backing = cluster.config, DumpBacking(export=instance.name, name="")
    dumps = [
        dump_on(cluster, spec, replace(backing, name=spec.id), target) for spec in plan.guest.disks
    ]
    is_scripted = bool(sources) and not way.whole_disks
    scripted = await _by_script(cluster, plan, instance, sources, dumps, way) if is_scripted else ()
    return replace(
        plan,
        copies=() if scripted else _copies(sources, dumps, way),
        scripted=scripted,
        description=describe(
            config,
            instance,
            config.disks_of(instance),
            config.nics_of(instance),
            source=plan.node.name,
            now=cluster.now(),
            is_whole_disks=not scripted,
        ),
        replaces=instance.name in await cluster.call(Exports, target).exports(),
    )


def _copies(sources: Sequence[Side], dumps: Sequence[Side], way: Way) -> tuple[DiskCopy, ...]:
    return tuple(
        DiskCopy(
            index=index, source=source, target=dump, compression=way.compression, rate=way.rate
        )
        for index, (source, dump) in enumerate(zip(sources, dumps, strict=True))
    )


async def _by_script(
    cluster: Cluster,
    plan: ExportPlan,
    instance: Instance,
    sources: Sequence[Side],
    dumps: Sequence[Side],
    way: Way,
) -> tuple[ScriptCopy, ...]:
    """Return what a script of its operating system does; nothing if it has none that can."""
    run = export_run(cluster.config, instance, plan.guest, sources)
    osparams = dict(instance.osparams)
    scripted = await plan_scripts(
        cluster, run, osparams, dumps, compression=way.compression, rate=way.rate
    )
    if scripted and any(each.disk.backing.has_own_format for each in sources):
        cluster.log(
            f"The script “export” of {instance.os} takes a disk byte for byte, and {instance.name} "
            "has one in the format qcow2; all that is on its disks is kept, as with --whole-disks."
        )
        return ()
    await check_scripts(cluster, scripted)
    if scripted:
        cluster.log(
            f"What is kept of each disk is what the script “export” of {instance.os} writes; "
            "--whole-disks keeps all that is on them."
        )
    return scripted
