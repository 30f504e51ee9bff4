"""The file that keeps what a script has written: as long as that is."""

import os

from common.errors import NodeFailure
from noded.copies import chunks
from noded.copies.device import write_all
from noded.copies.target import verified


class GrowingTarget:
    """A dump of which chunks are written, each checked against its sum first."""

    def __init__(self, descriptor: int, path: str) -> None:
        """Begin with nothing in it."""
        self._descriptor, self._path, self._size = descriptor, path, 0
        os.ftruncate(descriptor, 0)

    def close(self) -> None:
        """Nothing of it goes on in the background."""

    def write(self, index: int, payload: bytes, expected: bytes, *, is_packed: bool) -> list[bytes]:
        chunk = verified(index, payload, expected, None, is_packed=is_packed)
        try:
            write_all(self._descriptor, chunk, index * chunks.CHUNK)
        except OSError as error:
            raise self._explained(error) from error
        self._size = index * chunks.CHUNK + len(chunk)
        return [expected]

    def write_zeros(self, index: int, count: int) -> list[bytes]:  # noqa: ARG002 -- see ``Welcome``
        """Take note that who sends is there: it sends no zeros without knowing the size."""
        return []

    def sync_some(self, written: int) -> None:
        """All of it is synced at the end, for which a script's time is enough."""

    def finish(self) -> None:
        """Return when all is durable."""
        try:
            os.ftruncate(self._descriptor, self._size)
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError) -> NodeFailure:
        reason = error.strerror or str(error)
        return NodeFailure(f"{self._path} cannot be written: {reason}.", path=self._path)
