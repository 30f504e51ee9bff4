"""The connection to this node's coordinator."""

from common.luxi.client import Client
from common.paths import Paths


def connect() -> Client:
    """Return a client of the coordinator on this node; the first call connects."""
    return Client(str(Paths().luxi_socket))
