"""Where disks are attached that a program attached: it told so once.

Kept beside what else ends with the power, so that it outlives noded and not the devices.
"""

from contextlib import suppress
from pathlib import Path

from common.names import DiskId, is_uuid


class AttachedDevices:
    """One symbolic link for each disk, called by its UUID, to its device."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, disk: DiskId) -> str:
        """Return the path of a disk's device; empty if it is not attached."""
        try:
            return str(self._link(disk).readlink())
        except FileNotFoundError:
            return ""

    def every(self) -> dict[str, str]:
        """Return the devices of all disks that are attached."""
        if not self._directory.is_dir():
            return {}
        links = (path for path in self._directory.iterdir() if is_uuid(path.name))
        return {link.name: str(link.readlink()) for link in links}

    def keep(self, disk: DiskId, device: str) -> None:
        """Note where a disk is; what was noted before is replaced."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        link = self._link(disk)
        unfinished = link.with_name(f".{link.name}.new")
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(device)
        unfinished.rename(link)

    def forget(self, disk: DiskId) -> None:
        with suppress(FileNotFoundError):
            self._link(disk).unlink()

    def _link(self, disk: DiskId) -> Path:
        assert is_uuid(disk), "the handlers have looked"
        return self._directory / disk
