"""``gantry-noded``: the command line of the node daemon."""

import argparse
import sys

from common.errors import GntError
from common.paths import Paths
from common.ports import own_port
from common.printable import printable
from common.version import VERSION
from noded.memory_lock import prepare_memory

PORT = 1811


def main() -> int:
    """Run the daemon; return the exit status."""
    options = _parser().parse_args()
    try:
        prepare_memory()
        from noded.daemon.serve import run

        run(Paths(), options)
    except GntError as error:
        sys.stderr.write(printable(f"gantry-noded: {error.message}\n"))
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gantry-noded", description="The node daemon of Gantry.")
    parser.add_argument("--address", default="", help="listen on this address only")
    parser.add_argument("--port", type=own_port, default=PORT, help=f"listen on this port ({PORT})")
    parser.add_argument("--no-mlock", action="store_true", help="do not lock the daemon in memory")
    parser.add_argument(
        "--allow-powercycle",
        action="store_true",
        help="reboot this machine when the master orders it; for nodes that have one of their own",
    )
    parser.add_argument("--debug", action="store_true", help="log more")
    parser.add_argument("--version", action="version", version=f"gantry-noded {VERSION}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
