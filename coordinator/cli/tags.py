"""The commands about tags, of every area whose objects have some."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.errors import InvalidRequest
from coordinator.cli.connection import connect
from coordinator.cli.follow import follow
from coordinator.cli.job_options import add_job_options, common_fields
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.run_jobs import run_jobs
from coordinator.cli.telling import write

_KINDS = {
    "gnt-cluster": "cluster",
    "gnt-group": "nodegroup",
    "gnt-node": "node",
    "gnt-instance": "instance",
    "gnt-network": "network",
}


def add_tags(command: str, words: Sequence[str]) -> int:
    """``gnt-instance add-tags`` and its like."""
    return _change(command, words, "OP_TAGS_SET", "Add tags; those that are there already stay.")


def remove_tags(command: str, words: Sequence[str]) -> int:
    """``gnt-instance remove-tags`` and its like."""
    return _change(command, words, "OP_TAGS_DEL", "Remove tags, all that are named or none.")


def list_tags(command: str, words: Sequence[str]) -> int:
    """``gnt-instance list-tags`` and its like."""
    parser = Parser(command, "Print the tags, one a line.")
    kind = _add_name(parser, command)
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        tags = client.call("QueryTags", kind, options.name)
    if options.json:
        write(options.json, tags)
    elif tags:
        print(*tags, sep="\n")
    return 0


def search_tags(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster search-tags``: exits with 1 when nothing is found."""
    parser = Parser(command, "Find tags by a regular expression, and whose they are.")
    parser.add_argument("pattern", metavar="PATTERN", help="for a part of the tag; RE2's")
    parser.add_argument(
        "--priority",
        default="normal",
        metavar="low|normal|high",
        help="or a number, -20 being the most urgent",
    )
    parser.set_defaults(dry_run=False, reason=None)
    add_json(parser)
    options = parser.parse_args(words)
    wire = {"OP_ID": "OP_TAGS_SEARCH", "pattern": options.pattern}
    with connect() as client:
        number = client.call("SubmitJob", [wire | common_fields("gnt-cluster", options)])
        ended = follow(client, int(number), out=None)
    if ended.failure is not None:
        raise ended.failure
    found = sorted(map(tuple, ended.results[0]))
    if options.json:
        write(options.json, [{"object": path, "tag": tag} for path, tag in found])
    else:
        for path, tag in found:
            print(path, tag)
    return 0 if found else 1


def _change(command: str, words: Sequence[str], opcode: str, help: str) -> int:
    parser = Parser(command, help)
    kind = _add_name(parser, command)
    parser.add_argument("tags", nargs="*", metavar="TAG", help="letters, digits, .+*/:@-_")
    parser.add_argument(
        "--from",
        dest="file",
        metavar="FILE",
        help="tags from a file, too, one a line; “-” reads standard input",
    )
    add_job_options(parser)
    options = parser.parse_args(words)
    tags = [*options.tags, *(_read(options.file) if options.file else ())]
    if not tags:
        raise InvalidRequest("Say which tags: words, or --from a file.")
    wire: dict[str, Any] = {"OP_ID": opcode, "kind": kind, "tags": tags}
    if options.name:
        wire["name"] = options.name
    wire |= common_fields(command.partition(" ")[0], options)
    with connect() as client:
        return run_jobs(client, [[wire]], options)


def _add_name(parser: argparse.ArgumentParser, command: str) -> str:
    """Add the argument that names the object, if there are several; return its kind."""
    program = command.partition(" ")[0]
    if program == "gnt-cluster":
        parser.set_defaults(name="")
    else:
        parser.add_argument("name", metavar=program.removeprefix("gnt-").upper(), help="its name")
    return _KINDS[program]


def _read(file: str) -> list[str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"--from: the file “{file}” cannot be read: {error}.") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
