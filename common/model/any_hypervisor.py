"""What the parameters of any hypervisor are asked; each answers by names of its own."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from common.messages import Order


class MigrationMode(StrEnum):
    LIVE = "live"
    NON_LIVE = "non-live"  # the guest stands still meanwhile


class HypervisorParameters(Order):
    """Parameters whose names nobody reads but their declaration and their driver.

    ``pinned`` names those that a running guest keeps when it moves, whatever is configured by then
    and whatever its target would choose; ``compared`` those that have to be as they were when it
    was started; ``newer`` those that nodes are not told of where they are empty, as an older one
    does not know them.

    Questions are asked of filled parameters as they are told and stored, and answered with “no”
    for a hypervisor that does not say otherwise.
    """

    pinned: ClassVar[frozenset[str]] = frozenset()
    compared: ClassVar[frozenset[str]] = frozenset()
    newer: ClassVar[frozenset[str]] = frozenset()

    @staticmethod
    def has_display(_: Mapping[str, Any], /) -> bool:
        """Tell whether a guest has a display that is offered at a TCP port."""
        return False

    @staticmethod
    def has_vnc(_: Mapping[str, Any], /) -> bool:
        """Tell whether it has one that is offered by VNC: Ganeti's clients reckon with its port."""
        return False

    @staticmethod
    def has_user_of_pool(_: Mapping[str, Any], /) -> bool:
        """Tell whether a guest is run by a user of the cluster's pool."""
        return False

    @staticmethod
    def queues_of(_: Mapping[str, Any], /) -> int:
        """Return how many queues each nic of a guest has."""
        return 1

    @staticmethod
    def is_moved_live(parameters: Mapping[str, Any], /) -> bool:
        """Tell whether a guest runs while it moves, if nobody says otherwise."""
        return parameters.get("migration_mode") != MigrationMode.NON_LIVE

    @staticmethod
    def is_moved_by_post_copy(_: Mapping[str, Any], /) -> bool:
        """Tell whether a guest moves before all its memory does."""
        return False

    @staticmethod
    def disk_of_tpm(_: Mapping[str, Any], /) -> str:
        """Return the name or UUID of the disk that keeps a TPM's state; "" if there is no TPM."""
        return ""

    @staticmethod
    def with_disk_of_tpm(parameters: Mapping[str, Any], _: str, /) -> dict[str, Any]:
        """Return parameters of a guest that has a TPM with another name for that disk."""
        return dict(parameters)
