"""Where the other side of a copy is awaited."""

import secrets
import socket

from common.errors import NodeFailure
from common.noderpc.copies import Offer

SECRET_BYTES = 32
BACKLOG = 16


def listen(address: str, port: int = 0) -> socket.socket:
    """Return a socket to which the other side may connect; at any port if none is given.

    Raises:
        NodeFailure: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise NodeFailure(
            f"Cannot offer a disk on {address}: {error.strerror}.", address=address
        ) from error


def offered(listener: socket.socket) -> Offer:
    """Return what the other side is told of it, with a new secret."""
    return Offer(port=listener.getsockname()[1], secret=secrets.token_hex(SECRET_BYTES))
