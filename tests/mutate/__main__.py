"""Plant every fault, or those named, and print who noticed; ``deploy/mutate`` calls this."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.mutate.fault import Fault, Stale
from tests.mutate.faults import FAULTS
from tests.mutate.plant import copied, look


def main() -> int:
    """Return 1 if a fault survives or cannot be planted."""
    chosen = _chosen()
    width = max(len(fault.name) for fault in chosen)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="gantry-mutate-") as place:
        tree = copied(Path(place))
        for fault in chosen:
            try:
                caught = look(tree, fault)
            except Stale as error:
                bad += 1
                print(f"✗ {fault.name:{width}}      {error}", flush=True)
                continue
            if caught.by:
                print(f"✓ {fault.name:{width}} {caught.took_s:4.0f} s  {caught.by}", flush=True)
            else:
                bad += 1
                print(
                    f"✗ {fault.name:{width}} {caught.took_s:4.0f} s  SURVIVES, though it breaks a "
                    f"promise: {fault.promise}",
                    flush=True,
                )
    print(f"{len(chosen) - bad} of {len(chosen)} faults are caught.")
    return 1 if bad else 0


def _chosen() -> list[Fault]:
    parser = argparse.ArgumentParser(
        prog="deploy/mutate",
        description="Plant faults in a copy of this tree, each breaking one promise, and see which "
        "test notices. Ends with 1 if one survives, or does not fit the code any more.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults to plant (all)")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    options = parser.parse_args()
    if unknown := set(options.names) - {fault.name for fault in FAULTS}:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; --list names all")
    if options.list:
        for fault in FAULTS:
            print(f"{fault.name}: no longer {fault.promise}")
        sys.exit()
    return [fault for fault in FAULTS if not options.names or fault.name in options.names]


if __name__ == "__main__":
    sys.exit(main())
