"""``gnt-filter``: rules that jobs are held to before they begin."""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import no_json, tell, write
from coordinator.cli.tree import tree

_FIELDS = ("uuid", "watermark", "priority", "predicates", "action", "reason_trail")


def add(command: str, words: Sequence[str]) -> int:
    """``gnt-filter add``."""
    parser = _parser(command, "Make a rule, and print its UUID.")
    return _replace(parser.parse_args(words), None)


def replace(command: str, words: Sequence[str]) -> int:
    """``gnt-filter replace``."""
    parser = _parser(command, "Put a rule in the place of another, or make one of this UUID.")
    parser.add_argument("uuid", metavar="UUID", help="of the rule")
    options = parser.parse_args(words)
    return _replace(options, options.uuid)


def delete(command: str, words: Sequence[str]) -> int:
    """``gnt-filter delete``."""
    parser = Parser(command, "Delete a rule; jobs that it held go on.")
    parser.add_argument("uuid", metavar="UUID", help="of the rule")
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        client.call("DeleteFilter", options.uuid)
    tell(options, {"deleted": options.uuid})
    return 0


def info(command: str, words: Sequence[str]) -> int:
    """``gnt-filter info``."""
    parser = Parser(command, "Show all about rules, or about those named.")
    parser.add_argument("names", nargs="*", metavar="UUID", help="of a rule; none: all rules")
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        rows = client.call("QueryFilters", options.names or None, _FIELDS)
    rules = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
    if options.json:
        write(options.json, rules, indent=2)
        return 0
    for rule in rules:
        print("\n".join(tree(_describe(rule))))
    return 0


def _parser(command: str, description: str) -> Parser:
    parser = Parser(command, description)
    parser.add_argument(
        "--priority", type=int, default=0, metavar="N", help="the smaller is asked first"
    )
    parser.add_argument(
        "--predicates",
        default="[]",
        metavar="JSON",
        help="a list; all have to be true of a job",
    )
    parser.add_argument(
        "--action",
        default="CONTINUE",
        metavar="ACTION",
        help="ACCEPT, PAUSE, REJECT, CONTINUE or '[\"RATE_LIMIT\", N]'",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, for whoever finds a job held")
    add_json(parser)
    return parser


def _replace(options: argparse.Namespace, uuid: str | None) -> int:
    reason = [["gnt:user", options.reason, time.time_ns()]] if options.reason else []
    predicates = _read_predicates(options.predicates)
    action = _read_action(options.action)
    with connect() as client:
        told = client.call("ReplaceFilter", uuid, options.priority, predicates, action, reason)
    tell(options, {"uuid": told}, str(told))
    return 0


def _read_action(text: str) -> Any:
    word, _, limit = text.partition(" ")
    return [word, int(limit)] if limit.strip().isdecimal() else text


def _read_predicates(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"--predicates “{text[:200]}”: {no_json(error)}.") from error


def _describe(rule: Mapping[str, Any]) -> dict[str, Any]:
    action = rule["action"]
    return {
        "UUID": rule["uuid"],
        "Watermark": rule["watermark"],
        "Priority": rule["priority"],
        "Predicates": json.dumps(rule["predicates"], ensure_ascii=False),
        "Action": " ".join(map(str, action)) if isinstance(action, list) else action,
        "Reason trail": [f"{source}: {text}" for source, text, _ in rule["reason_trail"]],
    }
