"""A guest that needs no operating system: up in a quarter of a second, with 8 MiB of memory.

It fills 6 MiB of its memory, so that moving it takes a while. Then, eighteen times a second, it
adds one to a number, writes a record of it to its first disk, and when the disk has it for good,
eight hexadecimal digits and a new line to its serial console: what is on the console is on the
disk. ``tests.support.sequence`` reads what is there. Started again, it goes on from the largest
number on the disk. When the power button is pressed, it turns itself off. A disk that fails is
tried again and again; without a disk it only counts.

The firmware reads and writes for it, by a driver that does not know of write caches: QEMU then
keeps none, and a write has ended when it is flushed. Source: virtio 1.2, 5.2.6.2; QEMU 7.2,
hw/block/virtio-blk.c. The program is ``tiny_guest.asm``, assembled by Debian's nasm, which makes
flat files for real mode without a linker.
"""

import hashlib
import re
import subprocess
from functools import cache
from pathlib import Path

MEMORY_MIB = 8
DISK_MIB = 1  # the firmware reads no smaller ones
SECTOR = 512

SOURCE = Path(__file__).with_suffix(".asm")
ASSEMBLED = Path(__file__).parents[2] / ".cache" / "guest"  # nodes of the lab have no assembler
_LINE = re.compile(rb"^(going on from )?([0-9A-F]{8})\r?\n", re.MULTILINE)


@cache
def kernel() -> bytes:
    """Return the program as QEMU takes it in the place of a Linux kernel; its disk may be empty.

    Raises:
        RuntimeError: it cannot be assembled.
    """
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    assembled = ASSEMBLED / f"tiny-{digest}"
    if not assembled.exists():
        assembled.parent.mkdir(parents=True, exist_ok=True)
        part = assembled.with_suffix(".part")
        _assemble(part)
        part.rename(assembled)
    return assembled.read_bytes()


def make_disk(path: Path) -> None:
    """Write a disk image that starts the program."""
    path.write_bytes(kernel()[:SECTOR].ljust(DISK_MIB << 20, b"\0"))


def numbers(console: bytes) -> list[int]:
    """Return what a console says the guest has counted; an unfinished line is left out."""
    return [int(digits, 16) for started, digits in _LINE.findall(console) if not started]


def counted(console: bytes) -> int:
    """Return how far a guest has counted since its last start that the console shows."""
    began = last = 0
    for started, digits in _LINE.findall(console):
        last = int(digits, 16)
        began = last if started else began
    return last - began


def _assemble(target: Path) -> None:
    words = ("nasm", "-f", "bin", "-o", str(target), str(SOURCE))
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: TID251 -- there is no loop to block here
    except FileNotFoundError as error:
        raise RuntimeError("nasm is not installed; deploy/setup --test installs it.") from error
    if done.returncode != 0:
        raise RuntimeError(f"nasm could not assemble {SOURCE}: {done.stderr}")
