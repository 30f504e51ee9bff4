"""``gnt-cluster``: getmaster, master-ping, export-config, queue, version."""

import json
import sys
from collections.abc import Sequence

from common.paths import Paths
from common.version import VERSION
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell
from coordinator.cli.whereabouts import NoCluster


def getmaster(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster getmaster``: answered by any node of the cluster."""
    parser = Parser(command, "Print the name of the master node.")
    add_json(parser)
    options = parser.parse_args(words)
    try:
        master = (Paths().ssconf / "master_node").read_text().strip()
    except FileNotFoundError as error:
        raise NoCluster("This node is in no cluster.") from error
    tell(options, {"master": master}, master)
    return 0


def master_ping(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster master-ping``: for scripts, by exit code."""
    parser = Parser(command, "Tell whether this node is the master, and answers.")
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        (master,) = client.call("QueryConfigValues", ["master_node"])
    tell(options, {"master": master}, f"The master {master} answers.")
    return 0


def export_config(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster export-config``: what Ganeti's programs know as ``config.data``."""
    parser = Parser(
        command,
        "Print the whole configuration as JSON, in the form of Ganeti's config.data, and without "
        "any secret.",
    )
    parser.parse_args(words)
    with connect() as client:
        told = client.call("ExportConfiguration")
    json.dump(told, sys.stdout, indent=2, sort_keys=True, ensure_ascii=False)
    print()
    return 0


def version(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster version``."""
    parser = Parser(command, "Print the version of the software.")
    add_json(parser)
    tell(parser.parse_args(words), {"version": VERSION}, f"Software version: {VERSION}")
    return 0


def queue(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster queue``: close it before maintenance, open it again."""
    parser = Parser(command, "Close the job queue for new jobs, open it again, or tell.")
    parser.add_argument(
        "action",
        choices=("drain", "undrain", "info"),
        help="close it, open it, or tell which it is",
    )
    add_json(parser)
    options = parser.parse_args(words)
    with connect() as client:
        if options.action == "info":
            (drained,) = client.call("QueryConfigValues", ["drain_flag"])
            text = f"The drain flag is {'set' if drained else 'unset'}."
            tell(options, {"drained": bool(drained)}, text)
            return 0
        drain = options.action == "drain"
        client.call("SetDrainFlag", drain)
    tell(options, {"drained": drain})
    return 0
