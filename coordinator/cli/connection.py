"""The connection to this node's coordinator."""

import sys

from common.luxi.client import SLOW_S, Client
from common.paths import Paths

_MEANT_TO_WAIT = "WaitForJobChange"  # whoever follows a job tells what that waits for


def connect() -> Client:
    """Return a client of the coordinator on this node; the first call connects."""
    return Client(str(Paths().luxi_socket), slow=_tell)


def _tell(method: str) -> None:
    if method != _MEANT_TO_WAIT:
        print(
            f"The coordinator has not answered for {SLOW_S:g} s; a node may be silent. Waiting.",
            file=sys.stderr,
        )
