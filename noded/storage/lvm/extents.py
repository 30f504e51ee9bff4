"""How much a volume takes of its group: whole extents. Pure."""

from common.names import MiB


def in_extents(size: MiB, extent: MiB, stripes: int = 1) -> MiB:
    """Return what a volume of ``size`` takes: extents, as many on each stripe."""
    step = extent * stripes
    return MiB(-(-size // step) * step)
