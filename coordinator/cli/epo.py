"""``gnt-cluster epo``: an emergency power-off in order, and everything on again.

Off: first the instances, then the nodes; the master, which does all that, is left to the operator.
On: first the nodes, and when all answer, the instances that should run.
"""

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from common.errors import Conflict, InvalidRequest
from common.luxi.client import Client
from coordinator.cli.asking import ask
from coordinator.cli.confirm import confirm
from coordinator.cli.connection import connect
from coordinator.cli.names import full_names
from coordinator.cli.parser import Parser
from coordinator.cli.run_jobs import run_jobs
from coordinator.cli.telling import in_words

POLL_S = 5.0  # between two looks whether nodes are back
BOOT_S = 1800.0  # servers test their memory before they boot
PAUSE_S = 86_400.0  # for which the watcher starts nothing
_FIELDS = ("name", "master", "pinst_list", "sinst_list", "powered", "offline")


class Affected(NamedTuple):
    """A node; ``powered`` is None where nothing switches it."""

    name: str
    master: bool
    pinst_list: list[str]
    sinst_list: list[str]
    powered: bool | None
    offline: bool


def epo(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster epo``."""
    parser = Parser(
        command,
        "Stop all instances of nodes, and then switch the nodes off; with --on, switch them on, "
        "and start what should run when all of them answer.",
    )
    parser.add_argument("names", nargs="*", metavar="NODE|GROUP", help="which")
    parser.add_argument("-f", "--force", action="store_true", help="do not ask")
    parser.add_argument("--on", action="store_true", help="on instead of off")
    parser.add_argument("--groups", action="store_true", help="the names are those of groups")
    parser.add_argument("--all", action="store_true", help="the whole cluster")
    parser.add_argument(
        "--oob-timeout", type=int, default=60, metavar="SECONDS", help="for each node (60)"
    )
    parser.add_argument(
        "--shutdown-timeout", type=int, default=120, metavar="SECONDS", help="of instances (120)"
    )
    parser.add_argument(
        "--power-delay", type=float, default=2.0, metavar="SECONDS", help="between two nodes (2)"
    )
    parser.set_defaults(submit=False, print_jobid=False, json=None, dry_run=False, verbose=False)
    options = parser.parse_args(words)
    if bool(options.names) == options.all or (options.groups and options.all):
        raise InvalidRequest("Name nodes, or groups with --groups, or say --all.")
    with connect() as client:
        nodes = _nodes(client, options)
        names = in_words([node.name for node in nodes])
        if not options.force:
            confirm(f"Switch {'on' if options.on else 'off, with all that runs there,'} {names}?")
        return _on(client, options, nodes) if options.on else _off(client, options, nodes)


def to_switch(nodes: Iterable[Affected], *, on: bool) -> tuple[list[str], list[str]]:
    """Return the nodes to be switched, and what there is to say of the others."""
    switched, told = [], []
    for node in nodes:
        if node.master and on:
            continue  # it is on: it is where this runs
        if node.master:
            told.append(f"Node {node.name} is the master, and the last one: switch it off by hand.")
        elif node.offline and on:
            told.append(f"Node {node.name} is marked offline, and left as it is.")
        elif node.powered is None:
            told.append(f"Nothing switches node {node.name}, which has no oob_program.")
        elif node.powered is on:
            told.append(f"Node {node.name} is {'on' if on else 'off'} already.")
        else:
            switched.append(node.name)
    return switched, told


def _nodes(client: Client, options: argparse.Namespace) -> list[Affected]:
    """Return the nodes that are meant.

    Raises:
        NotFound: one does not exist.
        Conflict: the master is among them, and not the whole cluster is meant.
    """
    wanted: Any = None
    if options.names:
        kind, field = ("group", "group") if options.groups else ("node", "name")
        found = full_names(client, kind, options.names)
        wanted = ["|", *(["==", field, name] for name in found)]
    rows = ask(client, "node", _FIELDS, wanted).as_objects()
    nodes = [Affected(*(row[field] for field in _FIELDS)) for row in rows]
    master = next((node.name for node in nodes if node.master), None)
    if master and not options.all and not options.on:
        raise Conflict(
            f"Node {master} is the master; move the mastership to a node that stays on, or say "
            "--all to switch off the whole cluster."
        )
    return nodes


def _off(client: Client, options: argparse.Namespace, nodes: list[Affected]) -> int:
    there = {name for node in nodes for name in (*node.pinst_list, *node.sinst_list)}
    up = ask(client, "instance", ("name", "admin_state"), None).as_objects()
    running = [each["name"] for each in up if each["name"] in there and each["admin_state"] == "up"]
    # They are to be started again: that they are down is remembered by nobody but this pause.
    client.call("SetWatcherPause", time.time() + PAUSE_S)
    print("The watcher starts nothing for a day; “gnt-cluster epo --on” ends that.")
    stops = [
        {
            "OP_ID": "OP_INSTANCE_SHUTDOWN",
            "instance_name": name,
            "timeout": options.shutdown_timeout,
            "no_remember": True,
        }
        for name in running
    ]
    if stops and run_jobs(client, [[stop] for stop in stops], options, labels=running):
        return 1
    return _switch(client, options, nodes, "power-off")


def _on(client: Client, options: argparse.Namespace, nodes: list[Affected]) -> int:
    code = _switch(client, options, nodes, "power-on")
    names = [node.name for node in nodes if not node.offline]
    _wait(client, names)
    client.call("SetWatcherPause", None)
    homes = ["|", *(["==", "pnode", name] for name in names)]
    wanted = ["&", ["==", "admin_state", "up"], ["==", "status", "ERROR_down"], homes]
    down = [each["name"] for each in ask(client, "instance", ("name",), wanted).as_objects()]
    starts = [
        [{"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": name, "only_if_up": True}]
        for name in down
    ]
    return (run_jobs(client, starts, options, labels=down) if starts else 0) or code


def _switch(
    client: Client, options: argparse.Namespace, nodes: list[Affected], command: str
) -> int:
    switched, told = to_switch(nodes, on=command == "power-on")
    code = 0
    if switched:
        order = {
            "OP_ID": "OP_OOB_COMMAND",
            "command": command,
            "node_names": switched,
            "ignore_status": True,
            "timeout": options.oob_timeout,
            "power_delay": options.power_delay,
        }
        code = run_jobs(client, [[order]], options)
    for line in told:
        print(line)
    return code


def _wait(client: Client, names: list[str]) -> None:
    """Return when all nodes answer.

    Raises:
        Conflict: they have not for half an hour.
    """
    wanted = ["|", *(["==", "name", name] for name in names)]
    end, told = time.monotonic() + BOOT_S, ""
    while True:
        rows = ask(client, "node", ("name", "ctotal"), wanted).as_objects()
        silent = [row["name"] for row in rows if row["ctotal"] is None]
        if not silent:
            return
        if time.monotonic() > end:
            raise Conflict(
                f"{in_words(silent)} did not come back. The watcher still pauses: mend that, and "
                "give the command again."
            )
        if told != (told := f"Waits for {in_words(silent)}."):
            print(told, flush=True)
        time.sleep(POLL_S)  # noqa: TID251 -- a command has no loop
