"""What an operator has set for connections, as DRBD 8.4 is told it together with the peer.

``drbdsetup`` could only tell it once the module looks for the peer, and whatever is told then takes
away what the module checks a peer's proof with, which it may just be doing.

Source: drbdsetup-8.4(8) of drbd-utils 9.22; linux/drbd_genl.h, drbd.h and drbd_limits.h of Linux
6.1.
"""

import re
from collections.abc import Sequence

from noded.storage.drbd.messages import Attributes, as_flag, as_number, as_text

_NUMBERS = {  # with the least and the most that drbdsetup takes
    "connect-int": (7, 1, 120), "timeout": (8, 1, 600), "ping-int": (9, 1, 120),
    "ping-timeout": (10, 1, 300), "sndbuf-size": (11, 0, 10 << 20),
    "rcvbuf-size": (12, 0, 10 << 20), "ko-count": (13, 0, 200), "max-buffers": (14, 32, 131072),
    "max-epoch-size": (15, 1, 20000), "unplug-watermark": (16, 1, 131072),
    "socket-check-timeout": (34, 0, 300),
}  # fmt: skip
_FLAGS = {"allow-two-primaries": 24, "tcp-cork": 26, "always-asbp": 27, "use-rle": 29}
_TEXTS = {"data-integrity-alg": 3, "verify-alg": 4, "csums-alg": 5}
_ALONE = {
    "disconnect": 0, "discard-younger-primary": 1, "discard-older-primary": 2,
    "discard-zero-changes": 3, "discard-least-changes": 4, "discard-local": 5, "discard-remote": 6,
}  # fmt: skip
_BOTH = {"disconnect": 0, "call-pri-lost-after-sb": 9, "violently-as0p": 10}
_WORDS = {
    "protocol": (6, {"A": 1, "B": 2, "C": 3}),
    "after-sb-0pri": (17, _ALONE),
    "after-sb-1pri": (18, {**_BOTH, "consensus": 7, "discard-secondary": 8}),
    "after-sb-2pri": (19, _BOTH),
    "rr-conflict": (20, {"disconnect": 0, "call-pri-lost": 9, "violently": 10}),
}
_OPTION = re.compile(r"--([a-z0-9-]+)(?:=(.*))?", re.DOTALL)
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,8})([kKmM]?)")
_SHIFTS = {"": 0, "k": 10, "m": 20}


def read(words: Sequence[str]) -> Attributes | None:
    """Return options by their numbers in ``net_conf``; None: one of them is not known here."""
    found: dict[int, bytes] = {}
    for word in words:
        match = _OPTION.fullmatch(word)
        one = _read(match[1], match[2]) if match else None
        if one is None:
            return None
        found |= one
    return found


def _read(name: str, value: str | None) -> dict[int, bytes] | None:
    if name in _FLAGS and value in (None, "yes", "no"):
        return {_FLAGS[name]: as_flag(value != "no")}
    if name in _NUMBERS and (match := _NUMBER.fullmatch(value or "")):
        number, least, most = _NUMBERS[name]
        meant = int(match[1]) << _SHIFTS[match[2].lower()]
        return {number: as_number(meant)} if least <= meant <= most else None
    if name in _TEXTS and value is not None and len(value) < 64:
        return {_TEXTS[name]: as_text(value)}
    number, meanings = _WORDS.get(name, (0, {}))
    return {number: as_number(meanings[value])} if value in meanings else None
