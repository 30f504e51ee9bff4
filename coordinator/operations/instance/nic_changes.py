"""What becomes of an instance's nics when some are added, changed and removed."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order, from_builtins
from common.model.nic import Nic
from common.model.parameters import DEFAULT, edited
from common.names import InstanceName, NicId
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import MOST_NICS, NicRequest, check_macs, new_mac
from coordinator.operations.instance.which import find_device, place_for

NONE = "none"  # as a value: it has no address, or no name, any more

_PARAMETERS = {
    "mode": "mode",
    "link": "link",
    "bridge": "link",
    "vlan": "vlan",
    "guarded": "guarded",
}  # fmt: skip -- as asked for, and in ``nicparams``


class Action(StrEnum):
    ADD = "add"
    MODIFY = "modify"
    REMOVE = "remove"


class NicChange(Order, array_like=True):
    """One ``--net``, as Ganeti writes it: ``["add", -1, {"link": "br0"}]``.

    ``nic`` is a number from 0, -1 for the last one, a name or a UUID; a new one is put before the
    nic of that number.
    """

    action: Action
    nic: int | str
    values: dict[str, Any] = {}


def changed_nics(
    cluster: Cluster, name: InstanceName, present: Sequence[Nic], changes: Sequence[NicChange]
) -> tuple[Nic, ...]:
    """Return an instance's nics after some changes, one after the other.

    Raises:
        InvalidRequest: a change cannot be made.
        NotFound: there is no such nic.
        Conflict: a MAC address is taken.
    """
    nics = list(present)
    for change in changes:
        if change.action is Action.ADD:
            place = place_for(nics, change.nic, kind="nic", name=name)
            nics.insert(place, _added(cluster, change.values))
            continue
        index = find_device(nics, change.nic, kind="nic", name=name)
        if change.action is Action.MODIFY:
            nics[index] = _modified(cluster, nics[index], change.values)
        elif change.values:
            raise InvalidRequest(f"Nic {change.nic} is removed; nothing about it can be set.")
        else:
            del nics[index]
    if len(nics) > MOST_NICS:
        raise InvalidRequest(f"An instance has at most {MOST_NICS} nics; {name} would have more.")
    before = {nic.mac for nic in present}
    check_macs(cluster.config, (nic.mac for nic in nics if nic.mac not in before))
    return tuple(nics)


def _added(cluster: Cluster, values: dict[str, Any]) -> Nic:
    now, uuid = cluster.now(), NicId(cluster.new_uuid())
    nic = Nic(uuid=uuid, ctime=now, mtime=now, mac="")
    return _modified(cluster, nic, {"mac": "auto"} | values)


def _modified(cluster: Cluster, nic: Nic, values: dict[str, Any]) -> Nic:
    """Return a nic with other values; what is ``default`` comes from the cluster's parameters."""
    told = {
        key: "" if value in (NONE, None) else value
        for key, value in values.items()
        if value != DEFAULT
    }
    reset = {_PARAMETERS[key]: DEFAULT for key in values.keys() - told.keys() & _PARAMETERS.keys()}
    if stray := values.keys() - told.keys() - _PARAMETERS.keys():
        raise InvalidRequest(f"A nic has no default for {', '.join(sorted(stray))}.")
    request = from_builtins(told, NicRequest, what="what a nic is to be")
    changed = replace(nic, nicparams=edited(nic.nicparams, request.parameters() | reset))
    if "mac" in told:
        changed = replace(changed, mac=request.wanted_mac() or new_mac(cluster.config, nic.uuid))
    if "ip" in told:
        changed = replace(changed, ip=request.ip or "")
    return replace(changed, name=request.name) if "name" in told else changed
