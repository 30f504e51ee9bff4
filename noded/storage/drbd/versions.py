"""Which versions of DRBD's module there may be, and how each is talked to."""

import re

from noded.storage.drbd.eight.language import Eight
from noded.storage.drbd.language import Language
from noded.storage.drbd.nine.language import Nine

EIGHT, NINE = Eight(), Nine()
NOT_LOADED = (
    "DRBD's kernel module is not loaded; run “modprobe drbd”, and name it in /etc/modules, so that "
    "it is there after a boot."
)

_VERSION = re.compile(r"(([0-9]+)\.([0-9]+)\.[0-9.-]+)")


def read_version(told: str) -> tuple[str, Language | None]:
    """Return the version that a module has by what it tells, and how to talk to it, if known."""
    match = _VERSION.match(told)
    if match is None:
        return "", None
    version, major, minor = match[1], int(match[2]), int(match[3])
    if major == 8:
        return version, EIGHT if minor == 4 else None
    return version, NINE if major == 9 and minor >= 1 else None
