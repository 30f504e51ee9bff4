"""What a guest is told at its first boot: cloud-init's NoCloud data, from a script's environment.

Values are JSON, which is YAML as well, so nothing in them can become something else.

Source: cloud-init's documentation, “NoCloud” and “Networking config version 2”.
"""

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_interface
from typing import Any

LABEL = "CIDATA"
OF_FIRST_BOOT = (
    "user", "ssh_key", "password", "hostname", "user_data", "prefix", "prefix6", "gateway",
    "nameservers",
)  # fmt: skip
# Younger words for it, as routes to “default” or “::/0”, Debian 12's cloud-init does not take.
_GATEWAYS = {4: "gateway4", 6: "gateway6"}
_PREFIXES = {4: "24", 6: "64"}  # where nobody says otherwise
_SUFFIXES = {4: "", 6: "6"}  # of variables


class BadSetting(Exception):
    """Says which parameter makes no sense, and why."""


def seed_files(told: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of the seed.

    Args:
        told: the environment of a script: ``INSTANCE_…``, ``NIC_…`` and ``OSP_…``.

    Raises:
        BadSetting: an address is none.
    """
    host = told.get("OSP_HOSTNAME") or told["INSTANCE_NAME"]
    meta = {"instance-id": told["INSTANCE_UUID"], "local-hostname": host}
    user_data = told.get("OSP_USER_DATA") or f"#cloud-config\n{_json(_user_data(told))}"
    network = {"version": 2, "ethernets": dict(_nics(told))}
    return {
        "meta-data": _json(meta).encode(),
        "user-data": user_data.encode(),
        "network-config": _json(network).encode(),
    }


def _user_data(told: Mapping[str, str]) -> dict[str, Any]:
    keys = [line for line in told.get("OSP_SSH_KEY", "").splitlines() if line.strip()]
    password, name = told.get("OSP_PASSWORD", ""), told.get("OSP_USER", "")
    data: dict[str, Any] = {"preserve_hostname": False}
    if name:
        user: dict[str, Any] = {
            "name": name,
            "shell": "/bin/bash",
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "lock_passwd": not password,
        }
        data["users"] = [user | ({"ssh_authorized_keys": keys} if keys else {})]
    elif keys:
        data["ssh_authorized_keys"] = keys
    if password:
        secret = {"name": name, "password": password} if name else {}
        kind = {"type": "hash" if password.startswith("$") else "text"} if name else {}
        data["chpasswd"] = {"expire": False} | ({"users": [secret | kind]} if name else {})
        data |= {} if name else {"password": password}
        data["ssh_pwauth"] = True
    return data


def _nics(told: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield how each nic is configured: with its address, or as the network says."""
    for index in range(int(told.get("NIC_COUNT", "0"))):
        nic = {"match": {"macaddress": told[f"NIC_{index}_MAC"]}}
        address = told.get(f"NIC_{index}_IP", "")
        if not address:
            yield f"nic{index}", nic | {"dhcp4": True}
            continue
        suffix = _SUFFIXES[ip_address(_address(address, "ip")).version]
        own: dict[str, Any] = {"addresses": [_with_prefix(address, told, index)]}
        gateway = told.get(f"NIC_{index}_NETWORK_GATEWAY{suffix}", "")
        if gateway := gateway or (told.get("OSP_GATEWAY", "") if index == 0 else ""):
            via = _address(gateway, "gateway")
            own[_GATEWAYS[ip_address(via).version]] = via
        if servers := told.get("OSP_NAMESERVERS", "").replace(",", " ").split():
            own["nameservers"] = {"addresses": [_address(each, "nameservers") for each in servers]}
        yield f"nic{index}", nic | own


def _with_prefix(address: str, told: Mapping[str, str], index: int) -> str:
    version = ip_address(address).version
    suffix = _SUFFIXES[version]
    subnet = told.get(f"NIC_{index}_NETWORK_SUBNET{suffix}", "").partition("/")[2]
    length = subnet or told.get(f"OSP_PREFIX{suffix}", "") or _PREFIXES[version]
    try:
        return str(ip_interface(f"{address}/{length}"))
    except ValueError as error:
        raise BadSetting(f"prefix{suffix} cannot be “{length}”: {error}") from error


def _address(text: str, parameter: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise BadSetting(f"{parameter} cannot be “{text}”: it is no IP address") from error


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
