"""``gnt-node power``, ``health`` and ``restricted-command``: nodes whose systems do not answer."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.asking import query
from coordinator.cli.confirm import confirm
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.job_options import common_fields
from coordinator.cli.parser import Parser, add_json, add_table_options
from coordinator.cli.storage import run
from coordinator.cli.table import table
from coordinator.cli.telling import in_words, write

_WORDS = {"on": "power-on", "off": "power-off", "cycle": "power-cycle", "status": "power-status"}
_NORMAL, _UNAVAILABLE = 0, 3


def power(command: str, words: Sequence[str]) -> int:
    """Switch nodes, or tell whether they are on."""
    parser = _parser(
        command,
        "Switch nodes on or off by the program that the node parameter oob_program names, which "
        "the master runs. A node that is switched off is marked offline first.",
    )
    parser.add_argument("what", choices=tuple(_WORDS), help="what to do")
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="its name; none: all nodes")
    _add_submitting(parser)
    parser.add_argument("-f", "--force", action="store_true", help="do not ask")
    parser.add_argument(
        "--auto-promote", action="store_true", help="make other nodes candidates instead"
    )
    parser.add_argument(
        "--ignore-status", action="store_true", help="switch off what is not marked offline"
    )
    parser.add_argument(
        "--power-delay", type=float, default=2.0, metavar="SECONDS", help="between two nodes (2)"
    )
    options = parser.parse_args(words)
    if options.what == "off" and not options.nodes:
        raise InvalidRequest("Say which nodes are to be switched off.")
    if options.what in ("off", "cycle") and not options.force:
        confirm(f"Switch {in_words(options.nodes) or 'all nodes'}: {options.what}?")
    if options.what == "off" and not options.ignore_status:
        online = ["&", ["==", "offline", False], _named(options.nodes)]
        for node in query("node", ("name",), online).as_objects():
            change = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": node["name"], "offline": True}
            run(change | {"auto_promote": options.auto_promote} | _common(options))
    wire = {"ignore_status": options.ignore_status, "power_delay": options.power_delay}
    rows = _ask(options, _WORDS[options.what], wire)
    if rows is None or options.what != "status":
        return 0
    shown = [[name, _power(state, told)] for name, state, told in rows]
    return _show(options, ("Node", "Power"), shown, rows)


def health(command: str, words: Sequence[str]) -> int:
    """Tell how the parts of nodes are."""
    parser = _parser(command, "Tell how the machines of nodes are, as oob_program says.")
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="its name; none: all nodes")
    options = parser.parse_args(words)
    rows = _ask(options, "health", {}) or []
    shown = [
        [name, item, state]
        for name, how, told in rows
        for item, state in (told if how == _NORMAL else [["", _power(how, None)]])
    ]
    code = _show(options, ("Node", "Item", "Status"), shown, rows)
    return max(code, int(any(state == "CRITICAL" for _, _, state in shown)))


def restricted(command: str, words: Sequence[str]) -> int:
    """Run a command that root of the nodes has allowed."""
    parser = Parser(
        command,
        "Run a command on nodes, through gantry-noded: of those that root has put into "
        "/etc/gantry/restricted-commands there, without arguments.",
    )
    parser.add_argument("restricted", metavar="COMMAND", help="its name")
    parser.add_argument("nodes", nargs="*", metavar="NODE", help="where")
    _add_submitting(parser)
    parser.add_argument("-g", "--node-group", metavar="GROUP", help="on all nodes of a group")
    parser.add_argument(
        "-M", "--show-machine-names", action="store_true", help="before each line (if several)"
    )
    parser.add_argument(
        "--sync", action="store_true", help="not beside jobs that change these nodes"
    )
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    add_json(parser)
    options = parser.parse_args(words)
    wanted = ["==", "group", options.node_group] if options.node_group else _named(options.nodes)
    if not options.nodes and not options.node_group:
        raise InvalidRequest("Say on which nodes, or on which group's with --node-group.")
    names = [node["name"] for node in query("node", ("name",), wanted).as_objects()]
    wire = {"OP_ID": "OP_RESTRICTED_COMMAND", "command": options.restricted, "nodes": names}
    from coordinator.cli.spelled import read_order  # imports the model; who only looks does without

    read_order(wire)
    said = _run(options, wire | {"use_locking": options.sync} | _common(options))
    if said is None:
        return 0
    if options.json:
        write(options.json, [[n, *told] for n, told in zip(names, said, strict=True)])
    for name, (_, text) in zip(names, said, strict=True):
        before = f"{name}: " if options.show_machine_names or len(names) > 1 else ""
        for line in () if options.json else text.rstrip("\n").splitlines():
            print(f"{before}{line}")
    return int(not all(good for good, _ in said))


def _parser(command: str, about: str) -> Parser:
    parser = Parser(command, about)
    parser.add_argument(
        "--oob-timeout", type=int, default=60, metavar="SECONDS", help="for each node (60)"
    )
    parser.add_argument(
        "--priority", default="normal", metavar="low|normal|high", help="of the job"
    )
    add_table_options(parser)
    return parser


def _named(names: Sequence[str]) -> list[Any]:
    return ["|", *(["==", "name", name] for name in names)]


def _common(options: argparse.Namespace) -> dict[str, Any]:
    options.dry_run, options.reason = False, None
    return common_fields("gnt-node", options)


def _add_submitting(parser: Parser) -> None:
    parser.add_argument("--submit", action="store_true", help="do not wait for the job's end")
    parser.add_argument("--print-jobid", action="store_true", help="print the job's number first")


def _run(options: argparse.Namespace, wire: dict[str, Any]) -> Any:
    """Run a job; return its result, None if its end is not waited for."""
    with connect() as client:
        number = int(client.call("SubmitJob", [wire]))
        if getattr(options, "print_jobid", False):
            print(number, flush=True)
        if getattr(options, "submit", False):
            print(f"JobID: {number}", file=sys.stderr)
            return None
        ended = follow(client, number, out=sys.stderr)
    if ended.failure is not None:
        raise ended.failure
    return ended.results[0]


def _ask(options: argparse.Namespace, command: str, more: dict[str, Any]) -> list[list[Any]] | None:
    """Return a node's name, how what is told of it is to be taken, and that."""
    wire = {
        "OP_ID": "OP_OOB_COMMAND",
        "command": command,
        "node_names": options.nodes,
        "timeout": options.oob_timeout,
    }
    told = _run(options, wire | more | _common(options))
    return told and [[name, state, value] for (_, name), (state, value) in told]


def _power(state: int, told: Any) -> str:
    if state != _NORMAL:
        return "no oob_program" if state == _UNAVAILABLE else "not known"
    return "on" if told["powered"] else "off"


def _show(
    options: argparse.Namespace,
    titles: Sequence[str],
    shown: list[list[str]],
    rows: list[list[Any]],
) -> int:
    if options.json:
        write(options.json, [dict(zip((t.lower() for t in titles), r, strict=True)) for r in shown])
    else:
        heads = None if options.no_headers else list(titles)
        for line in table(heads, shown, right=[False] * len(titles), separator=options.separator):
            print(line)
    return int(any(state not in (_NORMAL, _UNAVAILABLE) for _, state, _ in rows))
