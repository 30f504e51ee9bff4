"""What a tiny guest has written: up to where it is whole, and what is wrong with it.

Usage: python -m tests.support.sequence DISK, where DISK is a file, a device, or - for its input.

The first sector is the guest's program. The 2,047 after it are a ring of records, one a sector,
number 1 in sector 1 and number 2,048 again there. A record is ``TICK``, the number, another
number for each start of the guest, and then 125 words that follow from these two, all in 32 bits
with the lowest byte first.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512
RING = 2047
BYTES = (1 + RING) * SECTOR  # of a disk that matter
SHOWN = 10  # of what is wrong

_MAGIC = b"TICK"
_WORDS = 125


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    number: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """The newest ``RING`` numbers, as far as they are there."""

    first: int  # that should be there; 1 until the ring is full
    last: int  # the largest that is there, 0 if none is
    whole_to: int  # all from ``first`` to this one are there
    starts: int  # of the guest that they were written in
    wrong: tuple[str, ...]  # sentences

    def __str__(self) -> str:
        whole = f"Whole from {self.first} to {self.whole_to}" if self.whole_to else "Nothing there"
        lines = [f"{whole}; the last is {self.last}; {self.starts} starts.", *self.wrong[:SHOWN]]
        if len(self.wrong) > SHOWN:
            lines.append(f"… and {len(self.wrong) - SHOWN} more.")
        return "\n".join(lines)


def check(disk: bytes | bytearray) -> Sequence:
    """Read the beginning of a disk, at least its first ``BYTES``."""
    wrong: list[str] = []
    found: dict[int, Record] = {}
    for sector in range(1, RING + 1):
        data = disk[sector * SECTOR : (sector + 1) * SECTOR]
        record = _read(data)
        if record is None:
            if data.strip(b"\0") or len(data) < SECTOR:
                wrong.append(f"Sector {sector} is damaged.")
        elif _sector_of(record.number) != sector:
            wrong.append(f"Sector {sector} holds {record.number}, which belongs elsewhere.")
        else:
            found[record.number] = record
    last = max(found, default=0)
    first = max(1, last - RING + 1)
    missing = [number for number in range(first, last + 1) if number not in found]
    wrong += [f"{number} is missing, but {last} is there." for number in missing]
    return Sequence(
        first=first,
        last=last,
        whole_to=missing[0] - 1 if missing else last,
        starts=len({record.start for record in found.values()}),
        wrong=(*wrong, *_overlaps(found)),
    )


def make_record(number: int, start: int) -> bytes:
    """Return a sector as the guest writes it."""
    value = number ^ start
    words = [number, start]
    for _ in range(_WORDS):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
        words.append(value)
    return _MAGIC + b"".join(word.to_bytes(4, "little") for word in words)


def _read(data: bytes | bytearray) -> Record | None:
    number, start = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
    if number == 0 or data != make_record(number, start):
        return None
    return Record(number=number, start=start)


def _sector_of(number: int) -> int:
    return (number - 1) % RING + 1


def _overlaps(found: Mapping[int, Record]) -> list[str]:
    """Say where a guest wrote on after a later start of it had written: two ran at once."""
    wrong, over = [], set[int]()
    previous: Record | None = None
    for number in sorted(found):
        record = found[number]
        if previous and previous.start != record.start:
            over.add(previous.start)
            if record.start in over:
                wrong.append(f"{number} was written by a guest after another had taken its place.")
        previous = record
    return wrong


def main() -> int:
    """Print what is there; 1 if something is wrong with it."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.sequence")
    parser.add_argument("disk", metavar="DISK", help="a file, a device, or - for standard input")
    name = parser.parse_args().disk
    try:
        if name == "-":
            data = sys.stdin.buffer.read(BYTES)
        else:
            with Path(name).open("rb") as disk:
                data = disk.read(BYTES)
    except OSError as error:
        print(f"{name} cannot be read: {error.strerror}.", file=sys.stderr)  # noqa: T201 -- a command
        return 2
    sequence = check(data)
    print(sequence)  # noqa: T201 -- a command
    return 1 if sequence.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
