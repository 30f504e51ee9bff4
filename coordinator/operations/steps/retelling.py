"""Saying why a job tries something again: once for what is in the way, not each time."""

from common.errors import GntError, Unreachable
from coordinator.operations.cluster_view import Cluster


class Retelling:
    """What a job has said last of why it tries again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._silent: object = None  # the node of which it was said last that it is out of reach

    def tell(self, error: GntError) -> None:
        """Say why it is tried again, unless that is a silence that goes on."""
        silent = error.detail.get("node") if isinstance(error, Unreachable) else None
        if silent is None or silent != self._silent:
            self._cluster.log(f"Trying again: {error}")
        self._silent = silent
