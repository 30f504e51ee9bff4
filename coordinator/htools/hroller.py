"""``hroller``: in which rounds nodes can be rebooted without stopping what is mirrored."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import chain

from common.errors import InvalidRequest
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.rolling.colouring import WAYS, Graph, classes
from coordinator.allocator.rolling.layout import Layout, layout_of, moves_between
from coordinator.allocator.rolling.rounds import Mover, Round, graph_of_nodes
from coordinator.allocator.snapshot import NOWHERE, Snapshot
from coordinator.htools import source
from coordinator.htools.catalogue import named
from coordinator.htools.options import Parsed
from coordinator.htools.output import say, tell
from coordinator.htools.program import run
from coordinator.htools.saving import save_cluster
from coordinator.htools.tables import listed
from coordinator.iallocator.names import groups_named

OPTIONS = named(
    "luxi master ialloc-src text-data offline offline-maintenance verbose quiet no-headers"
    " node-tags save group print-moves full-evacuation skip-non-redundant ignore-non-redundant"
    " force one-step-only static-kvm-node-memory",
    save="write the cluster, as it is, to FILE.original",
)


def roll(options: Parsed) -> int:
    """Load, plan, print; returns the exit status."""
    loaded = source.load(options)
    model = ClusterModel(loaded)
    if options.verbose != 0:
        source.warn_of_missing(loaded)
    _check_master(loaded, is_forced=options.force)
    cluster = source.with_offline(loaded, options)
    save_cluster(loaded, options.save, "original", "before hroller run")
    layout = layout_of(model)
    online = [index for index, node in enumerate(cluster.nodes) if node.is_usable]
    mover = Mover(cluster.instances, online)
    nodes = _chosen(cluster, options, online, layout, mover)
    if not nodes:
        raise InvalidRequest("Cannot create node graph")
    graph = graph_of_nodes(layout, cluster.instances, nodes, all_off=options.offline_maintenance)
    if options.verbose > 2:
        say(f"Node Graph: {_graph_text(graph)}")
    found = {name: classes(way(graph)) for name, way in WAYS.items()}
    rounds = _rounds(min(found.values(), key=len), layout, mover, options)
    if options.verbose > 1:
        say(_comparison(found))
    _show(_ordered(rounds, nodes, cluster), layout, cluster, options)
    return 0


def _check_master(cluster: Snapshot, *, is_forced: bool) -> None:
    masters = [node.name for node in cluster.nodes if node.is_master]
    if len(masters) > 1:
        names = json.dumps(masters, separators=(",", ":"))
        raise InvalidRequest(f"Found more than one master node: {names}")
    if not masters:
        missing = "No master node found (maybe not supported by backend)."
        if not is_forced:
            raise InvalidRequest(missing)
        tell(f"Warning: {missing}")


def _chosen(
    cluster: Snapshot, options: Parsed, online: Sequence[int], layout: Layout, mover: Mover
) -> frozenset[int]:
    """The nodes to reboot.

    Raises:
        InvalidRequest: the group is not there.
    """
    group = None
    if options.group is not None:
        found = groups_named(options.group, cluster.groups)
        if len(found) != 1:
            raise InvalidRequest("Cannot find target group.")
        group = found[0]
    tags = options.node_tags
    return frozenset(
        node
        for node in online
        if group in {None, cluster.nodes[node].group}
        and (tags is None or not {*tags}.isdisjoint(cluster.nodes[node].tags))
        and not (options.skip_non_redundant and mover.unmirrored(layout, node))
    )


def _rounds(
    colouring: list[list[int]], layout: Layout, mover: Mover, options: Parsed
) -> list[Round]:
    """Split each class until there is room for what has to move.

    Raises:
        InvalidRequest: there is not even when one node is rebooted at a time.
    """
    rounds: list[Round]
    if options.ignore_non_redundant:
        rounds = [(nodes, layout) for nodes in colouring]
    else:
        rounds = _all(
            [mover.rounds_by_room(nodes, layout) for nodes in colouring],
            "Not enough capacity to move non-redundant instances",
        )
    if not options.full_evacuation:
        return rounds
    swapped = []
    for nodes, before in rounds:
        after = mover.failed_over(nodes, before)
        if after is None:
            raise InvalidRequest("Failed to migrate instances off nodes")
        swapped.append((nodes, after))
    return _all(
        [mover.rounds_by_copies(nodes, now) for nodes, now in swapped],
        "Not enough capacity to move secondaries",
    )


def _all(parts: Sequence[list[Round] | None], otherwise: str) -> list[Round]:
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        raise InvalidRequest(otherwise)
    return list(chain.from_iterable(found))


def _ordered(rounds: Sequence[Round], nodes: frozenset[int], cluster: Snapshot) -> list[Round]:
    """Large rounds first, but the master's last, and in it the master last."""

    def is_master(node: int) -> bool:
        return cluster.nodes[node].is_master

    plans = [
        (sorted((node for node in some if node in nodes), key=is_master), layout)
        for some, layout in rounds
    ]
    return sorted(plans, key=lambda plan: (any(map(is_master, plan[0])), -len(plan[0])))


def _show(plans: Sequence[Round], layout: Layout, cluster: Snapshot, options: Parsed) -> None:
    if not options.no_headers:
        say("'First Reboot Group'" if options.one_step_only else "'Node Reboot Groups'")
    for nodes, meanwhile in plans[:1] if options.one_step_only else plans:
        names = [cluster.nodes[node].name for node in nodes]
        lines = names if options.one_step_only else [",".join(names)]
        for line in lines:
            say(line)
        if options.print_moves:
            for index, *homes in moves_between(cluster.instances, layout, meanwhile):
                where = " ".join(cluster.nodes[home].name for home in homes if home != NOWHERE)
                say(f"  {cluster.instances[index].name} {where}")


def _graph_text(graph: Graph) -> str:
    """As Haskell shows an array of lists."""
    rows = ",".join(f"({vertex},{listed(near)})" for vertex, near in sorted(graph.items()))
    return f"array ({min(graph)},{max(graph)}) [{rows}]"


def _comparison(found: dict[str, list[list[int]]]) -> str:
    """How each way of colouring did, the one with fewest colours first."""
    worst_first = sorted(found.items(), key=lambda each: -len(each[1]))
    text, before = "", 0
    for name, colours in reversed(worst_first):
        sizes = ",".join(str(len(some)) for some in colours)
        join = "" if not text else " TIE " if len(colours) == before else " LOOSE "
        text += f"{join}{name}: {len(colours)} ({sizes})"
        before = len(colours)
    return text


main = partial(run, "hroller", OPTIONS, roll)
