"""How a transfer of a guest's memory goes, as QEMU tells: answers in, values out.

Source: docs/interop/qemu-qmp-ref of QEMU 7.2, and qapi/migration.json of later ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from common.noderpc.instances import Rest
from noded.hypervisor.kvm.parse import UnexpectedOutput


class Transfer(StrEnum):
    """Where the transfer of a guest's memory stands; see ``_TRANSFERS``."""

    NONE = "none"
    ACTIVE = "active"
    HANDED_OVER = "handed over"  # the guest is the target's, and the rest of its memory comes
    CUT = "cut"  # as before, and the line is broken
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_TRANSFERS = {
    "none": Transfer.NONE,
    "setup": Transfer.ACTIVE,
    "active": Transfer.ACTIVE,
    "pre-switchover": Transfer.ACTIVE,
    "device": Transfer.ACTIVE,
    "wait-unplug": Transfer.ACTIVE,
    "cancelling": Transfer.ACTIVE,
    "postcopy-device": Transfer.ACTIVE,  # since 10.2; it may go on here after all
    "postcopy-active": Transfer.HANDED_OVER,
    "postcopy-recover-setup": Transfer.HANDED_OVER,
    "postcopy-recover": Transfer.HANDED_OVER,
    "postcopy-paused": Transfer.CUT,
    "completed": Transfer.COMPLETED,
    "failing": Transfer.ACTIVE,  # later than 10.1; it cleans up
    "failed": Transfer.FAILED,
    "cancelled": Transfer.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A transfer; sizes in bytes."""

    state: Transfer
    cancelling: bool = False  # was told to end, and has not
    error: str = ""
    sent: int = 0
    remaining: int = 0
    total: int = 0
    rounds: int = 0  # times all memory was gone through; what changed meanwhile is sent again
    rate: float = 0.0  # sent, a second

    @property
    def has_left(self) -> bool:
        """Whether the guest never runs on the source again, as it may on the target."""
        return self.state in (Transfer.HANDED_OVER, Transfer.CUT, Transfer.COMPLETED)

    @property
    def rest(self) -> Rest:
        """What is missing of the memory of a guest that has left, or has come, by post-copy."""
        match self.state:
            case Transfer.COMPLETED:
                return Rest.NONE
            case Transfer.CUT:
                return Rest.CUT
            case _:
                return Rest.COMES

    @property
    def share(self) -> float | None:
        """How much of the memory is there, from 0 to 1; None before it is known."""
        return 1 - self.remaining / self.total if self.total else None

    @property
    def sentence(self) -> str:
        """Say how far it is, for an operator."""
        if not self.total:
            return "connecting"
        told = f"round {self.rounds}: {self.remaining >> 20} of {self.total >> 20} MiB left"
        # How long it takes does not follow: pages of zeros take nothing, and others are sent again.
        return f"{told}, {self.rate / (1 << 20):.1f} MiB/s" if self.rate else told


def parse_progress(answer: Mapping[str, Any]) -> Progress:
    """Read the answer of ``query-migrate``, of a source or of a target.

    A source that has switched to post-copy may still find that its line broke at that moment, and
    have the guest go on. What it has sent of the rest (QEMU 7.0 and later tell) says that it is
    past that. Source: QEMU 7.2, migration/migration.c, postcopy_start.

    Raises:
        UnexpectedOutput: a state that no QEMU has of which we know.
    """
    status = str(answer.get("status", "none"))
    if status not in _TRANSFERS:
        raise UnexpectedOutput(f"QEMU's migration status is “{status[:200]}”.")
    ram = answer.get("ram", {})
    state = _TRANSFERS[status]
    if state is Transfer.HANDED_OVER and ram and not ram.get("postcopy-bytes"):
        state = Transfer.ACTIVE
    return Progress(
        state=state,
        cancelling=status == "cancelling",
        error=str(answer.get("error-desc", "")),
        sent=int(ram.get("transferred", 0)),
        remaining=int(ram.get("remaining", 0)),
        total=int(ram.get("total", 0)),
        rounds=int(ram.get("dirty-sync-count", 0)),
        rate=float(ram.get("mbps", 0)) * 1e6 / 8,
    )
