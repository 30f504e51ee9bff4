"""Which directories may hold disks, and whether a path keeps to them."""

import posixpath
from dataclasses import dataclass
from pathlib import Path

from common.errors import InvalidRequest
from common.model.backing import FileBacking, GlusterBacking
from common.noderpc.disks import DiskSpec
from noded.durable_file import read_if_there

SSCONF_FILE_DIRECTORY = "file_storage_dir"
SSCONF_SHARED_DIRECTORY = "shared_file_storage_dir"
SSCONF_GLUSTER_DIRECTORY = "gluster_storage_dir"


def path_of(disk: DiskSpec) -> str:
    """Return the path of a disk that is a file."""
    return as_file(disk.backing).path


def as_file(backing: object) -> FileBacking:
    """Return where a disk is that is a file; whoever keeps files is asked for no others."""
    if isinstance(backing, FileBacking):
        return backing
    raise InvalidRequest("This disk is kept in no file.")


@dataclass(frozen=True, slots=True)
class Directories:
    """Where the cluster keeps disk files; empty where that kind of storage is not in use."""

    local: str = ""
    shared: str = ""
    gluster: str = ""

    def of(self, backing: FileBacking) -> str:
        if isinstance(backing, GlusterBacking):
            return self.gluster
        return self.shared if backing.shared else self.local


def read_directories(ssconf: Path) -> Directories:
    """Read what the master published to this node; empty before the node has joined."""

    def read(name: str) -> str:
        return (read_if_there(f"{ssconf}/{name}") or b"").decode().strip()

    return Directories(
        local=read(SSCONF_FILE_DIRECTORY),
        shared=read(SSCONF_SHARED_DIRECTORY),
        gluster=read(SSCONF_GLUSTER_DIRECTORY),
    )


def check_listable(directory: str, allowed: Directories) -> None:
    """Refuse to list a directory that is not set aside for disks.

    Raises:
        InvalidRequest: names it.
    """
    if not directory or directory not in (allowed.local, allowed.shared, allowed.gluster):
        raise InvalidRequest(
            f"{directory!r} is no directory for disks on this node.", path=directory
        )


def locate(backing: FileBacking, allowed: Directories) -> tuple[str, tuple[str, ...]]:
    """Split a disk's path into the allowed directory and the names below it, at least one.

    Purely by its spelling; that no symbolic link leads astray is for whoever opens it.

    Raises:
        InvalidRequest: the path is not below the directory for this kind of disk.
    """
    root = allowed.of(backing)
    kind = _kind(backing)
    if not root:
        raise InvalidRequest(f"This cluster has no directory for {kind}.", path=backing.path)
    names = names_below(root, backing.path)
    if not names:
        raise InvalidRequest(
            f"{backing.path!r} is not below {root}, this cluster's directory for {kind}.",
            path=backing.path,
        )
    return root, names


def _kind(backing: FileBacking) -> str:
    if isinstance(backing, GlusterBacking):
        return "Gluster storage"
    return "shared file storage" if backing.shared else "file storage"


def names_below(root: str, path: str) -> tuple[str, ...]:
    """Return the names that lead from ``root`` to ``path``; empty if they do not, or cheat.

    Hidden names are not for disks: they are what disks are called while they are made.
    """
    root = posixpath.normpath(root)
    if path != posixpath.normpath(path) or not path.isprintable() or len(root) < 2:
        return ()
    if not root.startswith("/") or not path.startswith(root + "/"):
        return ()
    names = tuple(path[len(root) + 1 :].split("/"))
    return () if any(name.startswith(".") for name in names) else names
