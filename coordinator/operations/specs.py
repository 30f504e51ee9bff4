"""What a node is sent: objects of the configuration with every parameter filled.

Nodes know no defaults.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.disk import Disk
from common.model.hypervisors import HYPERVISORS, check_hypervisor, told
from common.model.instance import Instance
from common.model.network import told_of
from common.model.nic import Nic
from common.model.parameters import DEFAULT, Backend, Layer, NicParameters, filled, settled, sound
from common.names import MiB, NicId, NodeId, is_line
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.network import NicSpec, ToldOfNic
from common.units import parse_mib
from coordinator.disks.kinds import kind_of
from coordinator.disks.tpm import find_state
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.state.config import Config

_NUMBER = re.compile(r"-?[0-9]{1,18}")  # what is longer stays a text, and is refused as one


def backend(config: Config, instance: Instance, extra: Layer | None = None) -> Backend:
    """Return the ``beparams`` of an instance as others count with them; a bad one is left out."""
    return settled(Backend, config.cluster.beparams, instance.beparams, extra or {})


def read_backend(beparams: Layer) -> dict[str, Any]:
    """Read sizes and numbers, and let ``memory`` stand for both its bounds (Ganeti's old name).

    Raises:
        InvalidRequest: names what is no size.
    """
    rest = dict(beparams) | {
        key: _read_memory(key, beparams[key])
        for key in ("memory", "maxmem", "minmem")
        if beparams.get(key) not in (DEFAULT, None)
    }
    if "memory" in rest:
        memory = rest.pop("memory")
        rest |= {"maxmem": memory, "minmem": memory}
    numbers = {
        key: int(rest[key])
        for key in ("vcpus", "spindle_use")
        if _NUMBER.fullmatch(str(rest.get(key)))
    }
    return rest | numbers


def _read_memory(name: str, value: object) -> MiB:
    try:
        return parse_mib(str(value))
    except InvalidRequest as error:
        raise InvalidRequest(f"{name}: {error.message}", **error.detail) from error


def disk_spec(config: Config, instance: Instance, disk: Disk) -> DiskSpec:
    return kind_of(instance.disk_template).spec(config, instance, disk)


def nic_spec(config: Config, instance: Instance, nic: Nic, at: NodeId) -> NicSpec:
    """Return how a nic is plugged in on a node."""
    base, *layers = config.nic_layers(nic, at)
    what = f"the nic parameters of {instance.name}"
    parameters = filled(NicParameters, sound(NicParameters, base), *layers, what=what)
    return NicSpec(
        id=nic.uuid,
        instance=instance.uuid,
        mac=nic.mac,
        ip=nic.ip,
        mode=parameters.mode,
        link=parameters.link,
        vlan=parameters.vlan,
        guarded=parameters.guarded,
    )


def guest_spec(
    config: Config,
    instance: Instance,
    disks: Sequence[Disk],
    nics: Sequence[Nic],
    *,
    hvparams: Layer | None = None,
    beparams: Layer | None = None,
    at: NodeId | None = None,
) -> GuestSpec:
    """Return all that a node needs to run an instance.

    Args:
        config: for the cluster's defaults.
        instance: need not be in ``config`` yet.
        disks: of the instance, in order.
        nics: of the instance, in order.
        hvparams: for this start only, over the instance's own.
        beparams: likewise.
        at: the node where it is to run; None: its primary one.

    Raises:
        InvalidRequest: a parameter is unknown or does not fit.
    """
    memory = filled(
        Backend,
        sound(Backend, config.cluster.beparams),
        instance.beparams,
        beparams or {},
        what=f"the backend parameters of {instance.name}",
    )
    check_hypervisor(instance.hypervisor)
    kind = HYPERVISORS[instance.hypervisor]
    parameters = filled(
        kind,
        sound(kind, base_hvparams(config.cluster, instance.hypervisor, instance.os)),
        instance.hvparams,
        hvparams or {},
        what=f"the hypervisor parameters of {instance.name}",
    )
    layer = told(parameters)
    if state := find_state(kind.disk_of_tpm(layer), disks):
        layer = kind.with_disk_of_tpm(layer, state.uuid)  # a node knows disks by nothing else
    queues, here = kind.queues_of(layer), at or instance.primary_node
    return GuestSpec(
        id=instance.uuid,
        name=instance.name,
        hypervisor=instance.hypervisor,
        memory=memory.maxmem,
        vcpus=memory.vcpus,
        disks=tuple(disk_spec(config, instance, disk) for disk in disks),
        nics=tuple(replace(nic_spec(config, instance, nic, here), queues=queues) for nic in nics),
        parameters=layer,
        users=config.cluster.uid_pool if kind.has_user_of_pool(layer) else (),
        port=instance.network_port,
        tags=_plain(" ".join(sorted(instance.tags))),
        told_of_nics=dict(_told_of_nics(config, nics)),
    )


def present_guest(config: Config, instance: Instance, at: NodeId | None = None) -> GuestSpec:
    """Return the spec of an instance as it is in the configuration, to run on a node."""
    disks, nics = config.disks_of(instance), config.nics_of(instance)
    return guest_spec(config, instance, disks, nics, at=at)


def _told_of_nics(config: Config, nics: Sequence[Nic]) -> Iterator[tuple[NicId, ToldOfNic]]:
    """Yield what scripts are told of nics, where there is something."""
    for nic in nics:
        network = config.networks.get(nic.network)
        told = told_of(network) if network else {}
        plain = {variable: value for variable, value in told.items() if is_line(value)}
        if (name := _plain(nic.name)) or plain:
            yield nic.uuid, ToldOfNic(name=name, network=plain)


def _plain(text: str) -> str:
    """Return a text if a script can be told it, and nothing otherwise: half of it may mislead."""
    return text if is_line(text) else ""
