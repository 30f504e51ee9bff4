"""What is on the disks of simulated machines: a word for each, and none for zeros."""

from common.model.backing import (
    Backing,
    DrbdBacking,
    DumpBacking,
    Elsewhere,
    LvmBacking,
    StreamBacking,
)
from common.noderpc.disks import DiskSpec
from noded.exports.fake import FakeExports
from noded.operating_systems.fake_streams import FakeStreams
from noded.storage.fake import FakeStorage
from noded.storage.lvm.fake import FakeVolumes


class Contents:
    """Of one machine. A volume that is made anew has nothing on it, whatever its name is.

    What is written to one end of a mirrored disk is on the other, too, and so is what is copied:
    that mirroring is told apart from its failures is for those who test it.
    """

    def __init__(
        self,
        files: FakeStorage,
        volumes: FakeVolumes,
        exports: FakeExports,
        elsewhere: FakeStorage,
        others: list["Contents"],
    ) -> None:
        """Begin with zeros; ``others`` are those of all machines, this one to be among them."""
        self._files, self._volumes, self._exports = files, volumes, exports
        self._elsewhere = elsewhere
        self.streams = FakeStreams()
        self._words: dict[str, str] = {}  # by LVM's UUID
        volumes.on_copy = self._copy
        self._others = others
        others.append(self)

    def read(self, disk: DiskSpec) -> str:
        if isinstance(disk.backing, StreamBacking):
            return self.streams.read(disk)
        if isinstance(disk.backing, DumpBacking):
            return self._exports.read(disk)
        if not isinstance(disk.backing, LvmBacking | DrbdBacking):
            return self._storage(disk).read(disk)
        return self._words.get(self._volume(disk.backing), "")

    def write(self, disk: DiskSpec, word: str) -> None:
        if isinstance(disk.backing, StreamBacking):
            self.streams.write(disk, word)
            return
        if isinstance(disk.backing, DumpBacking):
            self._exports.write(disk, word)
            return
        if not isinstance(disk.backing, LvmBacking | DrbdBacking):
            self._storage(disk).write(disk, word)
            return
        is_mirrored = isinstance(disk.backing, DrbdBacking)
        for each in self._others if is_mirrored else [self]:
            if volume := each._volume(disk.backing):
                each._words[volume] = word

    def ending(self, disk: DiskSpec) -> str | None:
        return self.streams.ending(disk) if isinstance(disk.backing, StreamBacking) else ""

    def _copy(self, source: str, target: str) -> None:
        """Have a snapshot of a volume hold what that holds, or the other way round."""
        self._words[target] = self._words.get(source, "")

    def write_volume(self, uuid: str, word: str) -> None:
        """Write to a volume that is no disk's, by LVM's UUID."""
        self._words[uuid] = word

    def copy_from(self, other: "Contents", source: str, target: str) -> None:
        """Have a volume of this machine hold what one of another machine holds."""
        self._words[target] = other._words.get(source, "")

    def by_path(self) -> dict[str, str]:
        """Return the words that are on disks which only this machine has."""
        there = (
            (f"{group}/{name}", self._words.get(volume.uuid, ""))
            for group, volumes in self._volumes.groups.items()
            for name, volume in volumes.volumes.items()
        )
        files = self._files.local.contents | self._exports.words
        return dict(sorted((files | {path: word for path, word in there if word}).items()))

    def _storage(self, disk: DiskSpec) -> FakeStorage:
        return self._elsewhere if isinstance(disk.backing, Elsewhere) else self._files

    def _volume(self, backing: Backing) -> str:
        """Return LVM's UUID of a disk's volume; empty if it is not there."""
        place = backing.data if isinstance(backing, DrbdBacking) else backing
        assert isinstance(place, LvmBacking)
        group = self._volumes.groups.get(place.group)
        there = group.volumes.get(place.name) if group else None
        return there.uuid if there else ""
