"""Calls about the ssconf files: what every node, and every script on it, knows of the cluster."""

import asyncio
import contextlib
import hashlib
import shutil
from pathlib import Path

from common.errors import InvalidRequest
from common.noderpc.files import FileReport, Files
from noded.durable_file import explaining, sync_directory, write_durably
from noded.ganeti_paths import SWITCH, YES, GanetiPaths
from noded.system.threads import in_thread

# Names and forms are Ganeti's, without its prefix "ssconf_".
NAMES = frozenset({
    "cluster_name", "cluster_tags", "cluster_uuid", "enabled_user_shutdown",
    "file_storage_dir", "gluster_storage_dir", "hvparams_chroot", "hvparams_fake",
    "hvparams_kvm", "hvparams_lxc", "hvparams_xen-hvm", "hvparams_xen-pvm", "hypervisor_list",
    "instance_list", "maintain_node_health", "master_candidates", "master_candidates_certs",
    "master_candidates_ips", "master_ip", "master_netdev", "master_netmask", "master_node",
    "networks", "node_list", "node_primary_ips", "node_secondary_ips", "node_vm_capable",
    "nodegroups", "offline_nodes", "online_nodes", "primary_ip_family", "release_version",
    "shared_file_storage_dir", "ssh_ports", "uid_pool",
    SWITCH,  # is ours
})  # fmt: skip
LARGEST_BYTES = 131_072  # of one file, as in Ganeti


class FileHandlers(Files):
    """The files of one directory; a name is one of a fixed list, so no path is ever built."""

    def __init__(self, directory: Path, links: GanetiPaths) -> None:
        self._directory, self._links = directory, links
        self._writing = asyncio.Lock()

    async def publish(self, *, files: dict[str, str]) -> None:
        contents = {self._path(name): text.encode() for name, text in files.items()}
        for path, data in contents.items():
            if len(data) > LARGEST_BYTES:
                raise InvalidRequest(
                    f"The ssconf file {path.name} has {len(data)} bytes; "
                    f"{LARGEST_BYTES} are allowed.",
                    name=path.name,
                )
        async with self._writing:
            await in_thread(self._write, contents)

    async def digests(self, *, names: tuple[str, ...]) -> tuple[FileReport, ...]:
        paths = [self._path(name) for name in names]
        return await in_thread(lambda: tuple(FileReport(digest=_digest(path)) for path in paths))

    async def erase(self) -> None:
        """Delete all of them: the node leaves its cluster."""
        async with self._writing:
            await in_thread(self._remove)

    def _path(self, name: str) -> Path:
        if name not in NAMES:
            raise InvalidRequest(f"“{name}” is no ssconf file.", name=name)
        return self._directory / name

    def _write(self, contents: dict[Path, bytes]) -> None:
        with explaining(f"create {self._directory}"):
            self._directory.mkdir(parents=True, exist_ok=True)
            self._directory.chmod(0o755)  # whatever the umask: they are for everybody to read
        switch = self._directory / SWITCH
        if contents.get(switch, b"").strip() != YES.encode():
            self._links.take_away()  # before nothing says any more that they were made by us
            with explaining(f"delete {switch}"):
                switch.unlink(missing_ok=True)
        for path, data in contents.items():
            # Most are as they were; each write would wait for the disk.
            if _read(path) != data:
                write_durably(path, data, mode=0o644)
        self._links.make()

    def _remove(self) -> None:
        self._links.take_away()
        with explaining(f"delete {self._directory}"), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)
            sync_directory(self._directory.parent)


def _read(path: Path) -> bytes | None:
    with explaining(f"read {path}"):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def _digest(path: Path) -> str:
    data = _read(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()
