"""The files of an export in which disks are."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import DumpBacking
from common.model.disk import Disk
from common.model.node import NodeRef
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from common.noderpc.exports import ExportReport
from common.noderpc.instances import GuestSpec
from coordinator.disks.holding import Handover, none, sole
from coordinator.operations.backup.description import Description
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.copies import Side


def dump_on(cluster: Cluster, disk: DiskSpec, backing: DumpBacking, node: NodeRef) -> Side:
    """Return the dump of a disk as one side of a copy."""
    spec = DiskSpec(
        id=DiskId(cluster.new_uuid()), instance=disk.instance, size=disk.size, backing=backing
    )
    attach, detach = Handover(do=sole(node)), Handover(do=none(node))
    return Side(node=node, disk=spec, attach=attach, detach=detach, may_be_left=True)


def dumps_of(
    cluster: Cluster, report: ExportReport, was: Description, node: NodeRef, guest: GuestSpec
) -> list[Side]:
    """Return where the first disks of a new instance come from.

    Raises:
        InvalidRequest: one is missing, or there are more than the instance is to have disks.
    """
    if len(was.disks) > len(guest.disks):
        raise InvalidRequest(
            f"The export {report.name} has {len(was.disks)} disks, and {guest.name} is to have "
            f"{len(guest.disks)}."
        )
    for disk in was.disks:
        if disk.dump not in report.dumps:
            raise InvalidRequest(
                f"The export {report.name} lacks the file {disk.dump}, which it names."
            )
    return [
        dump_on(
            cluster,
            replace(spec, size=report.dumps[disk.dump]),
            DumpBacking(export=report.name, name=disk.dump, is_finished=True),
            node,
        )
        for disk, spec in zip(was.disks, guest.disks, strict=False)
    ]


def check_whole_disks(report: ExportReport, was: Description, disks: Sequence[Disk]) -> None:
    """Refuse dumps that are not what was on a disk as a whole, or do not fit onto the new one.

    Raises:
        InvalidRequest: see there.
    """
    for index, (told, disk) in enumerate(zip(was.disks, disks, strict=False)):
        size = report.dumps[told.dump]
        if not was.is_whole_disks and size != told.size:
            raise InvalidRequest(
                f"What is in the file {told.dump} of the export {report.name} was made by a script "
                f"of the instance's operating system, {was.os or 'which is not told'}: it is not "
                "as large as the disk was. To import it, its node needs that operating system, "
                "with a script “import”."
            )
        if disk.size < size:
            raise InvalidRequest(
                f"Disk {index} is to have {disk.size} MiB; the one in the export, {told.dump}, has "
                f"{size} MiB."
            )
