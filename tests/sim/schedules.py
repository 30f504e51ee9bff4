"""Run chaos with one seed after the other, for as long as one likes; ``deploy/sim`` calls this."""

import argparse
import itertools
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.support.network import Fault

TELL_EVERY_S = 10.0


class Told(NamedTuple):
    """What became of the schedules."""

    ran: int
    failed: list[int]  # their seeds
    took_s: float

    def __str__(self) -> str:
        rate = self.ran / self.took_s if self.took_s else 0.0
        failed = f"{len(self.failed)} failed" if self.failed else "none failed"
        return f"{self.ran} schedules in {self.took_s:.0f} s, {rate:.2f} a second; {failed}"


def play(seed: int, length_s: float, *besides: "Fault") -> list[str]:
    """Play one schedule: odd seeds have five nodes, of which two are regular, even ones three.

    Args:
        seed: of all chance in it; nothing else makes a difference.
        length_s: how long there is trouble, in simulated seconds.
        besides: faults that are there all the time, or that only look.

    Returns:
        What happened.
    """
    # Help is to be had where nothing is installed yet that these import.
    from tests.sim.chaos import Chaos
    from tests.support.clock import simulate
    from tests.support.cluster import simulated_cluster

    async def scenario() -> list[str]:
        nodes, candidates = (5, 3) if seed % 2 else (3, 10)
        async with simulated_cluster(nodes, seed=seed, candidates=candidates) as cluster:
            cluster.network.faults.extend(besides)
            chaos = Chaos(cluster, Random(seed))
            await chaos.rage(length_s)
            return chaos.story

    return simulate(scenario())


def main() -> int:
    """Play schedules; return 1 if one failed."""
    options = _options()
    logging.disable(logging.CRITICAL)
    began = told_last = time.monotonic()
    ran, failed = 0, list[int]()
    try:
        for seed in _seeds(options.first, options.seeds):
            try:
                play(seed, options.length)
            except Exception:  # noqa: BLE001 -- whatever it is, the others are played, too
                failed.append(seed)
                _explain(seed, options)
            ran += 1
            now = time.monotonic()
            if options.seconds is not None and now - began >= options.seconds:
                break
            if now - told_last >= TELL_EVERY_S:
                told_last = now
                print(Told(ran, failed, now - began), flush=True)
    except KeyboardInterrupt:
        pass
    print(Told(ran, failed, time.monotonic() - began))
    if failed:
        print(f"Failed with the seeds: {' '.join(map(str, failed))}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="deploy/sim",
        description="Simulate whole clusters in chaos, each by one seed, and hold them to what "
        "must be true whatever breaks. Ends with 1 if one of them was not.",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="how many (no end)")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="SEED", help="(0)")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so long")
    parser.add_argument(
        "--length", type=float, default=300.0, metavar="S",
        help="simulated seconds of trouble in each (300)",
    )  # fmt: skip
    return parser.parse_args()


def _seeds(first: int, count: int | None) -> Iterator[int]:
    return itertools.count(first) if count is None else iter(range(first, first + count))


def _explain(seed: int, options: argparse.Namespace) -> None:
    """Print what went wrong, what had happened before, and how to see it again."""
    print(f"── seed {seed} failed")
    traceback.print_exc(file=sys.stdout)
    length = f" --length {options.length:g}" if options.length != 300.0 else ""
    print(f"To repeat it: deploy/sim --seeds 1 --from {seed}{length}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
