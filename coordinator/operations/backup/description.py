"""What an export says of its instance: Ganeti's ``config.ini``, written and read."""

import configparser
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from common.errors import InvalidRequest
from common.messages import to_builtins
from common.model.disk import Disk
from common.model.hypervisors import HYPERVISORS
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.parameters import NicParameters, filled, settled, sound
from common.names import MiB, NodeName
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.operations.specs import backend
from coordinator.state.config import Config

VERSION = "0"
WHOLE_DISKS = "raw"  # what is in dumps; not said, as by Ganeti: what a script of its OS made of it
_NONE = ("", "None", "none")


class DescribedDisk(NamedTuple):
    dump: str
    size: MiB
    name: str


class Description(NamedTuple):
    """An instance as an export has it; parameters are texts, as they are written."""

    name: str
    os: str
    disk_template: str
    hypervisor: str
    tags: tuple[str, ...]
    disks: tuple[DescribedDisk, ...]
    nics: tuple[Mapping[str, str], ...]
    hvparams: Mapping[str, str]
    beparams: Mapping[str, str]
    osparams: Mapping[str, str]
    is_whole_disks: bool


def describe(
    config: Config,
    instance: Instance,
    disks: Sequence[Disk],
    nics: Sequence[Nic],
    *,
    source: NodeName,
    now: float,
    is_whole_disks: bool,
) -> str:
    """Write what an export says; the dump of a disk is named after it."""
    hypervisor = HYPERVISORS[instance.hypervisor]
    base = sound(hypervisor, base_hvparams(config.cluster, instance.hypervisor, instance.os))
    hvparams = to_builtins(settled(hypervisor, base, instance.hvparams))
    beparams = to_builtins(backend(config, instance))
    ini = _parser()
    ini["export"] = {
        "version": VERSION, "timestamp": str(int(now)), "source": source, "os": instance.os,
        "compression": "none", **({"format": WHOLE_DISKS} if is_whole_disks else {}),
    }  # fmt: skip
    ini["instance"] = {
        "name": instance.name,
        "maxmem": str(beparams["maxmem"]),
        "minmem": str(beparams["minmem"]),
        "memory": str(beparams["maxmem"]),
        "vcpus": str(beparams["vcpus"]),
        "disk_template": instance.disk_template,
        "hypervisor": instance.hypervisor,
        "tags": " ".join(instance.tags),
        **_nics(config, instance, nics),
        **_disks(disks),
    }
    ini["hypervisor"] = _texts(hvparams)
    ini["backend"] = _texts(beparams)
    ini["os"] = _texts(instance.osparams)
    text = io.StringIO()
    ini.write(text)
    return text.getvalue()


def read_description(text: str, export: str) -> Description:
    """Read what an export says, ours or Ganeti's.

    Raises:
        InvalidRequest: it does not say what is needed.
    """
    ini = _parser()
    try:
        ini.read_string(text)
        export_section, said = ini["export"], ini["instance"]
        disks = tuple(
            DescribedDisk(
                dump=said[f"disk{index}_dump"],
                size=MiB(int(said[f"disk{index}_size"])),
                name=_given(said.get(f"disk{index}_name", "")),
            )
            for index in _numbers(said, "disk", "size")
        )
        return Description(
            name=said["name"],
            os=_given(export_section.get("os", "")),
            disk_template=said["disk_template"],
            hypervisor=_given(said.get("hypervisor", "")),
            tags=tuple(said.get("tags", "").split()),
            disks=disks,
            nics=tuple(_nic(said, index) for index in _numbers(said, "nic", "mac")),
            hvparams=_section(ini, "hypervisor"),
            beparams=_section(ini, "backend"),
            osparams=_section(ini, "os"),
            is_whole_disks=export_section.get("format", "") == WHOLE_DISKS,
        )
    except (configparser.Error, KeyError, ValueError) as error:
        raise InvalidRequest(
            f"What the export {export} says of its instance cannot be read: {error}.",
            export=export,
        ) from error


def _parser() -> configparser.ConfigParser:
    return configparser.ConfigParser(interpolation=None, default_section="")


def _nics(config: Config, instance: Instance, nics: Sequence[Nic]) -> dict[str, str]:
    values = {"nic_count": str(len(nics))}
    for index, nic in enumerate(nics):
        base, *layers = config.nic_layers(nic, instance.primary_node)
        parameters = filled(NicParameters, sound(NicParameters, base), *layers, what="a nic")
        told = {"mac": nic.mac, "ip": nic.ip, "name": nic.name, "network": nic.network}
        told |= _texts({key: getattr(parameters, key) for key in ("mode", "link", "vlan")})
        values |= {f"nic{index}_{key}": value or "None" for key, value in told.items()}
    return values


def _disks(disks: Sequence[Disk]) -> dict[str, str]:
    values = {"disk_count": str(len(disks))}
    for index, disk in enumerate(disks):
        told = {"ivname": f"disk/{index}", "dump": disk.uuid, "size": str(disk.size)}
        told["name"] = disk.name or "None"
        values |= {f"disk{index}_{key}": value for key, value in told.items()}
    return values


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: "" if value is None else str(value) for key, value in values.items()}


def _numbers(said: Mapping[str, str], device: str, key: str) -> list[int]:
    """Return the numbers of devices, from 0 on."""
    numbers: list[int] = []
    while f"{device}{len(numbers)}_{key}" in said:
        numbers.append(len(numbers))
    return numbers


def _nic(said: Mapping[str, str], index: int) -> Mapping[str, str]:
    keys = ("mac", "ip", "name", "mode", "link", "vlan", "network")
    values = {key: _given(said.get(f"nic{index}_{key}", "")) for key in keys}
    return {key: value for key, value in values.items() if value}


def _section(ini: configparser.ConfigParser, name: str) -> Mapping[str, str]:
    """Return parameters, of which “none” is a word that some can be: a cache, a card."""
    said = ini[name].items() if name in ini else ()
    return {key: "" if text == "None" else text for key, text in said}


def _given(text: str) -> str:
    return "" if text in _NONE else text
