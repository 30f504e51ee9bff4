"""What rbd prints: text in, values out. Source: rbd(8) of Ceph 16 to 18, ``--format json``."""

from typing import TypeVar

import msgspec

from common.errors import NodeFailure
from common.messages import Report
from common.model.backing import RbdBacking
from common.names import MiB

T = TypeVar("T")
MIB = 1 << 20


class _Info(Report):
    size: int


class _Mapped(Report):
    pool: str
    name: str
    snap: str
    device: str
    namespace: str = ""


def parse_size(text: bytes) -> MiB:
    """Return the size of an image from what ``rbd info`` tells.

    Raises:
        NodeFailure: it is not as we know it.
    """
    return MiB(_read(text, _Info).size // MIB)


def parse_device(text: bytes, image: RbdBacking) -> str:
    """Return where an image is mapped, from what ``rbd device list`` tells; empty if nowhere.

    Raises:
        NodeFailure: as ``parse_size``.
    """
    name, _, snapshot = image.image.partition("@")
    for each in _read(text, list[_Mapped]):
        is_it = (each.pool, each.namespace, each.name) == (image.pool, "", name)
        if is_it and each.snap.removeprefix("-") == snapshot:
            return each.device
    return ""


def _read(text: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise NodeFailure(
            "rbd tells of its images in a way that is not known here.",
            text=text[:200].decode(errors="replace"),
        ) from error
