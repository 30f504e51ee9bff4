"""What pools of a node's space are."""

from enum import StrEnum


class PoolKind(StrEnum):
    """Where what is put into a pool is kept."""

    DIRECTORY = "directory"
    VOLUME_GROUP = "volume-group"
