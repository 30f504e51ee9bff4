"""What one version of DRBD is told, and tells, otherwise than another one."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from common.model.disk_parameters import DrbdParameters
from common.names import MiB
from noded.storage.drbd.commands import Argv
from noded.storage.drbd.messages import Attributes
from noded.storage.drbd.module import Connection, Device

Change = Argv | Callable[[], None]  # a program's arguments, or what asks the module, and blocks


class Language(Protocol):
    """How to talk to one version; what returns a change, or a program's arguments, does no more.

    Attributes:
        name: as it is told.
        metadata: what ``drbdmeta`` calls the format of its metadata.

    Raises, from every method that asks the module, which blocks:
        NodeFailure: the module refused, or is not of this version.
    """

    name: str
    metadata: str

    def look(self, proc: Path) -> tuple[Device, ...]:
        """Return all devices; ``proc`` is what everybody may read of the module."""

    def owner(self, minor: int) -> str | None:
        """Return the resource whose device has a number; None: there is no such device."""

    def create(self, resource: str, minor: int, number: int) -> None:
        """Make a device without volumes or a peer; one that is there stays."""

    def introduce(
        self,
        connection: Connection,
        proof: Attributes,
        parameters: DrbdParameters,
        *,
        discard: bool,
        allow_two: bool,
    ) -> None:
        """Tell a device of its peer; ``proof`` is what that is shown, as in ``net_conf``.

        To 8.4, that is to begin to look for it.

        Raises:
            DigestUnknown: the kernel cannot make the proof.
        """

    def left_to_tell(self, parameters: DrbdParameters) -> tuple[str, ...]:
        """Return the operator's options that ``introduce`` does not tell, for ``drbdsetup``."""

    def meet(self, connection: Connection, *, discard: bool) -> None:
        """Begin to look for the peer that the device was told of."""

    def remove(self, resource: str) -> None:
        """Take a device away; none is fine.

        Raises:
            InUse: something has it open.
        """

    def show_meta(self, minor: int, path: str) -> Argv: ...

    def create_meta(self, minor: int, path: str) -> Argv: ...

    def is_unclean(self, path: str) -> bool:
        """Tell whether metadata are known to be refused before their bitmap is up to date."""

    def attach(
        self, minor: int, data: str, meta: str, size: MiB, parameters: DrbdParameters
    ) -> Argv: ...

    def net_options(self, connection: Connection, *options: str) -> Argv: ...

    def allow_two(self, connection: Connection, *, allowed: bool) -> Change: ...

    def disconnect(self, connection: Connection) -> Change: ...

    def primary(self, resource: str, minor: int, *, force: bool) -> Change: ...

    def secondary(self, resource: str, minor: int) -> Change: ...

    def declare_equal(self, minor: int) -> Change: ...
