"""``hsqueeze``: turn off nodes that are not needed, and on again when they are."""

from collections.abc import Sequence
from functools import partial

from common.record import replace
from coordinator.allocator.balancing.squeezing import (
    STANDBY_TAG,
    Squeezed,
    choose_off,
    choose_on,
    dispensable,
    have_room,
    on_standby,
    one_more,
    switch,
)
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools import source
from coordinator.htools.catalogue import named
from coordinator.htools.execute import Job, jobs_of, run_jobs
from coordinator.htools.jobsets import job_sets, script
from coordinator.htools.options import Parsed
from coordinator.htools.output import say
from coordinator.htools.program import run
from coordinator.htools.saving import save_cluster, tell_commands
from coordinator.htools.view import moved
from coordinator.iallocator.names import common_suffix

OPTIONS = named(
    "luxi text-data print-commands exec minimal-resources target-resources save verbose no-headers"
    " static-kvm-node-memory",
    save="write the cluster, before and after, to FILE.original and FILE.squeezed",
)


def squeeze(options: Parsed) -> int:
    """Load, decide, print; returns the exit status."""
    cluster = source.load(options)
    model = ClusterModel(cluster)
    source.warn_of_missing(cluster)
    save_cluster(cluster, options.save, "original", "before hsqueeze run")
    removable, spare = dispensable(cluster), on_standby(cluster)
    if options.verbose > 1:
        say(f"Offline candidates: {_names(cluster, removable)}")
        say(f"Online candidates: {_names(cluster, spare)}")
    standard = cluster.policy.std
    least = one_more(standard, options.minimal_resources)
    if not have_room(model.resources, least):
        wanted = choose_on(cluster, spare, least)
        nodes = spare if wanted is None else wanted
        _turn(cluster, nodes, options, off=False, suffices=wanted is not None)
        return 0
    unneeded = choose_off(cluster, removable, one_more(standard, options.target_resources))
    if unneeded:
        _turn(cluster, unneeded, options, off=True)
        return 0
    _head("'No action'", options)
    _tell_commands("echo Nothing to do", options)
    save_cluster(cluster, options.save, "squeezed", "after hsqueeze doing nothing")
    return 0


def _turn(
    cluster: Snapshot, nodes: Sequence[int], options: Parsed, *, off: bool, suffices: bool = True
) -> None:
    """Turn nodes off or on: they have to be empty before they are off, and on before they fill."""
    names, way = [cluster.nodes[node].name for node in nodes], "off" if off else "on"
    _head(f"'Nodes to {way}line'", options)
    for name in names:
        say(name)
    if options.verbose > 1 and not suffices:
        say("Onlining all nodes will not yield enough capacity")
    after, suffix = switch(cluster, nodes, off=off), common_suffix(cluster)
    moves, sets = _script(cluster, after, suffix), jobs_of(job_sets(after.moves), cluster)
    aliases = [name.removesuffix(suffix) for name in names]
    power = "".join(f"  gnt-node power -f {way} {alias}\n" for alias in aliases)
    if off:
        tag = "".join(f"  gnt-node add-tags {alias} {STANDBY_TAG}\n" for alias in aliases)
        text = f"{moves}\necho Tagging Commands\n{tag}\necho Power Commands\n{power}"
        tags: list[list[Job]] = [[[_tag(name)]] for name in names]
        jobs = [*sets, *tags, _power(names, "power-off")]
    else:
        text = f"echo Power Commands\n{power}{moves}"
        jobs = [_power(names, "power-on"), *sets]
    _tell_commands(text, options)
    if options.exec:
        reason = f"{'condensing' if off else 'expanding'} by {len(nodes)} nodes"
        run_jobs(options.luxi, jobs, program="hsqueeze", reason=reason)
    when = f"after hsqueeze {'run' if off else 'expansion'}"
    save_cluster(moved(after.cluster, after.moves), options.save, "squeezed", when)


def _head(title: str, options: Parsed) -> None:
    if not options.no_headers:
        say(title)


def _names(cluster: Snapshot, nodes: Sequence[int]) -> str:
    return ",".join(cluster.nodes[node].name for node in nodes)


def _script(cluster: Snapshot, after: Squeezed, suffix: str) -> str:
    """The moves' commands; nodes without the suffix, instances by their full name."""
    nodes = tuple(replace(node, name=node.name.removesuffix(suffix)) for node in cluster.nodes)
    return script(job_sets(after.moves), replace(cluster, nodes=nodes), str)


def _tell_commands(text: str, options: Parsed) -> None:
    if options.print_commands is not None:
        tell_commands(text, options.print_commands, "Commands to run:", "hsqueeze")


def _tag(node: str) -> dict[str, object]:
    return {"OP_ID": "OP_TAGS_SET", "kind": "node", "tags": [STANDBY_TAG], "name": node}


def _power(nodes: Sequence[str], command: str) -> list[Job]:
    """One job: nodes marked as on or off, then told to be so."""
    marks: list[dict[str, object]] = [
        {
            "OP_ID": "OP_NODE_SET_PARAMS", "node_name": name, "force": False,
            "offline": command == "power-off", "auto_promote": False,
        }
        for name in nodes
    ]  # fmt: skip
    order: dict[str, object] = {
        "OP_ID": "OP_OOB_COMMAND", "node_names": [*nodes], "command": command, "timeout": 60,
        "ignore_status": False, "power_delay": 2.0,
    }  # fmt: skip
    return [[*marks, order]]


main = partial(run, "hsqueeze", OPTIONS, squeeze)
