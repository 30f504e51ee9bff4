"""Where the lab is: its nodes' names, numbers and addresses, its directories."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "lab"  # what takes long to make; every lab may use it

CLUSTER = "lab.example"
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
    """Return the lab that is meant: ``GANTRY_LAB`` names it where there are several."""
    return Place(os.environ.get("GANTRY_LAB", "gantry-lab"))
