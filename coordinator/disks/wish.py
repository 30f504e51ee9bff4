"""What may be asked of where a disk's bytes are; each kind of disk heeds some of it."""

from common.messages import Order


class DiskWish(Order):
    """What is given beside size, mode and name; empty: as the kind decides.

    Attributes:
        vg: volume group.
        metavg: volume group of the metadata.
        format: of the file: raw or qcow2.
        directory: where the file is, below the one of the cluster.
        adopt: what is there already and becomes the disk.
        provider: of external storage.
        provider_parameters: what the provider is told; its own names.
    """

    vg: str = ""
    metavg: str = ""
    format: str = ""
    directory: str = ""
    adopt: str = ""
    provider: str = ""
    provider_parameters: dict[str, str] = {}

    def given(self) -> tuple[str, ...]:
        """Return the names of what is asked for."""
        return tuple(name for name in DiskWish.__struct_fields__ if getattr(self, name))
