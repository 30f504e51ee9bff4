"""What root of a node lets the master do there: put files in their places, and run commands."""

from abc import abstractmethod
from typing import Annotated

from msgspec import Meta

from common.messages import Order, Report
from common.names import Word
from common.noderpc.files import FileReport
from common.rpc.declare import NodeService, rpc

MOST_BYTES = 2 << 20  # of a file
COMMAND_S = 120.0  # for a command
MOST_OUTPUT = 64 << 10  # characters of what it says that are kept, from the end

FilePath = Annotated[str, Meta(pattern=r"^/[^\0]+$", description="a path from /", max_length=1024)]
CommandLine = Annotated[str, Meta(min_length=1, max_length=16 << 10)]


class KeptFile(Order, kw_only=True):
    """A file as it is, or is to be, on every node; who owns it is known by name."""

    path: FilePath
    data: bytes
    mode: Annotated[int, Meta(ge=0, le=0o777)]
    owner: Word
    group: Word


class Ended(Report):
    """How a command ended: its exit status, and what it said, both streams in one."""

    status: int
    output: Annotated[str, Meta(max_length=MOST_OUTPUT)]


class Remote(NodeService, prefix="remote"):
    """Nothing of it is allowed before root of the node says so: ``noded/remote/rules.py``."""

    @rpc(timeout=15, safe_to_repeat=True, largest_question=4 << 20)
    @abstractmethod
    async def put(self, *, file: KeptFile) -> None:
        """Have a file be so, at once and durably.

        Raises:
            NodeFailure: root of this node does not allow it, its directory is missing or others
                can write it, there is no such user, the disk is full.
        """

    @rpc(timeout=15, safe_to_repeat=True, largest_answer=4 << 20)
    @abstractmethod
    async def get(self, *, path: FilePath) -> KeptFile | None:
        """Return a file that may be put here; None if it is not there.

        Raises:
            NodeFailure: root of this node does not allow it, or it is too large.
        """

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, looks=True, one_for_each="paths")
    @abstractmethod
    async def digests(self, *, paths: tuple[FilePath, ...]) -> tuple[FileReport, ...]:
        """Return the digest of each file; that of one that may not be put here is empty, too."""

    @rpc(timeout=COMMAND_S + 15, safe_to_repeat=False)
    @abstractmethod
    async def run(self, *, line: CommandLine) -> Ended:
        """Run a line by a shell of root's.

        Raises:
            NodeFailure: root of this node does not allow it, or it took too long and was killed.
        """
