"""What the metadata of DRBD 8.4 say at first sight: a number in their first sector.

The module leaves them marked as in use, also when a device is taken away in order, and attaches
them only once ``drbdmeta`` has brought their bitmap up to date. So nearly all that were attached
before would be refused at first. What is read here decides no more than what is tried first.

Source: drbd_int.h of Linux 6.1 (``struct meta_data_on_disk``); drbdmeta.c of drbd-utils 9.22.
"""

from pathlib import Path

_MAGIC = slice(60, 64)
_UNCLEAN = 0x8374026C


def is_unclean(path: str) -> bool:
    """Tell whether the module would refuse metadata until their bitmap is up to date. Blocks."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            first = file.read(512)
    except OSError:  # that they cannot be read, whoever attaches them is told
        return False
    return int.from_bytes(first[_MAGIC], "big") == _UNCLEAN
