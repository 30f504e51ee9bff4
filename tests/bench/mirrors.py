"""What it costs to activate a mirrored disk beside others: programs and seconds.

Both ends are on one machine, which needs DRBD and a volume group, GANTRY_TEST_GROUP, with which
anything may be done. ``deploy/lab figures`` has it run in a node.
"""

import statistics
import subprocess
import time
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from common.execute import Finished, execute
from common.noderpc.disks import Access
from noded.storage.drbd.eight import netlink
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.lvm import lvm
from tests.support import drbd_pair
from tests.support.drbd_pair import GROUP, DrbdPair
from tests.support.pairs import whole

TIMES = 3
FIRST_MINOR = 200
METADATA_BYTES = 1 << 16  # all that a device of 4 MiB has noted


def main(others: int = 0) -> None:
    """Measure beside so many other devices; those of an earlier call are there still."""
    if not GROUP:
        print("  left out: GANTRY_TEST_GROUP names no volume group (deploy/lab figures does)")
        return
    try:
        have_others(others)
        measure(others)
    finally:
        DrbdPair.remove()  # what others have open stays


def clear() -> None:
    """Leave nothing behind, also of a run that was broken off."""
    remove_others()
    DrbdPair.remove()


def have_others(count: int) -> None:
    """Have so many other devices: attached, each with volumes of its own."""
    there = len(others_there())
    missing = range(there, count)
    if not missing:
        return
    lines = [
        f"lvcreate --yes --zero n --wipesignatures n --size 4M --name other{n}{part} {GROUP}"
        for n in missing
        for part in ("data", "meta")
    ]
    run("lvm", stdin="\n".join(lines))
    metadata = b""
    for n in missing:
        minor = str(FIRST_MINOR + n)
        data, meta = (f"/dev/{GROUP}/other{n}{part}" for part in ("data", "meta"))
        if not metadata:
            run("drbdmeta", "--force", minor, "v08", meta, "flex-external", "create-md")
            metadata = Path(meta).read_bytes()[:METADATA_BYTES]
        with Path(meta).open("r+b") as file:  # nobody minds that all are alike
            file.write(metadata)
        netlink.create(f"other{n}", int(minor))
        run("drbdsetup", "attach", minor, data, meta, "flexible", "--size=4M")


def others_there() -> list[str]:
    shown = run("drbdsetup", "show").splitlines()
    return [line.split()[1] for line in shown if line.startswith("resource other")]


def remove_others() -> None:
    """Take away devices and volumes of whoever ran here."""
    for name in others_there():
        netlink.remove(name)
    volumes = run("lvm", "lvs", "--noheadings", "--options", "lv_name", GROUP).split()
    ours = [f"{GROUP}/{name}" for name in volumes if name.startswith("other")]
    if ours:
        run("lvm", "lvremove", "--yes", *ours)


def measure(others: int) -> None:
    """Print what it costs to activate a disk, as a second copy and then to write to it."""
    taken: dict[str, list[tuple[int, float]]] = {}
    programs = Programs()

    async def story(pair: DrbdPair) -> None:
        await whole(pair)
        for _ in range(TIMES):
            for side in (pair.one, pair.other):
                await side.detach()
            for what, side, access in (
                ("second copy", pair.other, Access.STANDBY),
                ("to write", pair.one, Access.SOLE),
            ):
                taken.setdefault(what, []).append(await programs.counted(side.attach(access)))

    with (
        mock.patch.object(drbd_pair, "LinuxDrbd", partial(LinuxDrbd, programs.run)),
        mock.patch.object(lvm, "execute", programs.run),
    ):
        pair = DrbdPair()
        pair.run(story(pair))
    for what, each in taken.items():
        counts = sorted({count for count, _ in each})
        seconds = statistics.median(took for _, took in each)
        print(
            f"  beside {others:2} others, {what:12} programs {counts}, {seconds:5.2f} s", flush=True
        )


class Programs:
    """Counts what is started."""

    def __init__(self) -> None:
        self.started = 0

    async def run(self, *argv: str, **how: Any) -> Finished:
        self.started += 1
        return await execute(*argv, **how)

    async def counted(self, work: Coroutine[Any, Any, object]) -> tuple[int, float]:
        """Return how many programs something starts, and how many seconds it takes."""
        before, began = self.started, time.perf_counter()
        await work
        return self.started - before, time.perf_counter() - began


def run(*argv: str, stdin: str = "") -> str:
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main()
    clear()
