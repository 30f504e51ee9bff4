"""What DRBD's kernel module of this node can be asked; the real one and the fake obey alike.

It knows devices, not disks: whose a device is, and whether something is wise, the driver decides.
"""

from dataclasses import dataclass, field
from typing import Protocol

from common.errors import NodeFailure
from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from common.noderpc.mirrors import MirrorReport

DIGEST = "sha256"  # by which an end proves that it knows the secret
VERIFY_DIGEST = "crc32c"  # by which copies are compared


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a connection."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Connection:
    """What two nodes have between them for one disk; both ends name it in mirror image.

    Attributes:
        resource: whose it is.
        own: this node's end.
        peer: the other one.
        number: which of the two this node is, 0 or 1; DRBD 8.4 knows of none.
    """

    resource: str
    own: Endpoint
    peer: Endpoint
    number: int = field(default=0, compare=False)

    @property
    def peer_number(self) -> int:
        return 1 - self.number


@dataclass(frozen=True, slots=True)
class Device:
    """A device as the module has it.

    Attributes:
        resource: its name, which both nodes may choose as they like.
        minor: its number on this node.
        volumes: the paths of data and metadata, as they were attached; None: it has none.
        connection: None while it waits for nobody, whether it was told so or gave up.
        allows_two: whether both nodes may be primary at a time.
        size: as it can be used; 0 while there is no copy.
        report: how it is.
    """

    resource: str
    minor: int
    volumes: tuple[str, str] | None
    connection: Connection | None
    allows_two: bool
    size: MiB
    report: MirrorReport


@dataclass(frozen=True, slots=True)
class ModuleState:
    """Whether disks can be mirrored by this node.

    Attributes:
        version: of the module; empty where there is none.
        helper: the program that it runs when something happens, where it is to run none.
        problem: why no disk can be mirrored, and what to do; empty if all is well.
    """

    version: str = ""
    helper: str = ""
    problem: str = ""


class InUse(NodeFailure):
    """Something has the device open: a guest, as a rule."""

    code = "node-failure.in-use"


class DrbdModule(Protocol):
    """The devices of this node.

    What takes a device by its name or number trusts the caller to know whose it is.

    Raises, from every method:
        NodeFailure: the module refused, or there is none; says why, in its own words.
    """

    async def state(self) -> ModuleState:
        """Return how the module itself is; never fails."""

    async def look(self) -> tuple[Device, ...]:
        """Return all devices, ours or not, in one look."""

    async def ensure_meta(self, minor: int, path: str) -> None:
        """Have metadata on a volume, of data that is no copy yet; what is there stays."""

    async def create(self, resource: str, minor: int, number: int) -> None:
        """Make a device, with no volume and no connection; one that is there stays.

        Args:
            resource: its name.
            minor: its number on this node.
            number: which of the disk's two nodes this one is, 0 or 1, for as long as it has a copy.
        """

    async def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> None:
        """Give a device its volumes.

        What was attached the last time knows only that it was good then. It waits for its peer to
        tell more, unless it had heard that the peer's is worse.
        """

    async def detach(self, minor: int) -> None:
        """Take a device's volumes; it goes on with the peer's copy, if there is a good one."""

    async def connect(
        self,
        connection: Connection,
        secret: str,
        parameters: DrbdParameters,
        *,
        discard: bool,
        allow_two: bool,
    ) -> None:
        """Begin to look for the peer, who has to prove that it knows ``secret``.

        Both ends give up if one of them allows two primaries and the other does not.
        """

    async def disconnect(self, connection: Connection) -> None:
        """Stop; the side that is not primary is outdated from then on."""

    async def allow_two(self, connection: Connection, *, allowed: bool) -> None:
        """Say whether both nodes may be primary; it holds for both ends of what is connected."""

    async def promote(self, resource: str, minor: int, *, force: bool) -> None:
        """Make a device primary.

        Args:
            resource: its name.
            minor: its number.
            force: though the peer cannot be asked, whatever the own copy is.
        """

    async def demote(self, resource: str, minor: int) -> None:
        """Make a device secondary; refused while anything has it open."""

    async def remove(self, resource: str) -> None:
        """Take a device away, demoted, disconnected and detached; none is fine."""

    async def resize(self, minor: int, size: MiB) -> None:
        """Make a device larger, of which both volumes have grown; what was added is zeros."""

    async def declare_equal(self, minor: int) -> None:
        """Take two copies that were never written to, and are connected, for good and equal."""

    def open(self, resource: str, minor: int, *, read_only: bool) -> int:
        """Open the device of a resource; the descriptor is the caller's. Blocks."""
