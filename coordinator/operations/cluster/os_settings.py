"""What the cluster says of operating systems by their names: parameters, and which are listed."""

from enum import StrEnum
from typing import Any

from common.errors import InvalidRequest
from common.model.cluster import Cluster
from common.model.os_name import read_os_name
from common.model.parameters import edited_layers
from coordinator.operating_systems.parameters import edited


class OsListing(StrEnum):
    """What becomes of a name on a list."""

    ADD = "add"
    REMOVE = "remove"


def edited_hypervisor_parameters(
    present: Cluster, given: dict[str, dict[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return the hypervisor parameters by operating system, as they will be."""
    after = {
        name: edited_layers(present.os_hvp.get(name, {}), layers) for name, layers in given.items()
    }
    return _with_names(present.os_hvp, after)


def edited_os_parameters(present: Cluster, given: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the parameters of operating systems, as they will be."""
    after = {
        name: edited(present.osparams.get(name, {}), values, what=f"the parameters of {name}")
        for name, values in given.items()
    }
    return _with_names(present.osparams, after)


def edited_names(
    present: tuple[str, ...], changes: tuple[tuple[OsListing, str], ...]
) -> tuple[str, ...]:
    """Return a list of operating systems with names added and removed.

    Raises:
        InvalidRequest: a name has a variant.
    """
    names = set(present)
    for action, name in changes:
        if read_os_name(name).variant:
            raise InvalidRequest(f"“{name}” has a variant; name an operating system as a whole.")
        names = names | {name} if action is OsListing.ADD else names - {name}
    return tuple(sorted(names))


def _with_names(present: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Lay what names of operating systems have over what they had; empty ones are dropped."""
    for name in after:
        read_os_name(name)
    merged = present | after
    return {name: merged[name] for name in sorted(merged) if merged[name]}
