"""What becomes of an instance's nics when some are added, changed and removed."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order, from_builtins
from common.model.nic import Nic
from common.model.parameters import DEFAULT, edited
from common.names import InstanceName, NetworkId, NicId
from coordinator.operations.addresses import Addresses
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import AUTO, MOST_NICS, NicRequest, check_names, is_none
from coordinator.operations.instance.new_nic import with_addresses
from coordinator.operations.instance.which import find_device, place_for
from coordinator.operations.placement.numbers import free_addresses
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK

_PARAMETERS = {
    "mode": "mode",
    "link": "link",
    "bridge": "link",
    "vlan": "vlan",
    "guarded": "guarded",
}  # fmt: skip -- as asked for, and in ``nicparams``
_LINKS = ("link", "bridge")


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


def named_networks(config: Config, changes: Iterable[NicChange]) -> Iterator[NetworkId]:
    """Yield the networks that nics are to be in; of those that there are."""
    for change in changes:
        if network := config.find(NETWORK, str(change.values.get("network", ""))):
            yield network.uuid


def changed_nics(
    cluster: Cluster, name: InstanceName, present: Sequence[Nic], changes: Sequence[NicChange]
) -> tuple[Nic, ...]:
    """Return an instance's nics after some changes, one after the other.

    Raises:
        InvalidRequest: a change cannot be made.
        NotFound: there is no such nic.
        Conflict: a MAC address is taken.
    """
    nics, config, addresses = list(present), cluster.config, free_addresses(cluster)
    for change in changes:
        if change.action is Action.ADD:
            place = place_for(nics, change.nic, kind="nic", name=name)
            now = cluster.now()
            new = Nic(uuid=NicId(cluster.new_uuid()), ctime=now, mtime=now, mac="")
            asked = {"mac": AUTO} | change.values
            nics.insert(place, _modified(new, asked, addresses, config))
            continue
        index = find_device(nics, change.nic, kind="nic", name=name)
        if change.action is Action.MODIFY:
            addresses.release(nics[index])
            nics[index] = _modified(nics[index], change.values, addresses, config)
        elif change.values:
            raise InvalidRequest(f"Nic {change.nic} is removed; nothing about it can be set.")
        else:
            addresses.release(nics.pop(index))
    if len(nics) > MOST_NICS:
        raise InvalidRequest(f"An instance has at most {MOST_NICS} nics; {name} would have more.")
    check_names(nics, kind="nic", before=present)
    return tuple(nics)


def _modified(nic: Nic, values: dict[str, Any], addresses: Addresses, config: Config) -> Nic:
    """Return a nic with other values; what is ``default`` comes from the cluster's parameters."""
    told = {
        key: "" if value is None or is_none(value) else value
        for key, value in values.items()
        if not (value == DEFAULT or (value == AUTO and key in _LINKS))
    }
    reset = {_PARAMETERS[key]: DEFAULT for key in values.keys() - told.keys() & _PARAMETERS.keys()}
    if stray := values.keys() - told.keys() - _PARAMETERS.keys():
        raise InvalidRequest(f"A nic has no default for {', '.join(sorted(stray))}.")
    request = from_builtins(told, NicRequest, what="what a nic is to be")
    changed = replace(nic, nicparams=edited(nic.nicparams, request.parameters() | reset))
    changed = with_addresses(changed, request, told, addresses, config)
    return replace(changed, name=request.name) if "name" in told else changed
