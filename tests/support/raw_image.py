"""A raw image of a disk, with a little of everything at odd places."""

import random
from pathlib import Path

MIB = 1 << 20
SIZE = 12 * MIB


def raw_image(path: Path) -> bytes:
    """Make an image with zeros, text and noise at odd places; return what is in it."""
    content = bytearray(SIZE)
    noise = random.Random(7).randbytes(3 * MIB + 4711)
    content[5 * MIB + 17 : 5 * MIB + 17 + len(noise)] = noise
    text = b"all work and no play " * 60_000
    content[MIB : MIB + len(text)] = text
    content[-100:] = b"the end".ljust(100)
    path.write_bytes(content)
    return bytes(content)
