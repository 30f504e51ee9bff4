"""``gantry-coordinator``: the master daemon."""

import argparse
import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable
from random import SystemRandom
from typing import NoReturn

import uvloop

from common.errors import Bug, Deposed, GntError
from common.model.node import Node
from common.paths import Paths
from common.ports import port
from common.systemd import Supervisor, log_to_standard_error
from common.tasks import Background
from coordinator.master.local import calling, this_node
from coordinator.master.luxi_server import LuxiServer
from coordinator.master.master import Master, Outside
from coordinator.master.reign import reign
from coordinator.nodes.https import HttpsDial
from coordinator.nodes.stranger import stranger
from coordinator.operations.placement.allocators import search_path_of
from coordinator.quorum.question import Mode, Word

log = logging.getLogger("gantry.coordinator")


def main() -> None:
    """Run until stopped or deposed; exits with 11 when another node is master."""
    arguments = _parser().parse_args()
    log_to_standard_error("gantry-coordinator")
    supervisor = Supervisor()
    try:
        uvloop.run(_serve(Paths(), arguments, supervisor))
    except KeyboardInterrupt:
        sys.exit(130)
    except BaseExceptionGroup as group:
        error = _first(group)
        if not isinstance(error, GntError):
            log.critical("an internal error", exc_info=error)
            sys.exit(Bug.exit_code)
        _leave(error, supervisor)
    except GntError as error:
        _leave(error, supervisor)


def _leave(error: GntError, supervisor: Supervisor) -> NoReturn:
    if isinstance(error, Deposed):
        log.error("stepped down as master: %s", error)
    else:
        log.error("%s", error)
    if error.exit_code == Deposed.exit_code:
        # That another node is master is no failure of this service. To systemd, a service that
        # ends before it was ready has failed, whatever its status.
        supervisor.tell("READY=1", f"STATUS={error}")
    sys.exit(error.exit_code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gantry-coordinator", description="The master daemon.")
    parser.add_argument("--port", type=port, default=1811, help="of this node's noded (1811)")
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="become master in place of another node; gnt-cluster master-failover does this",
    )
    parser.add_argument(
        "--no-voting",
        action="store_true",
        help="without a quorum: you know that no other master runs; needs --yes-do-it",
    )
    parser.add_argument(
        "--local-is-right",
        action="store_true",
        help="with --no-voting: start from this node's state even if another one's is newer",
    )
    parser.add_argument("--yes-do-it", action="store_true", help="confirm --no-voting")
    return parser


def word_of(arguments: argparse.Namespace) -> Word:
    """Return what the operator vouches for.

    Raises:
        SystemExit: the word is given without the confirmation.
    """
    if not (arguments.no_voting or arguments.local_is_right):
        return Word.NONE
    if not arguments.yes_do_it:
        log.error(
            "Without voting two nodes may be master at once, which destroys data. If you know "
            "that no other master runs, add --yes-do-it."
        )
        sys.exit(13)
    return Word.LOCAL_IS_RIGHT if arguments.local_is_right else Word.NO_VOTING


async def _serve(paths: Paths, arguments: argparse.Namespace, supervisor: Supervisor) -> None:
    me = this_node(paths, arguments.port)
    mode = Mode.TAKE_OVER if arguments.take_over else Mode.START
    work = asyncio.current_task()
    assert work is not None
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        work.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    word = word_of(arguments)
    try:
        async with calling(paths) as nodes:
            outside = Outside(
                nodes,
                stranger,
                time.time,
                SystemRandom(),
                paths.luxi_socket.parent,
                line=nodes.dial if isinstance(nodes.dial, HttpsDial) else None,
                search_path=search_path_of(paths),
            )
            await _be_master(paths, me, outside, mode, word, supervisor)
    except (asyncio.CancelledError, GntError, BaseExceptionGroup) as error:
        if not stopping.is_set():
            raise
        # What the stop cut short is no failure of it: the next coordinator finds out.
        first = _first(error) if isinstance(error, BaseExceptionGroup) else error
        if not isinstance(first, asyncio.CancelledError | GntError):
            raise
        log.info("stopped; jobs that ran go on when a coordinator starts again")


async def _be_master(
    paths: Paths, me: Node, outside: Outside, mode: Mode, word: Word, supervisor: Supervisor
) -> None:
    server = LuxiServer(paths.luxi_socket)
    await server.check_free()  # before asking for an epoch: that would depose the other one
    alive = Background()
    reigns = 0

    def is_ready() -> None:
        nonlocal reigns
        reigns += 1
        supervisor.tell("READY=1", f"STATUS={me.name} is the master")
        if reigns == 1:  # in doubt, too, the daemon is alive
            alive.start(supervisor.tell_alive(), name="tell systemd that we are alive")

    try:
        await reign(
            me.name,
            lambda mode, word, above: Master.confirm(me, outside, mode, word, above=above),
            lambda master: _serve_as(master, server, is_ready),
            mode,
            word,
        )
    finally:
        await alive.close()


async def _serve_as(master: Master, server: LuxiServer, is_ready: Callable[[], None]) -> None:
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(master.run(on_ready=ready.set), name="master")
        await asyncio.wait(
            {running, group.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED
        )
        try:
            if ready.is_set():
                await server.start(master.luxi)
                is_ready()
            await running
        finally:
            ready.set()
            await server.stop()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


if __name__ == "__main__":
    main()
