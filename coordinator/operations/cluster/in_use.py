"""What instances have stays the cluster's: hypervisors, disk templates, and pools of disks."""

from collections.abc import Iterator
from typing import Any

from common.errors import Conflict
from common.model.disk import Disk
from coordinator.disks.kinds import pools_of
from coordinator.state.config import Config


def check_enabled(config: Config, after: dict[str, Any]) -> None:
    """Refuse to do without a hypervisor or a disk template that an instance has.

    Args:
        config: as it is.
        after: the fields of the cluster's record that change.

    Raises:
        Conflict: names the instance.
    """
    for field, trait in (
        ("enabled_hypervisors", "hypervisor"),
        ("enabled_disk_templates", "disk_template"),
    ):
        given = after.get(field)
        lost = () if given is None else set(getattr(config.cluster, field)) - set(given)
        for instance in config.sorted_instances() if lost else ():
            if getattr(instance, trait) in lost:
                raise Conflict(
                    f"Instance {instance.name} has the {trait.replace('_', ' ')} "
                    f"{getattr(instance, trait)}; it has to stay enabled.",
                    instance=instance.name,
                )


def check_pools(config: Config, after: Config) -> None:
    """Refuse to give up a pool that disks are in: nodes would take them for none of theirs.

    Raises:
        Conflict: names such a disk.
    """
    # A volume group that disks name themselves stays known by them.
    lost = set(pools_of(config)) - set(pools_of(after))
    for whose, disk in _disks(config) if lost else ():
        for pool in lost:
            if disk.takes(pool):
                raise Conflict(
                    f"{whose} is in {pool}; it has to stay the cluster's.", disk=disk.uuid
                )


def _disks(config: Config) -> Iterator[tuple[str, Disk]]:
    """Yield all disks, each with whose it is in words."""
    for instance in config.sorted_instances():
        for disk in config.disks_of(instance):
            yield f"A disk of {instance.name}", disk
    for disk in config.detached_disks():
        yield f"The disk {disk.uuid}, which belongs to no instance,", disk
