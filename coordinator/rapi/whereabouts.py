"""Where the coordinator is, by what this node was told last."""

from pathlib import Path

from common.errors import GntError
from common.luxi.client import NoCoordinator
from coordinator.rapi.failures import NotHere


def where(ssconf: Path, here: str, trouble: GntError | None) -> GntError:
    """Say why nothing can be answered: another node is master, or the coordinator is away.

    Args:
        ssconf: what this node knows of its cluster.
        here: its name.
        trouble: why the coordinator was not reached.
    """
    try:
        master = (ssconf / "master_node").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        return NoCoordinator("This node does not know of any master; it may be of no cluster.")
    if master not in {here, here.partition(".")[0]} and master.partition(".")[0] != here:
        return NotHere(f"The master is {master}; ask there.", master=master)
    why = f": {trouble.message}" if trouble else "."
    return NoCoordinator(f"The coordinator on {master} is not ready{why}")
