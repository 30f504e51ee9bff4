"""``hscan``: save what clusters report as text files, and show how they stand in a line each."""

from functools import partial
from pathlib import Path

from common.errors import GntError
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import standing_of
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.catalogue import named
from coordinator.htools.luxi_source import reported_by_luxi, with_own_memory
from coordinator.htools.options import Parsed
from coordinator.htools.output import say
from coordinator.htools.program import run
from coordinator.htools.saving import write
from coordinator.htools.tables import node_table, show
from coordinator.htools.text import format_cluster
from coordinator.htools.view import instances_on, nodes_now
from coordinator.iallocator.names import common_suffix

OPTIONS = named(
    "print-nodes output-dir luxi verbose no-headers static-kvm-node-memory",
    print_nodes="show the nodes of each cluster below its line",
)

_LOCAL = "LOCAL"
_TITLES = ("Nodes", "Inst", "BNode", "BInst", "t_mem", "f_mem", "t_disk", "f_disk", "Score")
_WIDTHS = (5, 5, 5, 5, 6, 6, 6, 6, 10)


def scan(options: Parsed) -> int:
    """Save and show each cluster; returns the exit status: 2 if one cannot be read."""
    names = options.arguments or (_LOCAL,)
    width = max(map(len, names))
    if not options.no_headers:
        titles = zip(_TITLES, _WIDTHS, strict=True)
        say(" ".join((f"{'Name':<{width}}", *(f"{title:>{w}}" for title, w in titles))))
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
        say(f"\nError for {name}: failed to load data. Details:\n{error.message}")
        return False
    _report(name, cluster, options, width, is_kvm=is_kvm)
    return True


def _report(name: str, cluster: Snapshot, options: Parsed, width: int, *, is_kvm: bool) -> None:
    """Show one cluster, and save it as it was reported.

    Raises:
        InvalidRequest: the file cannot be written.
    """
    seen = with_own_memory(cluster, options.static_kvm_node_memory) if is_kvm else cluster
    model = ClusterModel(seen)
    say(f"{name:<{width}} {_line(seen, model)}")
    if options.print_nodes is not None:
        nodes = nodes_now(model, seen, common_suffix(seen), range(model.size))
        say(node_table(nodes, options.print_nodes))
    path = Path(options.output_dir) / f"{name.replace('/', '_')}.data"
    write(path, format_cluster(cluster), "the cluster")


def _line(cluster: Snapshot, model: ClusterModel) -> str:
    nodes, everyone = cluster.nodes, range(model.size)
    bad = model.failing(everyone)
    figures = (
        str(len(nodes)),
        str(len(cluster.instances)),
        str(len(bad)),
        str(len(instances_on(model, bad))),
        f"{sum(node.total_memory for node in nodes):.0f}",
        str(sum(node.free_memory for node in nodes)),
        f"{sum(node.total_disk for node in nodes) / 1024:.0f}",
        str(sum(node.free_disk for node in nodes) // 1024),
    )
    columns = [f"{figure:>{width}}" for figure, width in zip(figures, _WIDTHS, strict=False)]
    return " ".join((*columns, show(standing_of(model, everyone).value)))


main = partial(run, "hscan", OPTIONS, scan)
