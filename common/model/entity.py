"""What every object of the configuration has."""

from common.model.stored import Stored


class Entity(Stored, kw_only=True):
    """An object with an identity of its own; referred to by ``uuid``, never by name.

    ``ctime`` and ``mtime`` are seconds since 1970, UTC. ``serial_no`` counts the changes
    of this object, from 1.
    """

    uuid: str
    ctime: float = 0.0
    mtime: float = 0.0
    serial_no: int = 1
    tags: tuple[str, ...] = ()
