"""``show-ispecs-cmd``: how a cluster or group of the same policy is made."""

from collections.abc import Sequence

from coordinator.cli.asking import query
from coordinator.cli.connection import connect
from coordinator.cli.parser import Parser
from coordinator.cli.policy import write_own_policy, write_specs


def show_specs(command: str, words: Sequence[str]) -> int:
    """``gnt-cluster show-ispecs-cmd``."""
    parser = Parser(command, "Print how a cluster of this name, with these sizes, is made.")
    parser.parse_args(words)
    with connect() as client:
        told = client.call("QueryClusterInfo")
    print(f"gnt-cluster init {write_specs(told['ipolicy'])} {told['name']}")
    return 0


def show_group_specs(command: str, words: Sequence[str]) -> int:
    """``gnt-group show-ispecs-cmd``."""
    parser = Parser(command, "Print how a group of this name, with this policy, is made.")
    parser.add_argument(
        "--include-defaults", action="store_true", help="what it has of the cluster, too"
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="its name; none: all groups")
    options = parser.parse_args(words)
    field = "ipolicy" if options.include_defaults else "custom_ipolicy"
    wanted = ["|", *(["==", "name", name] for name in options.groups)] if options.groups else None
    for told in query("group", ("name", field), wanted).as_objects():
        words = ("gnt-group add", write_own_policy(told[field]), told["name"])
        print(" ".join(filter(None, words)))
    return 0
