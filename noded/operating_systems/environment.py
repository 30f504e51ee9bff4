"""What a script of an operating system is told: Ganeti's variables, by name and form.

Source: ganeti-os-interface(7) of Ganeti 3.0; values that the page leaves open are as its node
daemon gives them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from common.model.os_name import read_os_name
from common.noderpc.network import NicSpec
from common.noderpc.operating_systems import Script, ScriptOrder, Subject
from noded.operating_systems.definition import WITH_PARAMETERS, WITH_VARIANTS, Definition

PATH = "/sbin:/bin:/usr/sbin:/usr/bin"
BRIDGED = "bridged"
_DEFAULT_FRONTEND = "paravirtual"


def environment(
    order: ScriptOrder, definition: Definition, paths: Sequence[tuple[str, str]]
) -> Mapping[str, str]:
    """Return the variables of one script, and nothing beside them.

    Args:
        order: what is run.
        definition: whose script it is.
        paths: where each disk is on this node, and what it is: “block” or “file:loop”.
    """
    subject, version = order.subject, definition.api_version
    told: dict[str, Any] = {
        "OS_API_VERSION": version,
        "OS_NAME": definition.name,
        "DEBUG_LEVEL": order.debug_level,
        "PATH": PATH,
        "INSTANCE_NAME": subject.name,
        "INSTANCE_OS": subject.os,
        "INSTANCE_UUID": subject.id,
        "INSTANCE_CTIME": subject.ctime,
        "INSTANCE_MTIME": subject.mtime,
        "INSTANCE_PRIMARY_NODE": subject.primary_node,
        "INSTANCE_SECONDARY_NODES": " ".join(subject.secondary_nodes),
        "HYPERVISOR": subject.hypervisor,
        "DISK_COUNT": len(subject.disks),
        "NIC_COUNT": len(subject.nics),
    }
    if version >= WITH_VARIANTS:
        told |= _since_variants(subject, definition)
    if version >= WITH_PARAMETERS:
        told |= {_variable(name): value for name, value in order.parameters.items()}
    told |= _disks(subject, paths)
    for index, nic in enumerate(subject.nics):
        name = subject.nic_names[index] if index < len(subject.nic_names) else ""
        told |= _nic(f"NIC_{index}_", nic, name, subject, version)
    for index, network in enumerate(subject.nic_networks):
        told |= {f"NIC_{index}_{name}": value for name, value in network.items()}
    return {name: str(value) for name, value in (told | _own(order, paths)).items()}


def _since_variants(subject: Subject, definition: Definition) -> dict[str, Any]:
    usual = definition.variants[0] if definition.variants else ""
    return {
        "OS_VARIANT": read_os_name(subject.os).variant or usual,
        "INSTANCE_HYPERVISOR": subject.hypervisor,
        **{f"INSTANCE_BE_{name}": _text(value) for name, value in subject.beparams.items()},
        **{f"INSTANCE_HV_{name}": _text(value) for name, value in subject.hvparams.items()},
    }


def _disks(subject: Subject, paths: Sequence[tuple[str, str]]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for index, (disk, (path, kind)) in enumerate(zip(subject.disks, paths, strict=True)):
        name = subject.disk_names[index] if index < len(subject.disk_names) else ""
        values = {
            "ACCESS": disk.mode,
            "PATH": path,
            "UUID": disk.id,
            "SIZE": disk.size,
            "FRONTEND_TYPE": subject.hvparams.get("disk_type") or _DEFAULT_FRONTEND,
            "BACKEND_TYPE": kind,
            **({"NAME": name} if name else {}),
        }
        told |= {f"DISK_{index}_{key}": value for key, value in values.items()}
    return told


def _nic(prefix: str, nic: NicSpec, name: str, subject: Subject, version: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        "MAC": nic.mac,
        "UUID": nic.id,
        "FRONTEND_TYPE": subject.hvparams.get("nic_type") or _DEFAULT_FRONTEND,
        **({"IP": nic.ip} if nic.ip else {}),
        **({"NAME": name} if name else {}),
        **({"BRIDGE": nic.link} if nic.mode == BRIDGED else {}),
    }
    if version >= WITH_VARIANTS:
        values |= {"MODE": nic.mode}
        values |= {"LINK": nic.link} if nic.link else {}
        values |= {"VLAN": nic.vlan} if nic.vlan else {}
    return {f"{prefix}{key}": value for key, value in values.items()}


def _own(order: ScriptOrder, paths: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return what only scripts of one kind are told."""
    match order.script:
        case Script.CREATE if order.is_reinstallation:
            return {"INSTANCE_REINSTALL": 1}
        case Script.RENAME:
            return {"OLD_INSTANCE_NAME": order.old_name}
        case Script.IMPORT | Script.EXPORT if order.disk is not None:
            kind, path = order.script.upper(), paths[order.disk][0]
            return {
                f"{kind}_DEVICE": path,
                f"{kind}_DISK_PATH": path,
                f"{kind}_INDEX": order.disk,
            }
        case _:
            return {}


def _variable(parameter: str) -> str:
    return f"OSP_{parameter.upper().replace('-', '_')}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)
