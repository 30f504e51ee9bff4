"""``hinfo``: how a cluster and its groups stand."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: our products are thin

import numpy as np

from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.score import Score
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import source
from coordinator.htools.hbal_options import PRINT_INSTANCES
from coordinator.htools.options import Parsed
from coordinator.htools.program import run
from coordinator.htools.tables import (
    aligned,
    instance_table,
    node_table,
    score_table,
    show,
)
from coordinator.htools.view import nodes_now
from coordinator.iallocator.show import policy

OPTIONS = (
    source.PRINT_NODES,
    PRINT_INSTANCES,
    source.TEXT,
    source.RAPI,
    source.RAPI_AUTHORITY,
    source.LUXI,
    source.REQUEST,
    source.VERBOSE,
    source.QUIET,
    source.OFFLINE,
    source.IGNORE_DYNU,
    source.MOND,
    source.MOND_DATA,
    source.STATIC_MEMORY,
)  # fmt: skip


def main() -> None:
    """Run the command."""
    run("hinfo", OPTIONS, inform)


def inform(options: Parsed) -> int:
    """Load and print; returns the exit status."""
    cluster = source.with_offline(source.load(options), options)
    model = ClusterModel(cluster)
    if options.verbosity > 0:
        source.warn_of_missing(cluster)
    sizes = (
        (len(cluster.nodes), "node"),
        (len(cluster.instances), "instance"),
        (len(cluster.groups), "node group"),
    )
    counts = ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in sizes)
    _say(f"Loaded cluster tags: {','.join(cluster.tags)}")
    if options.verbosity > 2:
        _say(f"Loaded cluster ipolicy: {policy(cluster.policy)}")
    if options.verbosity > 1 and not cluster.instances:
        _say("Cluster is empty.")
    _say(f"Loaded {counts}")
    suffix = source.common_suffix(cluster)
    if suffix and options.verbosity > 2:
        _say(f"Note: Stripping common suffix of '{suffix}' from names")
    _say_split(cluster, is_verbose=options.verbosity > 1)
    state = GroupState(model, np.arange(len(cluster.nodes)))
    if options.print_instances:
        sys.stderr.write(f"\nInitial instance map:\n{instance_table(cluster.instances, cluster)}")
    if options.print_nodes is not None:
        now = nodes_now(state, cluster, lambda name: name.removesuffix(suffix))
        table = node_table(now, range(len(cluster.nodes)), options.print_nodes)
        sys.stderr.write(f"\nCluster status:\n{table}\n")
    if options.verbosity > 1:
        _say_groups(cluster, model)
    resources = state.resources
    is_happy = not (resources.fails_n1 & ~resources.offline).any()
    _say(f"Cluster is N+1 {'happy' if is_happy else 'unhappy'}")
    score = Score(resources, state.crowding)
    sys.stdout.write(f"Cluster coefficients:\n{score_table(score.values())}")
    _say(f"Cluster score: {show(score.value)}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say_split(cluster: Snapshot, *, is_verbose: bool) -> None:
    """Instances on nodes of different groups."""
    nodes = cluster.nodes
    split = [
        one.name for one in cluster.instances if len({nodes[home].group for home in one.homes}) > 1
    ]
    if split:
        _say("Found instances belonging to multiple node groups:")
        sys.stderr.write("".join(f"  {name}\n" for name in split))
    elif is_verbose:
        _say("No split instances found")


def _say_groups(cluster: Snapshot, model: ClusterModel) -> None:
    """How each group that has nodes stands."""
    rows = [["Group", "Nodes", "Instances", "Bad_Nodes", "Bad_Instances", "N+1", "Score"]]
    for index, group in enumerate(cluster.groups):
        nodes = np.array([i for i, n in enumerate(cluster.nodes) if n.group == index], np.int64)
        if not len(nodes):
            continue
        state = GroupState(model, nodes)
        bad = state.resources.fails_n1 & ~state.resources.offline
        touched = bad[state.primary] | ((state.secondary >= 0) & bad[state.secondary])
        touched &= state.demands.count > 0
        rows.append(
            [
                group.name,
                str(len(nodes)),
                str(len(state.instances)),
                str(int(bad.sum())),
                str(int(touched.sum())),
                str(not bad.any()),
                show(Score(state.resources, state.crowding).value),
            ]
        )
    _say("Node group information:")
    sys.stdout.write(aligned(rows, (False, True, True, True, True, False, True), "  "))


if __name__ == "__main__":
    main()
