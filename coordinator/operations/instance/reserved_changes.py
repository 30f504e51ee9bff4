"""Changing what is only reserved: its room, how long that is kept, and what is going to be made."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.durations import parse_duration
from common.errors import InvalidRequest
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.template import DiskTemplate
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.disk_changes import DiskChange
from coordinator.operations.instance.modification import Modification
from coordinator.operations.instance.reserve import reservation_of
from coordinator.operations.instance.reserved_disks import plan_reserved_disks
from coordinator.operations.steps.changes import differing

NEVER = "never"


async def plan_reserved(
    cluster: Cluster,
    before: Instance,
    after: Instance,
    nics: tuple[Nic, ...],
    *,
    expires: str | None,
    template: DiskTemplate | None,
    second: str | None,
    disks: Sequence[DiskChange],
) -> Modification:
    """Plan to change what is only reserved, and have others count with what it takes then.

    Args:
        cluster: as the job sees it.
        before: as it is.
        after: as it will be, but for its disks and for when it goes by itself.
        nics: as it will have them.
        expires: when it goes by itself; None: as it is.
        template: how its disks are going to be kept; None: as they are.
        second: the node for second copies, if that is to be another one.
        disks: changes of them, made afterwards.

    Raises:
        InvalidRequest, Conflict: it cannot have these, or nothing changes.
        NoCapacity: its nodes have not what it takes more.
        NodeFailure: one of them does not answer, and it takes more.
    """
    after = _with_expiry(after, expires, cluster.now())
    after, changed = await plan_reserved_disks(
        cluster, before, after, template, second, disks, nics
    )
    nics_before = cluster.config.nics_of(before)
    same = changed.before == changed.after
    if same and not differing(before, after) and nics == nics_before:
        raise InvalidRequest(f"Nothing to change on instance {before.name}.")
    return Modification(
        before=before,
        after=after,
        reserved=changed,
        nics_before=nics_before,
        nics_after=nics,
        now=cluster.now(),
    )


def _with_expiry(instance: Instance, expires: str | None, now: float) -> Instance:
    """Return a reserved instance that goes by itself after some time, or never."""
    if expires is None:
        return instance
    expires_at = 0.0 if expires == NEVER else now + parse_duration(expires)
    return replace(instance, reservation=replace(reservation_of(instance), expires_at=expires_at))
