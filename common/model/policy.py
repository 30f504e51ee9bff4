"""Instance policies: what sizes are allowed, and how far nodes may be committed.

Names are Ganeti's (``ipolicy``), and so are the defaults, but for the lower bounds: ours
leave room for small test guests.
"""

from common.model.stored import Part
from common.names import MiB


class Spec(Part, kw_only=True):
    """One size of instance; disk and memory in MiB."""

    memory_size: MiB
    cpu_count: int
    disk_count: int
    disk_size: MiB
    nic_count: int
    spindle_use: int


class Bounds(Part, kw_only=True):
    """Smallest and largest instance allowed, per quantity."""

    min: Spec = Spec(
        memory_size=MiB(32), cpu_count=1, disk_count=0, disk_size=MiB(1), nic_count=0,
        spindle_use=0,
    )  # fmt: skip
    max: Spec = Spec(
        memory_size=MiB(32768), cpu_count=8, disk_count=16, disk_size=MiB(1048576),
        nic_count=8, spindle_use=12,
    )  # fmt: skip


class InstancePolicy(Part, kw_only=True):
    """``minmax`` holds alternatives: an instance has to fit one of them."""

    minmax: tuple[Bounds, ...] = (Bounds(),)
    std: Spec = Spec(
        memory_size=MiB(128), cpu_count=1, disk_count=1, disk_size=MiB(1024), nic_count=1,
        spindle_use=1,
    )  # fmt: skip
    disk_templates: tuple[str, ...] = (
        "sharedfile", "diskless", "plain", "blockdev", "drbd", "file", "rbd", "gluster", "ext",
    )  # fmt: skip
    vcpu_ratio: float = 4.0
    spindle_ratio: float = 32.0
