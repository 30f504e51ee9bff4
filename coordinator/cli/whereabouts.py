"""Why the coordinator cannot be reached, said by what this node knows of its cluster."""

import json
from pathlib import Path

from common.errors import GntError, InvalidRequest
from common.luxi.client import NoCoordinator
from common.paths import Paths


class NotMaster(GntError):
    """The command was given on a node that is not the master."""

    code = "not-master"
    exit_code = 11


class NoCluster(GntError):
    """The command was given on a node of no cluster."""

    code = "no-cluster"
    exit_code = 5


def explain(error: NoCoordinator, paths: Paths | None = None) -> GntError:
    """Return what to tell the operator instead."""
    paths = paths or Paths()
    if error.detail.get("reason") == "forbidden":
        return InvalidRequest(
            f"This user may not use {paths.luxi_socket}; do it as root, or as a member of the "
            "group that owns it."
        )
    master = _read(paths.ssconf / "master_node")
    if master is None:
        return NoCluster(
            "This node is in no cluster. “gnt-cluster init” makes one of it; “gnt-node add” on "
            "the master of another takes it in."
        )
    if error.detail.get("reason") not in ("missing", "refused"):
        return error
    me = this_node(paths)
    if me is not None and me != master:
        return NotMaster(
            f"This node, {me}, is not the master; {master} is. Give the command there.",
            master=master,
        )
    start = "gantry-coordinator" if paths.root.name else "systemctl start gantry-coordinator"
    return NoCoordinator(
        f"The coordinator does not run here, though {master} is the master: “{start}” starts it, "
        "and its log tells why it stopped."
    )


def this_node(paths: Paths) -> str | None:
    """Return this node's name in its cluster; None when it has none, or we may not know."""
    try:
        name = json.loads((paths.identity / "membership.json").read_text())["node"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(name)


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
