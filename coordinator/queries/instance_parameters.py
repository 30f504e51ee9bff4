"""The fields ``be/…`` and ``hv/…``, made from the parameters that are declared."""

import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from common.messages import to_builtins
from common.model.hypervisors import HYPERVISORS
from common.model.parameters import Backend
from coordinator.queries.field import Field, Kind, Missing
from coordinator.queries.instance_row import InstanceRow

# Set for the cluster only, so they are no fields of an instance.
_GLOBAL = frozenset({"migration_bandwidth", "migration_mode", "migration_port"})

_TITLES = {  # those that differ from the name
    "be/auto_balance": "Auto_balance",
    "be/maxmem": "ConfigMaxMem",
    "be/minmem": "ConfigMinMem",
    "be/vcpus": "ConfigVCPUs",
    "hv/acpi": "ACPI",
    "hv/boot_order": "Boot_order",
    "hv/cdrom_image_path": "CDROM_image_path",
    "hv/cpu_type": "cpu_type",
    "hv/disk_type": "Disk_type",
    "hv/initrd_path": "Initrd_path",
    "hv/kernel_path": "Kernel_path",
    "hv/nic_type": "NIC_type",
    "hv/vnc_bind_address": "VNC_bind_address",
}
_SIZES = frozenset({"maxmem", "minmem"})


def kind_of(name: str, declared: Any) -> Kind:
    """Return how a parameter of this type is shown; text is OTHER, as it may be null."""
    if name in _SIZES:
        return Kind.UNIT
    kinds = {bool: Kind.BOOL, int: Kind.NUMBER, float: Kind.FLOAT}
    bounded = typing.get_origin(declared) is typing.Annotated
    return kinds.get(typing.get_args(declared)[0] if bounded else declared, Kind.OTHER)


def _backend(name: str) -> Callable[[InstanceRow], Any]:
    return lambda row: getattr(row.backend, name)


def _hypervisor(name: str) -> Callable[[InstanceRow], Any]:
    return lambda row: row.hypervisor.get(name, Missing.UNAVAILABLE)


def _merged_backend(row: InstanceRow) -> dict[str, Any]:
    merged: dict[str, Any] = to_builtins(row.backend)
    return merged | {"memory": row.backend.maxmem}  # what clients from before minmem read


def _fields() -> Iterator[Field[InstanceRow]]:
    memory = 'The "maxmem" backend parameter'
    yield Field("be/memory", "ConfigMaxMem", Kind.UNIT, memory, _backend("maxmem"))
    yield Field(
        "vcpus", "ConfigVCPUs", Kind.NUMBER, 'The "vcpus" backend parameter', _backend("vcpus")
    )
    for declared in msgspec.structs.fields(Backend):
        name, doc = f"be/{declared.name}", f'The "{declared.name}" backend parameter'
        kind = kind_of(declared.name, declared.type)
        yield Field(name, _TITLES.get(name, name), kind, doc, _backend(declared.name))
    parameters = {
        d.name: d.type for kind in HYPERVISORS.values() for d in msgspec.structs.fields(kind)
    }
    for parameter in sorted(parameters.keys() - _GLOBAL):
        name, doc = f"hv/{parameter}", f'The "{parameter}" hypervisor parameter'
        shown = kind_of(parameter, parameters[parameter])
        yield Field(name, _TITLES.get(name, name), shown, doc, _hypervisor(parameter))
    # fmt: off
    yield Field("beparams", "BackendParameters", Kind.OTHER, "Backend parameters (merged)",
                _merged_backend)
    yield Field("custom_beparams", "CustomBackendParameters", Kind.OTHER,
                "Custom backend parameters", lambda row: row.entity.beparams)
    yield Field("hvparams", "HypervisorParameters", Kind.OTHER, "Hypervisor parameters (merged)",
                lambda row: row.hypervisor)
    yield Field("custom_hvparams", "CustomHypervisorParameters", Kind.OTHER,
                "Custom hypervisor parameters", lambda row: row.entity.hvparams)
    # fmt: on


PARAMETER_FIELDS = tuple(_fields())
