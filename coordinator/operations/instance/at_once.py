"""Whether a guest that runs is told of other devices, or has them at its next start."""

from collections.abc import Mapping
from enum import StrEnum

from common.errors import Conflict
from common.model.instance import Instance
from common.names import DiskId, NicId
from common.noderpc.instances import GuestReport
from coordinator.operations.steps.checks import is_alive


class AtOnce(StrEnum):
    NO = "no"
    IF_POSSIBLE = "if possible"
    YES = "yes"

    @classmethod
    def of(cls, *, must: bool, may: bool) -> "AtOnce":
        return cls.YES if must else cls.IF_POSSIBLE if may else cls.NO


def is_told(
    instance: Instance,
    found: GuestReport | None,
    at_once: AtOnce,
    known: Mapping[DiskId, int] | Mapping[NicId, int] | None,
    *,
    what: str,
) -> bool:
    """Tell whether a guest is told of its devices.

    Args:
        instance: whose.
        found: its guest, if there is one.
        at_once: what the operator wants.
        known: the slots of its devices; None if they are not known.
        what: they are, as "disks".

    Raises:
        Conflict: it would have to be, and cannot.
    """
    if found is None or not is_alive(found) or at_once is AtOnce.NO:
        return False
    if known is None and at_once is AtOnce.YES:
        raise Conflict(
            f"Which {what} {instance.name} has is not known, since an older version has started "
            "it: leave --hotplug out, and the change takes effect when it is next started.",
            instance=instance.name,
        )
    return known is not None
