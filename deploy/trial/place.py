"""Where the demonstration is: directories, names and addresses."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = CHECKOUT / ".venv" / "bin"
KERNEL = CHECKOUT / ".cache" / "kernel"

HUB = "gantry-hub"
CLUSTER = "demo.example"


@dataclass(frozen=True)
class Spot:
    """One node's place: its name, number, root directory and namespace."""

    name: str
    number: int
    base: Path

    @property
    def root(self) -> Path:
        return self.base / self.name

    @property
    def namespace(self) -> str:
        return f"gantry-{self.name}"

    @property
    def address(self) -> str:
        return f"10.77.0.{10 + self.number}"


@dataclass(frozen=True)
class Place:
    base: Path
    spots: tuple[Spot, ...]

    @property
    def shared(self) -> Path:
        """The directory that all nodes see, as an NFS mount would be."""
        return self.base / "shared"

    @property
    def kept(self) -> Path:
        """Is there while a cluster is left up on purpose, which nothing takes down unasked."""
        return self.base / "kept"

    @property
    def guest(self) -> Path:
        """Kernel and initrd of the guest."""
        return self.base / "guest"


def place() -> Place:
    """Return the one place of a demonstration on this machine.

    Sockets have short names (107 bytes, unix(7)), so it is not below the checkout.
    """
    base = Path(tempfile.gettempdir()) / "gantry-demo"
    names = ("alpha", "beta", "gamma")
    return Place(base, tuple(Spot(name, n + 1, base) for n, name in enumerate(names)))
