"""A small file system of few files, as every guest can read it: FAT12, with long names.

Source: Microsoft's FAT32 File System Specification, 1.03, which tells of FAT12 as well.
"""

import struct
from collections.abc import Iterator, Mapping

SECTOR = 512
SECTORS = 2048  # 1 MiB; with a cluster of one sector that are fewer than FAT12's 4085
_FAT_SECTORS = 6  # 12 bits for each of them
_ROOT_ENTRIES = 64
_RESERVED = 1
_FIRST_DATA = _RESERVED + 2 * _FAT_SECTORS + _ROOT_ENTRIES * 32 // SECTOR
_MEDIA = 0xF8
_END = 0xFFF
_VOLUME, _LONG, _FILE = 0x08, 0x0F, 0x20
_NAME_PART = 13  # characters of a long name in one entry
SPACE = (SECTORS - _FIRST_DATA) * SECTOR


class DoesNotFit(Exception):
    """There is more than the file system can hold."""


def fat_image(label: str, files: Mapping[str, bytes]) -> bytes:
    """Return a file system of 1 MiB.

    Args:
        label: its name; at most 11 characters of ASCII.
        files: names of ASCII letters, digits and “-”, and what is in them.

    Raises:
        DoesNotFit: there is more than about a MiB of it.
    """
    fat = [0xF00 | _MEDIA, _END]
    root = [_entry(label.upper().encode().ljust(11), _VOLUME, 0, 0)]
    data = bytearray()
    for number, (name, content) in enumerate(files.items()):
        clusters = -(-len(content) // SECTOR)
        first = len(fat) if clusters else 0
        fat += [len(fat) + step + 1 for step in range(clusters)]
        if clusters:
            fat[-1] = _END
        short = f"FILE{number:04d}   ".encode()
        root += _long_name(name, _checksum(short))
        root.append(_entry(short, _FILE, first, len(content)))
        data += content.ljust(clusters * SECTOR, b"\0")
    if len(data) > SPACE or len(root) > _ROOT_ENTRIES:
        raise DoesNotFit(f"at most {SPACE >> 10} KiB fit")
    table = _packed(fat).ljust(_FAT_SECTORS * SECTOR, b"\0")
    entries = b"".join(root).ljust(_ROOT_ENTRIES * 32, b"\0")
    whole = _boot_sector(label) + table * 2 + entries + bytes(data)
    return whole.ljust(SECTORS * SECTOR, b"\0")


def _boot_sector(label: str) -> bytes:
    parameters = struct.pack(
        "<3s8sHBHBHHBHHHIIBBBI11s8s",
        b"\xeb\x3c\x90", b"GANTRY  ", SECTOR, 1, _RESERVED, 2, _ROOT_ENTRIES, SECTORS, _MEDIA,
        _FAT_SECTORS, 32, 2, 0, 0, 0x80, 0, 0x29, 0x67616E74, label.upper().encode().ljust(11),
        b"FAT12   ",
    )  # fmt: skip
    return parameters.ljust(SECTOR - 2, b"\0") + b"\x55\xaa"


def _entry(name: bytes, kind: int, cluster: int, size: int) -> bytes:
    date = (45 << 9) | (1 << 5) | 1  # the first of January 2025: nobody asks
    return struct.pack(
        "<11sBBBHHHHHHHI", name, kind, 0, 0, 0, date, date, 0, 0, date, cluster, size
    )


def _long_name(name: str, checksum: int) -> Iterator[bytes]:
    """Yield the entries of a long name, which come before that of the file, the last part first."""
    text = name.encode("utf-16-le")
    parts = [text[at : at + 2 * _NAME_PART] for at in range(0, len(text), 2 * _NAME_PART)]
    if len(parts[-1]) < 2 * _NAME_PART:
        parts[-1] = (parts[-1] + b"\0\0").ljust(2 * _NAME_PART, b"\xff")
    for number, part in reversed(list(enumerate(parts, start=1))):
        order = number | (0x40 if number == len(parts) else 0)
        yield struct.pack(
            "<B10sBBB12sH4s", order, part[:10], _LONG, 0, checksum, part[10:22], 0, part[22:]
        )


def _checksum(short: bytes) -> int:
    total = 0
    for byte in short:
        total = ((total & 1) << 7 | total >> 1) + byte & 0xFF
    return total


def _packed(fat: list[int]) -> bytes:
    """Put numbers of 12 bits next to each other, two in three bytes."""
    pairs = zip(fat[::2], [*fat[1::2], 0], strict=False)
    return b"".join((low | high << 12).to_bytes(3, "little") for low, high in pairs)
