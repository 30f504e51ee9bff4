"""What an export says of its instance, in the words of an order for a new one."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from common.errors import InvalidRequest
from common.messages import Order, from_builtins, to_builtins
from common.model.hypervisors import HYPERVISORS
from common.model.parameters import Layer, settled, sound
from common.model.template import DiskTemplate
from common.names import InstanceName
from coordinator.operations.backup.description import Description
from coordinator.operations.devices import POOL, DiskRequest, NicRequest
from coordinator.state.config import Config
from coordinator.state.kinds import NETWORK


def template_of(was: Description) -> DiskTemplate:
    """Return how its disks were kept.

    Raises:
        InvalidRequest: in a way that is not known here.
    """
    try:
        return DiskTemplate(was.disk_template)
    except ValueError as error:
        raise InvalidRequest(
            f"The export does not say how disks were kept (“{was.disk_template}”); say how they "
            "shall be, with -t."
        ) from error


def disks_of(was: Description) -> tuple[DiskRequest, ...]:
    """Return the disks of an instance, as large as they were."""
    names = without_twins(disk.name for disk in was.disks)
    return tuple(
        DiskRequest(size=disk.size, name=name) for disk, name in zip(was.disks, names, strict=True)
    )


def nics_of(config: Config, was: Description, name: InstanceName) -> tuple[NicRequest, ...]:
    """Return the nics of an instance that has this ``name`` from now on."""
    names = without_twins(nic.get("name", "") for nic in was.nics)
    nics = ({**nic, "name": own} for nic, own in zip(was.nics, names, strict=True))
    return tuple(_nic(config, nic, keep=was.name == name) for nic in nics)


def without_twins(names: Iterable[str]) -> list[str]:
    """Return names without those that have come before, which an older version let in."""
    told = list(names)
    return ["" if name in told[:index] else name for index, name in enumerate(told)]


def _nic(config: Config, values: Mapping[str, str], *, keep: bool) -> NicRequest:
    """Return a nic as it was; another instance gets other addresses.

    A network that is not there any more, or that is another cluster's, is left out.
    """
    own = {key: value for key, value in values.items() if key != "mac" or keep}
    network = config.find(NETWORK, own.pop("network", ""))
    if network:  # which says how its nics are plugged in
        own = {key: value for key, value in own.items() if key not in ("mode", "link", "vlan")}
        own["network"] = network.uuid
        if "ip" in own and not keep:
            own["ip"] = POOL
    return from_builtins(own, NicRequest, what="a nic of the export")


def hvparams_of(config: Config, hypervisor: str, was: Description) -> dict[str, Any]:
    """Return its own hypervisor parameters, where it keeps its hypervisor."""
    if hypervisor not in HYPERVISORS or was.hypervisor != hypervisor:
        return {}
    return own_parameters(
        HYPERVISORS[hypervisor], was.hvparams, config.cluster.hvparams.get(hypervisor, {})
    )


def own_parameters(kind: type[Order], said: Mapping[str, str], ours: Layer) -> dict[str, Any]:
    """Return the parameters that are known here and differ from the cluster's."""
    base = sound(kind, ours)
    usual, own = to_builtins(settled(kind, base)), {}
    for field in msgspec.structs.fields(kind):
        text = said.get(field.name)
        if text is None:
            continue
        with suppress(msgspec.ValidationError):  # what it meant there means nothing here
            value = to_builtins(msgspec.convert(text, field.type, strict=False))
            if value != usual[field.name]:
                own[field.name] = value
    fitting = to_builtins(settled(kind, base, own))
    return {name: value for name, value in own.items() if fitting[name] == value}
