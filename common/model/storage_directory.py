"""Directories that may hold disks: none of those that hold the system."""

from collections.abc import Iterator
from posixpath import normpath

from common.model.cluster import Cluster

# Source: Ganeti's, which refuses the same.
_SYSTEMS_OWN = frozenset({
    "/boot", "/dev", "/etc", "/home", "/proc", "/root", "/sys",
    *(
        f"{prefix}/{name}"
        for prefix in ("", "/usr", "/usr/local")
        for name in ("bin", "lib", "lib32", "lib64", "sbin")
    ),
})  # fmt: skip

DIRECTORIES = ("file_storage_dir", "shared_file_storage_dir", "gluster_storage_dir")
"""The fields of the cluster that say where disks are; every node is told each by its name."""


def bad_directories(cluster: Cluster) -> Iterator[str]:
    """Yield a sentence for each directory of disks in which the system has its own files."""
    for field in DIRECTORIES:
        path: str = getattr(cluster, field)
        if path and (own := _systems_own(normpath(path))):
            yield (
                f"{field} is {path}, and {own} is the system's, where no disks are kept; take a "
                "directory that has nothing else in it, as /srv/gantry."
            )


def _systems_own(path: str) -> str:
    """Return which of the system's directories a path is in, or is; empty if it is in none."""
    if path == "/":
        return path
    return next((own for own in sorted(_SYSTEMS_OWN) if f"{path}/".startswith(f"{own}/")), "")
