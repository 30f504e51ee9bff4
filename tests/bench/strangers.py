"""What 10,000 strangers cost noded and the monitor, and those who call them meanwhile."""

import argparse
import tempfile
from pathlib import Path

from tests.contract.test_strangers import DAEMONS, besieged
from tests.support.namespace import in_new_network

COUNT, AT_ONCE = 10_000, 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    options = parser.parse_args()
    print(f"{options.count} strangers in every lazy and hostile way, {options.at_once} at once")
    for daemon in DAEMONS:
        with tempfile.TemporaryDirectory() as root:
            told = in_new_network(
                lambda: besieged(Path(root), daemon, options.count, options.at_once)  # noqa: B023
            )
        print(f"  {daemon}: {told}")


if __name__ == "__main__":
    main()
