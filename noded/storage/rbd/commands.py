"""Command lines of rbd: values in, arguments out. Source: rbd(8) of Ceph 16 to 18."""

from common.model.backing import RbdBacking
from common.names import MiB

Command = tuple[str, ...]


def info(image: RbdBacking) -> Command:
    return (*_rbd(image), "info", "--format", "json", _name(image))


def create(image: RbdBacking, size: MiB) -> Command:
    return (*_rbd(image), "create", "--size", f"{size}M", _name(image))


def snapshot(kept: RbdBacking) -> Command:
    """Keep an image; ``kept`` is called by it, and by a name of its own behind an @."""
    return (*_rbd(kept), "snap", "create", "--no-progress", _name(kept))


def roll_back(kept: RbdBacking) -> Command:
    return (*_rbd(kept), "snap", "rollback", "--no-progress", _name(kept))


def remove(image: RbdBacking) -> Command:
    if "@" in image.image:
        return (*_rbd(image), "snap", "rm", "--no-progress", _name(image))
    return (*_rbd(image), "rm", "--no-progress", _name(image))


def grow(image: RbdBacking, size: MiB) -> Command:
    return (*_rbd(image), "resize", "--no-progress", "--size", f"{size}M", _name(image))


def attached(image: RbdBacking) -> Command:
    """List what is mapped on this node, whosever it is."""
    return (*_rbd(image), "device", "list", "--format", "json")


def attach(image: RbdBacking) -> Command:
    return (*_rbd(image), "device", "map", _name(image))


def detach(image: RbdBacking, device: str) -> Command:
    return (*_rbd(image), "device", "unmap", device)


def _rbd(image: RbdBacking) -> Command:
    return ("rbd", "--id", image.user) if image.user else ("rbd",)


def _name(image: RbdBacking) -> str:
    return f"{image.pool}/{image.image}"
