"""What DRBD 9 says of all that it has, kind by kind."""

from typing import NamedTuple

from noded.storage.drbd.messages import Message

PATH = 28  # the attribute of a connection that has both addresses


class Told(NamedTuple):
    """What the module says of all that it has."""

    resources: list[Message]
    devices: list[Message]
    connections: list[Message]
    peers: list[Message]  # what a device and a connection have together
