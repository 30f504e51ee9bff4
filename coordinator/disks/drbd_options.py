"""Which of the operator's options for DRBD 8.4 the programs of DRBD 9 do not take.

Source: drbdsetup-8.4(8), drbdsetup-9.0(8) of drbd-utils 9.22.
"""

import shlex
from collections.abc import Mapping
from typing import Any

_NOT_OF_NINE = {
    "disk-custom": frozenset({
        "fencing", "resync-rate", "c-plan-ahead", "c-delay-target", "c-fill-target", "c-max-rate",
        "c-min-rate",
    }),
    "net-custom": frozenset({"unplug-watermark"}),
}  # fmt: skip


def refused_by_nine(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options in the filled parameters of mirrored disks that 9 refuses."""
    return tuple(
        f"{word.partition('=')[0]} in {place}"
        for place, names in _NOT_OF_NINE.items()
        for word in shlex.split(parameters[place])
        if word.removeprefix("--").partition("=")[0] in names
    )
