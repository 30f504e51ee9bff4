"""What an operator sets of the cluster as a whole, checked.

The cluster's record holds fields of the same names, of looser types: a state that has a bad value
can be read, told of, and repaired.
"""

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from common.addresses import check_reachable_ip
from common.errors import InvalidRequest
from common.messages import Order, from_builtins
from common.model.hypervisors import check_hypervisor
from common.model.storage_directory import DIRECTORIES
from common.model.template import DiskTemplate
from common.model.uid_pool import UidPool, with_uids

_VOLUME_GROUP = re.compile(r"[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}")  # Source: lvm(8)
_DEVICE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")  # Source: dev_valid_name of Linux, without slashes
_MAC_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")


class Settings(Order, omit_defaults=True):
    """Those that are given; None stands for one that is not."""

    candidate_pool_size: Annotated[int, Meta(ge=1, le=2**10)] | None = None
    max_running_jobs: Annotated[int, Meta(ge=1, le=2**16)] | None = None
    distributed_files: tuple[Annotated[str, Meta(max_length=1024)], ...] | None = None
    mac_prefix: str | None = None
    master_ip: str | None = None
    master_netdev: str | None = None
    master_netmask: Annotated[int, Meta(ge=1, le=128)] | None = None
    enabled_hypervisors: tuple[str, ...] | None = None
    enabled_disk_templates: tuple[DiskTemplate, ...] | None = None
    uid_pool: UidPool | None = None
    volume_group_name: str | None = None
    file_storage_dir: str | None = None
    shared_file_storage_dir: str | None = None
    gluster_storage_dir: str | None = None
    maintain_node_health: bool | None = None
    enabled_user_shutdown: bool | None = None

    def __post_init__(self) -> None:
        if self.mac_prefix is not None:
            _check_mac_prefix(self.mac_prefix)
        if self.master_ip:
            _check_master_ip(self.master_ip)
        if self.master_netdev and not _DEVICE.fullmatch(self.master_netdev):
            raise ValueError(f"“{self.master_netdev}” is no name of a network device")
        for name in self.enabled_hypervisors or ():
            try:
                check_hypervisor(name)
            except InvalidRequest as error:
                raise ValueError(error.message.rstrip(".")) from error
        for field in ("enabled_hypervisors", "enabled_disk_templates"):
            values = getattr(self, field)
            if values is not None and (not values or len(set(values)) < len(values)):
                raise ValueError(f"{field} names at least one, and each once")
        with_uids(self.uid_pool or (), ())
        if self.volume_group_name and not _VOLUME_GROUP.fullmatch(self.volume_group_name):
            raise ValueError(f"“{self.volume_group_name}” is no name of a volume group")
        for field in DIRECTORIES:
            path = getattr(self, field)
            if path and (not path.startswith("/") or ".." in path.split("/") or "\0" in path):
                raise ValueError(f"{field} is a directory's path from /, not “{path}”")
        _check_files(self.distributed_files or ())

    def given(self) -> dict[str, Any]:
        """Return those that are given, by the names of the cluster's fields."""
        return {
            field: value
            for field in self.__struct_fields__
            if (value := getattr(self, field)) is not None
        }


def read_settings(values: dict[str, Any]) -> Settings:
    """Check settings that are about to be stored.

    Raises:
        InvalidRequest: names the one that does not fit.
    """
    return from_builtins(values, Settings, what="the cluster's parameters")


def bad_settings(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and what is wrong of each stored setting that does not fit."""
    for field in Settings.__struct_fields__:
        try:
            read_settings({field: msgspec.to_builtins(values[field])})
        except InvalidRequest as error:
            yield field, error.message


def _check_mac_prefix(prefix: str) -> None:
    if not _MAC_PREFIX.fullmatch(prefix.lower()):
        raise ValueError(
            f"“{prefix}” is no beginning of MAC addresses: three bytes, as in aa:00:00"
        )
    if int(prefix[:2], 16) & 1:
        raise ValueError(f"addresses that begin with “{prefix}” are of groups of machines")


def _check_master_ip(ip: str) -> None:
    try:
        check_reachable_ip(ip, "the address of the master")
    except InvalidRequest as error:
        raise ValueError(error.message.rstrip(".")) from error


def _check_files(paths: tuple[str, ...]) -> None:
    for path in paths:
        if not path.startswith("/") or normpath(path) != path or "\0" in path:
            raise ValueError(f"a file's path is a plain one from /, not “{path}”")
    if len(set(paths)) < len(paths):
        raise ValueError("distributed_files names each file once")
