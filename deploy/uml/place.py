"""Where the lab is: its nodes' names, numbers and addresses, its directories."""

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deploy.uml.command import Trouble

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "lab"  # what takes long to make; every lab may use it
MEMORY = Path("/dev/shm")

DEBIAN_12 = "bookworm"  # what nodes have of Debian
CLUSTER = "lab.example"
SHARED = "/srv/shared"  # on every node: a directory of this machine, in the place of a file server
SHARED_DISKS = f"{SHARED}/disks"
FILE_DISKS = "/srv/disks"  # of each node alone
GROUP = "gantry"  # the volume group, see files/usr/local/sbin/lab-node
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
HOST_ADDRESS = "10.78.0.1"  # of this machine, inside the lab's network namespace


@dataclass(frozen=True)
class Spot:
    """One node's place."""

    name: str
    number: int  # from 1
    directory: Path  # of all its files

    @property
    def address(self) -> str:
        return f"10.78.0.{10 + self.number}"

    @property
    def mac(self) -> str:
        return f"02:4c:41:42:00:{self.number:02x}"

    @property
    def tap(self) -> str:
        return f"tap{self.number}"

    @property
    def system(self) -> Path:
        """What the node wrote to its system disk; the rest is the image's."""
        return self.directory / "system.cow"

    @property
    def disk(self) -> Path:
        """The disk of its volume group; sparse."""
        return self.directory / "disk.img"

    @property
    def console(self) -> Path:
        return self.directory / "console.log"

    @property
    def line(self) -> Path:
        """The socket of the ssh that keeps a connection to it."""
        return self.directory / "ssh"

    @property
    def process(self) -> Path:
        """Holds the number of its main process, which leads a session of its own."""
        return self.directory / "pid"


@dataclass(frozen=True)
class Place:
    """A lab: its directory, which has a short name because it holds unix sockets (107 bytes)."""

    name: str

    @property
    def base(self) -> Path:
        return Path(tempfile.gettempdir()) / self.name

    @property
    def namespace(self) -> str:
        return self.name

    @property
    def record(self) -> Path:
        """Links to the image of which the nodes' system disks hold the differences."""
        return CACHE / "labs" / self.name

    @property
    def shared(self) -> Path:
        """The directory that all nodes see as ``SHARED``."""
        return self.base / "shared"

    @property
    def key(self) -> Path:
        """The ssh key that opens every node."""
        return CACHE / "key"

    def spots(self, count: int) -> tuple[Spot, ...]:
        return tuple(
            Spot(name, number, self.base / name) for number, name in enumerate(NAMES[:count], 1)
        )

    def present(self) -> tuple[Spot, ...]:
        """Return the nodes that have been made."""
        return tuple(spot for spot in self.spots(len(NAMES)) if spot.directory.is_dir())


def place() -> Place:
    """Return the lab that is meant: ``GANTRY_LAB`` names it where there are several.

    Raises:
        Trouble: that is no name for a directory and a network namespace.
    """
    name = os.environ.get("GANTRY_LAB") or "gantry-lab"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,29}", name):
        raise Trouble(f"GANTRY_LAB={name}: a lab's name is made of letters, digits and dashes.")
    return Place(name)
