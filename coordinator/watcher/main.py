"""``gantry-watcher``: one round. A timer of systemd starts it on every node, every half minute."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterator

from common.errors import Bug, Deposed, GntError
from common.luxi.client import Client, NoCoordinator
from common.paths import Paths
from common.systemd import log_to_standard_error
from coordinator.watcher.conversation import Round, Told, Weight
from coordinator.watcher.one_group import within
from coordinator.watcher.round import one_round, run_hooks

log = logging.getLogger("gantry.watcher")

_LEVELS = {Weight.WARNING: logging.WARNING, Weight.INFO: logging.INFO}


def main() -> int:
    """Hold one round with this node's coordinator; return the exit code, 11 if there is none."""
    options = _parser().parse_args()
    log_to_standard_error("gantry-watcher", "%(message)s")
    try:
        with Client(str(Paths().luxi_socket)) as client:
            for talk in _talks(options.node_group, heed_pause=not options.ignore_pause):
                for weight, text in hold(talk, client):
                    log.log(_LEVELS[weight], "%s", text)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 -- the journal gets a sentence, whatever it is
        return _failed(error)
    return 0


def _talks(group: str, *, heed_pause: bool) -> Iterator[Round]:
    """Yield what is to be talked about with the coordinator; each begins when it is asked for."""
    if group:
        yield within(group, one_round(time.time(), heed_pause=heed_pause, of_cluster=False))
        return
    for talk in (one_round, run_hooks):
        yield talk(time.time(), heed_pause=heed_pause)


def _failed(error: Exception) -> int:
    """Say what went wrong; return the exit code."""
    match error:
        case NoCoordinator(detail={"reason": "missing" | "refused"}):
            log.info("No coordinator runs on this node; the watcher works on the master.")
            return Deposed.exit_code
        case GntError():
            log.error("%s", error)
            return error.exit_code
        case _:
            text = f"{type(error).__name__}: {error}"
            shown = error if "GANTRY_DEBUG" in os.environ else None
            log.critical("This is a bug of Gantry: %s.", text, exc_info=shown)
            return Bug.exit_code


def hold(conversation: Round, client: Client) -> list[Told]:
    """Hold a conversation over a socket; return what it ends with.

    Raises:
        GntError: the coordinator refused a request, or cannot be reached.
    """
    try:
        request = next(conversation)
        while True:
            request = conversation.send(client.call(request.method, *request.args))
    except StopIteration as end:
        told: list[Told] = end.value
        return told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gantry-watcher",
        description="Have instances started that should run and do not, and old jobs archived.",
    )
    parser.add_argument(
        "--ignore-pause", action="store_true", help="work even while the watcher is to pause"
    )
    parser.add_argument(
        "--node-group",
        metavar="GROUP",
        default="",
        help="see to the instances on nodes of this group, and to nothing that is the cluster's",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
