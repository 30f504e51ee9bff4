"""What it costs to activate a mirrored disk beside others: programs and seconds.

Both ends are on one machine, which needs DRBD and a volume group, GANTRY_TEST_GROUP, with which
anything may be done. ``deploy/lab figures`` has it run in a node.
"""

import statistics
import subprocess
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any
from unittest import mock

from common.execute import Finished, execute
from common.noderpc.disks import Access
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.lvm import lvm
from tests.support import drbd_pair
from tests.support.drbd_pair import GROUP, DrbdPair
from tests.support.pairs import whole

OTHERS = (0, 49, 99)
TIMES = 5
FIRST_MINOR = 200


def main() -> None:
    if not GROUP:
        print("  left out: GANTRY_TEST_GROUP names no volume group (deploy/lab figures does)")
        return
    try:
        for others in OTHERS:
            have_others(others)
            measure(others)
    finally:
        remove_others()
        DrbdPair.remove()


def have_others(count: int) -> None:
    """Have so many more devices: attached, each with volumes of its own."""
    missing = range(len(there()), count)
    lines = [
        f"lvcreate --yes --zero n --wipesignatures n --size 4M --name other{n}{part} {GROUP}"
        for n in missing
        for part in ("data", "meta")
    ]
    run("lvm", stdin="\n".join(lines))
    for n in missing:
        minor = str(FIRST_MINOR + n)
        data, meta = (f"/dev/{GROUP}/other{n}{part}" for part in ("data", "meta"))
        run("drbdmeta", "--force", minor, "v08", meta, "flex-external", "create-md")
        run("drbdsetup", "new-resource", f"other{n}")
        run("drbdsetup", "new-minor", f"other{n}", minor, "0")
        run("drbdsetup", "attach", minor, data, meta, "flexible", "--size=4M")


def there() -> list[str]:
    """Return the names of the others."""
    shown = run("drbdsetup", "show").splitlines()
    return [line.split()[1] for line in shown if line.startswith("resource other")]


def remove_others() -> None:
    for name in there():
        run("drbdsetup", "down", name)


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
        print(f"  beside {others:2} others, {what:12} programs {counts}, {seconds:5.2f} s")


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
