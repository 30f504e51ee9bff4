"""The keys that open nothing any more, on disk: one a line, so one more is a line more."""

import os
import re
from pathlib import Path

from common.names import KeyId
from common.revoked_keys import RevokedKeys
from noded.durable_file import explaining, read_durably, remove_durably, write_durably

_KEY = re.compile(r"[0-9a-f]{64}")


class RevokedFile:
    """A list that mostly grows at its end.

    What of the file cannot be read is not guessed, and all other keys stay revoked; whoever
    compares the list with the master's sees that it is another one.
    """

    def __init__(self, path: Path) -> None:
        """Begin with the list on disk.

        Raises:
            NodeFailure: the disk is broken.
        """
        self._path = path
        self.list, self._is_sound = self._load()

    def begin(self, other: RevokedKeys) -> None:
        """Go by another list than the one on disk; the next one is written as a whole."""
        self.list, self._is_sound = other, False

    def write(self, after: RevokedKeys) -> None:
        """Have another list, durably; blocks until it is on disk.

        Raises:
            NodeFailure: the disk is full or broken; the list is as it was.
        """
        if after.keys == self.list.keys and self._is_sound:
            return
        known = len(self.list.keys)
        if self._is_sound and after.keys[:known] == self.list.keys:
            self._append(_lines(after.keys[known:]))
        else:
            write_durably(self._path, _lines(after.keys))
        self.list, self._is_sound = after, True

    def remove(self) -> None:
        """Forget the list, durably.

        Raises:
            NodeFailure: the disk is read-only or broken.
        """
        remove_durably(self._path)
        self.list, self._is_sound = RevokedKeys(), False

    def _append(self, lines: bytes) -> None:
        self._is_sound = False  # until all of it is there; what follows a half line would be lost
        with explaining(f"write {self._path}"):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(descriptor, "wb") as file:
                file.write(lines)
                file.flush()
                os.fsync(descriptor)

    def _load(self) -> tuple[RevokedKeys, bool]:
        if (text := read_durably(self._path)) is None:
            return RevokedKeys(), False
        *lines, rest = text.decode(errors="replace").split(
            "\n"
        )  # after the last end of a line there is nothing
        keys = dict.fromkeys(KeyId(line) for line in lines if _KEY.fullmatch(line))
        return RevokedKeys(keys), len(keys) == len(lines) and not rest


def _lines(keys: tuple[KeyId, ...]) -> bytes:
    return "".join(f"{key}\n" for key in keys).encode()
