"""Small files that every node has of the cluster."""

from abc import abstractmethod

from common.messages import Report
from common.names import Word
from common.rpc.declare import NodeService, rpc


class FileReport(Report):
    digest: Word  # hex SHA-256, "" when absent


class Files(NodeService, prefix="files"):
    """The ``ssconf`` files; names are fixed, paths never come from the network."""

    @rpc(timeout=15, safe_to_repeat=True, largest_question=4 << 20)
    @abstractmethod
    async def publish(self, *, files: dict[str, str]) -> None:
        """Write ssconf files; each atomically.

        Raises:
            InvalidRequest: a name that is no ssconf file.
            NodeFailure: the disk is full or broken.
        """

    @rpc(timeout=15, safe_to_repeat=True, looks=True)
    @abstractmethod
    async def digests(self, *, names: tuple[str, ...]) -> tuple[FileReport, ...]:
        """Return the digest of each ssconf file, in the order asked."""
