"""``hinfo``: how a cluster and its groups stand."""

from functools import partial

from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import standing_of
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import source
from coordinator.htools.catalogue import named
from coordinator.htools.options import Parsed
from coordinator.htools.output import say, tell
from coordinator.htools.program import run
from coordinator.htools.tables import (
    aligned,
    instance_table,
    node_table,
    score_table,
    show,
)
from coordinator.htools.view import instances_on, nodes_now, split_instances
from coordinator.iallocator.names import common_suffix
from coordinator.iallocator.show import policy

OPTIONS = named(
    "print-nodes print-instances text-data master rapi-ca luxi ialloc-src verbose quiet offline"
    " ignore-dynu mond mond-data static-kvm-node-memory"
)


def inform(options: Parsed) -> int:
    """Load and print; returns the exit status."""
    cluster = source.with_offline(source.load(options), options)
    if options.verbose > 0:
        source.warn_of_missing(cluster)
    sizes = (
        (len(cluster.nodes), "node"),
        (len(cluster.instances), "instance"),
        (len(cluster.groups), "node group"),
    )
    counts = ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in sizes)
    say(f"Loaded cluster tags: {','.join(cluster.tags)}")
    if options.verbose > 2:
        say(f"Loaded cluster ipolicy: {policy(cluster.policy)}")
    if options.verbose > 1 and not cluster.instances:
        say("Cluster is empty.")
    say(f"Loaded {counts}")
    suffix = common_suffix(cluster)
    if suffix and options.verbose > 2:
        say(f"Note: Stripping common suffix of '{suffix}' from names")
    if split := split_instances(cluster):
        say("Found instances belonging to multiple node groups:")
        tell("\n".join(f"  {name}" for name in split))
    elif options.verbose > 1:
        say("No split instances found")
    model = ClusterModel(cluster)
    everyone = range(model.size)
    if options.print_instances:
        tell(f"\nInitial instance map:\n{instance_table(cluster.instances, cluster)}")
    if options.print_nodes is not None:
        table = node_table(nodes_now(model, cluster, suffix, everyone), options.print_nodes)
        tell(f"\nCluster status:\n{table}\n")
    if options.verbose > 1:
        _say_groups(cluster, model)
    say(f"Cluster is N+1 {'unhappy' if model.failing(everyone) else 'happy'}")
    score = standing_of(model, everyone)
    say(f"Cluster coefficients:\n{score_table(score.values())}")
    say(f"Cluster score: {show(score.value)}")
    return 0


def _say_groups(cluster: Snapshot, model: ClusterModel) -> None:
    """How each group that has nodes stands."""
    rows = [["Group", "Nodes", "Instances", "Bad_Nodes", "Bad_Instances", "N+1", "Score"]]
    for index, group in enumerate(cluster.groups):
        if not (nodes := model.groups.get(index)):
            continue
        bad, here = model.failing(nodes), [model.group_of[p] == index for p in model.primary_of]
        touched = sum(here[one] for one in instances_on(model, bad))
        counts = map(str, (len(nodes), sum(here), len(bad), touched, not bad))
        rows.append([group.name, *counts, show(standing_of(model, nodes).value)])
    say("Node group information:")
    say(aligned(rows, (False, True, True, True, True, False, True), "  "))


main = partial(run, "hinfo", OPTIONS, inform)
