"""Calls about the ssconf files: what every node, and every script on it, knows of the cluster."""

import asyncio
import contextlib
import hashlib
import shutil
from pathlib import Path

from common.errors import InvalidRequest
from common.model.storage_directory import DIRECTORIES
from common.noderpc.files import FileReport, Files
from noded.durable_file import explaining, read_if_there, sync_directory, write_durably
from noded.ganeti_paths import SWITCH, YES, GanetiPaths
from noded.system.threads import in_thread

# Names and forms are Ganeti's, without its prefix "ssconf_".
NAMES = frozenset({
    "cluster_name", "cluster_tags", "cluster_uuid", "enabled_user_shutdown",
    *DIRECTORIES, "hvparams_chroot", "hvparams_fake", "hvparams_kvm",
    "hvparams_lxc", "hvparams_xen-hvm", "hvparams_xen-pvm", "hypervisor_list",
    "instance_list", "maintain_node_health", "master_candidates", "master_candidates_certs",
    "master_candidates_ips", "master_ip", "master_netdev", "master_netmask", "master_node",
    "networks", "node_list", "node_primary_ips", "node_secondary_ips", "node_vm_capable",
    "nodegroups", "offline_nodes", "online_nodes", "primary_ip_family", "release_version",
    "ssh_ports", "uid_pool",
    SWITCH,  # is ours
})  # fmt: skip
LARGEST_BYTES = 131_072  # of one file, as in Ganeti


class FileHandlers(Files):
    """The files of one directory; a name is one of a fixed list, so no path is ever built."""

    def __init__(self, directory: Path, links: GanetiPaths) -> None:
        self._directory, self._links = directory, links
        self._writing = asyncio.Lock()

    async def publish(self, *, files: dict[str, str]) -> None:
        contents = {_checked(name): text.encode() for name, text in files.items()}
        for name, data in contents.items():
            if len(data) > LARGEST_BYTES:
                raise InvalidRequest(
                    f"The ssconf file {name} has {len(data)} bytes; {LARGEST_BYTES} are allowed.",
                    name=name,
                )
        async with self._writing:
            await in_thread(self._write, contents)

    async def digests(self, *, names: tuple[str, ...]) -> tuple[FileReport, ...]:
        paths = [f"{self._directory}/{_checked(name)}" for name in names]
        return await in_thread(lambda: tuple(FileReport(digest=_digest(path)) for path in paths))

    async def erase(self) -> None:
        """Delete all of them: the node leaves its cluster."""
        async with self._writing:
            await in_thread(self._remove)

    def _write(self, contents: dict[str, bytes]) -> None:
        with explaining(f"create {self._directory}"):
            self._directory.mkdir(parents=True, exist_ok=True)
            self._directory.chmod(0o755)  # whatever the umask: they are for everybody to read
        if contents.get(SWITCH, b"").strip() != YES.encode():
            switch = self._directory / SWITCH
            self._links.take_away()  # before nothing says any more that they were made by us
            with explaining(f"delete {switch}"):
                switch.unlink(missing_ok=True)
        # Most are as they were; each write would wait for the disk.
        paths = {self._directory / name: data for name, data in contents.items()}
        others = [path for path, data in paths.items() if read_if_there(path) != data]
        for path in others:
            write_durably(path, paths[path], mode=0o644)
        if not others:  # who wrote them may have ended, or failed, before their names were on disk
            with explaining(f"write {self._directory}"):
                sync_directory(self._directory)
        self._links.make()

    def _remove(self) -> None:
        self._links.take_away()
        with explaining(f"delete {self._directory}"), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)
            sync_directory(self._directory.parent)


def _checked(name: str) -> str:
    if name not in NAMES:
        raise InvalidRequest(f"“{name}” is no ssconf file.", name=name)
    return name


def _digest(path: str) -> str:
    data = read_if_there(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()
