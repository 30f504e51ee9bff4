"""``gnt-cluster copyfile`` and ``command``: what root of the master does on other nodes.

Neither is a job: what is copied or said is nobody else's business, and goes from here straight to
the nodes. They listen because this node is the master, and do what their own root allows.
"""

import argparse
import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from common.errors import GntError, InvalidRequest, NotFound
from coordinator.cli.asking import ask
from coordinator.cli.connection import connect
from coordinator.cli.names import full_names
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import counted, tell, write

if TYPE_CHECKING:
    from common.model.node import Node
    from common.noderpc.remote import Ended, KeptFile, Remote

T = TypeVar("T")

RULE = "-" * 48
FAILED = 1  # exit code: on a node it did not work


def copyfile(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster copyfile``: have a file of this node be the same on others."""
    parser = Parser(command, "Copy a file of the master to the same place on other nodes.")
    parser.add_argument("file", metavar="FILE", help="whose contents, mode and owners are copied")
    _add_nodes(parser)
    parser.add_argument(
        "--use-replication-network",
        action="store_true",
        help="reach nodes by their secondary addresses",
    )
    add_json(parser)
    options = parser.parse_args(words)
    file = read_file(os.path.abspath(options.file))  # noqa: PTH100 -- links stay
    nodes, master = _choose(options)
    others = [node for node in nodes if node.name != master.name]
    told = asyncio.run(_everywhere(others, master, lambda remote: remote.put(file=file)))
    failed = {name: each for name, each in told.items() if isinstance(each, GntError)}
    tell(
        options,
        {name: each.message if isinstance(each, GntError) else "" for name, each in told.items()},
        f"Copied {file.path} to {len(told) - len(failed)} of {counted(len(told), 'node')}.",
    )
    for name, error in failed.items():
        print(f"{name}: {error.message}", file=sys.stderr)
    return FAILED if failed else 0


def command(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster command``: run a line by a shell on nodes, on this one last."""
    parser = Parser(
        command, "Run a command on nodes. The exit status is 0 if it was so everywhere."
    )
    _add_nodes(parser)
    parser.add_argument(
        "-M", "--show-machine-names", action="store_true", help="begin each line with the node"
    )
    parser.add_argument(
        "--failure-only", action="store_true", help="show what did not end with 0 only"
    )
    add_json(parser)
    parser.add_argument(
        "line", metavar="COMMAND", nargs=argparse.REMAINDER, help="and its words, as for a shell"
    )
    options = parser.parse_args(words)
    # “--” before the command ends our own options, and is no word of it.
    spoken = options.line[1:] if options.line[:1] == ["--"] else options.line
    if not spoken:
        raise InvalidRequest("Say which command is to be run.")
    line = " ".join(spoken)
    nodes, master = _choose(options)
    nodes.sort(key=lambda node: node.name == master.name)
    told = asyncio.run(_everywhere(nodes, master, lambda remote: remote.run(line=line)))
    if options.json:
        write(options.json, [_as_object(name, each) for name, each in told.items()], indent=2)
    else:
        _print(told, named=options.show_machine_names, failures_only=options.failure_only)
    return 0 if all(_status(each) == 0 for each in told.values()) else FAILED


def read_file(path: str) -> "KeptFile":
    """Read a file of this node as it is to be on others.

    Raises:
        InvalidRequest: it is no plain file, or too large.
    """
    import grp
    import pwd

    from common.noderpc.remote import MOST_BYTES, KeptFile

    found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode):
        raise InvalidRequest(f"{path} is no plain file.")
    if found.st_size > MOST_BYTES:
        raise InvalidRequest(
            f"{path} has more than {MOST_BYTES >> 20} MiB, which is the most that is copied."
        )
    try:
        owner, group = pwd.getpwuid(found.st_uid).pw_name, grp.getgrgid(found.st_gid).gr_name
    except KeyError as error:
        raise InvalidRequest(f"{path} belongs to a user or group without a name.") from error
    mode = stat.S_IMODE(found.st_mode) & 0o777
    return KeptFile(path=path, data=Path(path).read_bytes(), mode=mode, owner=owner, group=group)


def _add_nodes(parser: Parser) -> None:
    parser.add_argument(
        "-n", "--node", dest="nodes", action="append", metavar="NODE", help="on this one (all)"
    )
    parser.add_argument(
        "-g", "--node-group", dest="group", metavar="GROUP", help="on those of this group"
    )


def _choose(options: argparse.Namespace) -> "tuple[list[Node], Node]":
    """Return the nodes that are meant and in service, as they are reached; and the master.

    Raises:
        NotFound: there is no node or group of that name, or none is left.
    """
    fields = ("name", "uuid", "pip", "sip", "port", "key", "offline", "group")
    with connect() as client:
        (master,) = client.call("QueryConfigValues", ["master_node"])
        names = full_names(client, "node", options.nodes) if options.nodes else None
        if options.group:
            full_names(client, "group", [options.group])
        rows = ask(client, "node", fields, None).as_objects()
    chosen = [
        row
        for row in rows
        if (names is None or row["name"] in names) and options.group in (None, row["group"])
    ]
    offline = [row["name"] for row in chosen if row["offline"]]
    if offline and not options.json:
        print(f"Left out, for they are offline: {', '.join(offline)}.", file=sys.stderr)
    if len(offline) == len(chosen):
        raise NotFound("No node is meant that is in service.")
    by_second = getattr(options, "use_replication_network", False)
    nodes = [_as_node(row, "sip" if by_second else "pip") for row in chosen if not row["offline"]]
    return nodes, next(_as_node(row, "pip") for row in rows if row["name"] == master)


def _as_node(row: Mapping[str, Any], address: str) -> "Node":
    from common.model.node import Node
    from common.names import GroupId, KeyId, NodeId, NodeName

    return Node(
        uuid=NodeId(row["uuid"]),
        name=NodeName(row["name"]),
        primary_ip=row[address],
        port=row["port"],
        key=KeyId(row["key"]),
        group=GroupId(""),
    )


async def _everywhere(
    nodes: "Sequence[Node]", master: "Node", do: "Callable[[Remote], Awaitable[T]]"
) -> "dict[str, T | GntError]":
    """Ask all nodes at once, in the master's epoch; return answers or errors, by name."""
    from common.noderpc.mastership import Mastership
    from common.noderpc.remote import Remote
    from common.paths import Paths
    from coordinator.master.local import calling
    from coordinator.nodes.each import each

    async with calling(Paths()) as looking:
        ballot = await looking.service(Mastership, master).vote()
        calls = looking.with_epoch(ballot.epoch)
        return await each({str(n.name): do(calls.service(Remote, n)) for n in nodes})


def _status(told: "Ended | GntError") -> int | None:
    """Return how it ended; None where it did not."""
    return None if isinstance(told, GntError) else told.status


def _as_object(name: str, told: "Ended | GntError") -> dict[str, Any]:
    error = told.message if isinstance(told, GntError) else ""
    output = "" if isinstance(told, GntError) else told.output
    return {"node": name, "status": _status(told), "output": output, "error": error}


def _print(told: "Mapping[str, Ended | GntError]", *, named: bool, failures_only: bool) -> None:
    """Print what was said in Ganeti's form."""
    for name, each in told.items():
        if failures_only and _status(each) == 0:
            continue
        output = each.message if isinstance(each, GntError) else each.output
        print(RULE)
        if named:
            for line in output.splitlines():
                print(f"{name}: {line}")
        else:
            print(f"node: {name}\n{output}")
        print("it was not run" if _status(each) is None else f"return code = {_status(each)}")
