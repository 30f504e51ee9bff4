"""``hscan``: save what clusters report as text files, and show how they stand in a line each."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: our products are thin

import numpy as np

from common.errors import GntError, InvalidRequest
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.score import Score
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import source
from coordinator.htools.luxi_source import reported_by_luxi, with_own_memory
from coordinator.htools.options import Option, Parsed, Takes
from coordinator.htools.program import run
from coordinator.htools.tables import node_table, show
from coordinator.htools.text import format_cluster
from coordinator.htools.view import nodes_now

OPTIONS = (
    Option(
        key="print_nodes", name="print-nodes", letter="p", argument="FIELDS", takes=Takes.PERHAPS,
        without="",
        help="show the nodes of each cluster below its line",
    ),
    Option(
        key="directory", name="output-dir", letter="d", argument="PATH", takes=Takes.SOMETHING,
        completes="dir",
        default=".",
        help="write the files to this directory",
    ),
    source.LUXI,
    source.VERBOSE,
    Option(key="no_headers", name="no-headers", default=False, help="leave out the header line"),
    source.STATIC_MEMORY,
)  # fmt: skip

_LOCAL = "LOCAL"
_TITLES = ("Nodes", "Inst", "BNode", "BInst", "t_mem", "f_mem", "t_disk", "f_disk", "Score")
_WIDTHS = (5, 5, 5, 5, 6, 6, 6, 6, 10)


def main() -> None:
    """Run the command."""
    run("hscan", OPTIONS, scan, takes_arguments=True)


def scan(options: Parsed) -> int:
    """Save and show each cluster; returns the exit status: 2 if one cannot be read."""
    names = options.arguments or (_LOCAL,)
    width = max(map(len, names))
    if not options.no_headers:
        titles = zip(_TITLES, _WIDTHS, strict=True)
        _say(" ".join((f"{'Name':<{width}}", *(f"{title:>{w}}" for title, w in titles))))
    if options.arguments:
        could_read = [_scan_remote(name, options, width) for name in names]
        return 0 if all(could_read) else 2
    cluster, is_kvm = reported_by_luxi(options.luxi or "")
    _report(_LOCAL, cluster, options, width, is_kvm=is_kvm)
    return 0


def _scan_remote(name: str, options: Parsed, width: int) -> bool:
    """Scan a cluster by its remote API; says why and returns False if that fails."""
    from coordinator.htools.rapi_source import reported_by_rapi  # ssl takes long to import

    try:
        cluster, is_kvm = reported_by_rapi(name)
    except GntError as error:
        _say(f"\nError for {name}: failed to load data. Details:\n{error.message}")
        return False
    _report(name, cluster, options, width, is_kvm=is_kvm)
    return True


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _report(name: str, cluster: Snapshot, options: Parsed, width: int, *, is_kvm: bool) -> None:
    """Show one cluster, and save it as it was reported.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    seen = with_own_memory(cluster, options.static_memory) if is_kvm else cluster
    state = GroupState(ClusterModel(seen), np.arange(len(seen.nodes)))
    _say(f"{name:<{width}} {_line(seen, state)}")
    if options.print_nodes is not None:
        suffix = source.common_suffix(seen)
        now = nodes_now(state, seen, lambda full: full.removesuffix(suffix))
        sys.stdout.write(node_table(now, range(len(seen.nodes)), options.print_nodes))
    path = Path(options.directory) / f"{name.replace('/', '_')}.data"
    try:
        path.write_text(format_cluster(cluster), encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"Cannot save {name} to {path}: {error.strerror}.") from error


def _line(cluster: Snapshot, state: GroupState) -> str:
    resources, nodes = state.resources, cluster.nodes
    bad = resources.fails_n1 & ~resources.offline
    touched = bad[state.primary] | ((state.secondary >= 0) & bad[state.secondary])
    touched &= state.demands.count > 0
    figures = (
        str(len(nodes)),
        str(len(cluster.instances)),
        str(int(bad.sum())),
        str(int(touched.sum())),
        f"{sum(node.total_memory for node in nodes):.0f}",
        str(sum(node.free_memory for node in nodes)),
        f"{sum(node.total_disk for node in nodes) / 1024:.0f}",
        str(sum(node.free_disk for node in nodes) // 1024),
    )
    columns = [f"{figure:>{width}}" for figure, width in zip(figures, _WIDTHS, strict=False)]
    return " ".join((*columns, show(Score(resources, state.crowding).value)))


if __name__ == "__main__":
    main()
