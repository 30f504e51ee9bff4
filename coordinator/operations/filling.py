"""What a node is sent: objects of the configuration with every parameter filled.

Nodes know no defaults.
"""

from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest
from common.messages import to_builtins
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.parameters import Backend, Layer, NicParameters, filled, hypervisor_parameters
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.network import NicSpec
from common.units import parse_mib
from coordinator.disks.kinds import kind_of
from coordinator.state.config import Config


def backend(config: Config, instance: Instance, extra: Layer | None = None) -> Backend:
    """Return the filled ``beparams`` of an instance."""
    layers = (config.cluster.beparams, instance.beparams, extra or {})
    return filled(Backend, *layers, what=f"the backend parameters of {instance.name}")


def check_backend(backend: Backend) -> None:
    """Refuse numbers that no machine can have.

    Raises:
        InvalidRequest: names the parameter.
    """
    if backend.vcpus < 1:
        raise InvalidRequest(f"vcpus is the number of processors, at least 1, not {backend.vcpus}.")
    if backend.minmem < 1:
        raise InvalidRequest(f"minmem is the least memory, at least 1 MiB, not {backend.minmem}.")
    if backend.minmem > backend.maxmem:
        raise InvalidRequest(
            f"minmem, {backend.minmem} MiB, is more than maxmem, {backend.maxmem} MiB."
        )
    if backend.spindle_use < 0:
        raise InvalidRequest(f"spindle_use is a number of disks, not {backend.spindle_use}.")


def read_backend(beparams: Layer) -> dict[str, Any]:
    """Read sizes and numbers, and let ``memory`` stand for both its bounds (Ganeti's old name)."""
    rest = {key: value for key, value in beparams.items() if key != "memory"}
    if "memory" in beparams:
        rest |= {"maxmem": beparams["memory"], "minmem": beparams["memory"]}
    sizes = {key: parse_mib(str(rest[key])) for key in ("maxmem", "minmem") if key in rest}
    numbers = {
        key: int(rest[key])
        for key in ("vcpus", "spindle_use")
        if str(rest.get(key, "")).removeprefix("-").isdecimal()
    }
    return rest | sizes | numbers


def disk_spec(instance: Instance, disk: Disk) -> DiskSpec:
    return kind_of(instance.disk_template).spec(instance, disk)


def nic_spec(config: Config, instance: Instance, nic: Nic) -> NicSpec:
    layers = (config.cluster.nicparams, nic.nicparams)
    parameters = filled(NicParameters, *layers, what=f"the nic parameters of {instance.name}")
    return NicSpec(
        id=nic.uuid, instance=instance.uuid, mac=nic.mac, ip=nic.ip,
        mode=parameters.mode, link=parameters.link, vlan=parameters.vlan,
        guarded=parameters.guarded,
    )  # fmt: skip


def guest_spec(
    config: Config,
    instance: Instance,
    disks: Sequence[Disk],
    nics: Sequence[Nic],
    *,
    hvparams: Layer | None = None,
    beparams: Layer | None = None,
) -> GuestSpec:
    """Return all that a node needs to run an instance.

    Args:
        config: for the cluster's defaults.
        instance: need not be in ``config`` yet.
        disks: of the instance, in order.
        nics: of the instance, in order.
        hvparams: for this start only, over the instance's own.
        beparams: likewise.

    Raises:
        InvalidRequest: a parameter is unknown or does not fit.
    """
    memory = backend(config, instance, beparams)
    check_backend(memory)
    parameters = hypervisor_parameters(
        instance.hypervisor,
        config.cluster.hvparams.get(instance.hypervisor, {}),
        instance.hvparams,
        hvparams or {},
        what=f"the hypervisor parameters of {instance.name}",
    )
    return GuestSpec(
        id=instance.uuid,
        name=instance.name,
        hypervisor=instance.hypervisor,
        memory=memory.maxmem,
        vcpus=memory.vcpus,
        disks=tuple(disk_spec(instance, disk) for disk in disks),
        nics=tuple(nic_spec(config, instance, nic) for nic in nics),
        parameters=to_builtins(parameters),
    )


def present_guest(config: Config, instance: Instance) -> GuestSpec:
    """Return the spec of an instance as it is in the configuration."""
    return guest_spec(config, instance, config.disks_of(instance), config.nics_of(instance))
