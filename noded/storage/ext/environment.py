"""What a provider's script is told: Ganeti's variables, by name and form.

Source: ganeti-extstorage-interface(7), and ``_ExtStorageEnvironment`` of Ganeti 3.0, for what the
page leaves open.
"""

from collections.abc import Mapping

from common.model.backing import ExtBacking
from common.names import MiB
from common.noderpc.disks import DiskSpec


def environment(
    disk: DiskSpec,
    volume: ExtBacking,
    *,
    size: MiB | None = None,
    new_size: MiB | None = None,
    metadata: str | None = None,
    exclusive: bool | None = None,
    snapshot: ExtBacking | None = None,
) -> Mapping[str, str]:
    """Return the variables of one script.

    Args:
        disk: whose volume it is.
        volume: what it is called, where.
        size: for create and grow: as it is, or is to be.
        new_size: for grow.
        metadata: for setinfo.
        exclusive: for open: no other node has it open.
        snapshot: for snapshot: what keeps the volume, which has ``size``; a volume itself.
    """
    told = {
        "VOL_NAME": volume.name,
        "VOL_UUID": disk.id,
        "VOL_SIZE": None if snapshot else size,
        "VOL_NEW_SIZE": new_size,
        "VOL_METADATA": metadata,
        "VOL_OPEN_EXCLUSIVE": exclusive,
        "VOL_SNAPSHOT_NAME": snapshot.name if snapshot else None,
        "VOL_SNAPSHOT_SIZE": size if snapshot else None,
    }
    given = {name: str(value) for name, value in told.items() if value is not None}
    return {f"EXTP_{name.upper()}": value for name, value in volume.parameters.items()} | given
