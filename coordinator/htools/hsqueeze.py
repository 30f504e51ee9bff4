"""``hsqueeze``: turn off nodes that are not needed, and on again when they are."""

from collections.abc import Mapping, Sequence
from functools import partial

from common.errors import InvalidRequest
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

_Jobs = list[list[Job]]


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
        _expand(cluster, spare if wanted is None else wanted, options, suffices=wanted is not None)
        return 0
    unneeded = choose_off(cluster, removable, one_more(standard, options.target_resources))
    if unneeded:
        _condense(cluster, unneeded, options)
        return 0
    _head("'No action'", options)
    _tell_commands("echo Nothing to do", options)
    save_cluster(cluster, options.save, "squeezed", "after hsqueeze doing nothing")
    return 0


def _expand(cluster: Snapshot, nodes: Sequence[int], options: Parsed, *, suffices: bool) -> None:
    """Turn nodes on."""
    _show("'Nodes to online'", nodes, cluster, options)
    if options.verbose > 1 and not suffices:
        say("Onlining all nodes will not yield enough capacity")
    after, alias = switch(cluster, nodes, off=False), _aliases(cluster)
    power = "".join(f"  gnt-node power -f on {alias[node]}\n" for node in nodes)
    _tell_commands(f"echo Power Commands\n{power}{_script(cluster, after, alias)}", options)
    jobs = [_power(cluster, nodes, "power-on"), *jobs_of(job_sets(after.moves), cluster)]
    _run(jobs, f"expanding by {len(nodes)} nodes", options)
    save_cluster(_moved(after), options.save, "squeezed", "after hsqueeze expansion")


def _condense(cluster: Snapshot, nodes: Sequence[int], options: Parsed) -> None:
    """Turn nodes off."""
    _show("'Nodes to offline'", nodes, cluster, options)
    after, alias = switch(cluster, nodes, off=True), _aliases(cluster)
    tag = "".join(f"  gnt-node add-tags {alias[node]} {STANDBY_TAG}\n" for node in nodes)
    power = "".join(f"  gnt-node power -f off {alias[node]}\n" for node in nodes)
    moves = _script(cluster, after, alias)
    _tell_commands(f"{moves}\necho Tagging Commands\n{tag}\necho Power Commands\n{power}", options)
    tags: _Jobs = [[[_tag(cluster.nodes[node].name)]] for node in nodes]
    moves_first = jobs_of(job_sets(after.moves), cluster)
    jobs = [*moves_first, *tags, _power(cluster, nodes, "power-off")]
    _run(jobs, f"condensing by {len(nodes)} nodes", options)
    save_cluster(_moved(after), options.save, "squeezed", "after hsqueeze run")


def _show(title: str, nodes: Sequence[int], cluster: Snapshot, options: Parsed) -> None:
    _head(title, options)
    for node in nodes:
        say(cluster.nodes[node].name)


def _head(title: str, options: Parsed) -> None:
    if not options.no_headers:
        say(title)


def _names(cluster: Snapshot, nodes: Sequence[int]) -> str:
    return ",".join(cluster.nodes[node].name for node in nodes)


def _aliases(cluster: Snapshot) -> list[str]:
    suffix = common_suffix(cluster)
    return [node.name.removesuffix(suffix) for node in cluster.nodes]


def _script(cluster: Snapshot, after: Squeezed, alias: Sequence[str]) -> str:
    """The moves' commands; nodes by their alias, instances by their full name."""
    nodes = tuple(replace(node, name=name) for node, name in zip(cluster.nodes, alias, strict=True))
    return script(job_sets(after.moves), replace(cluster, nodes=nodes), str)


def _tell_commands(text: str, options: Parsed) -> None:
    if options.print_commands is not None:
        tell_commands(text, options.print_commands, "Commands to run:", "hsqueeze")


def _moved(after: Squeezed) -> Snapshot:
    return moved(after.cluster, after.moves)


def _tag(node: str) -> dict[str, object]:
    return {"OP_ID": "OP_TAGS_SET", "kind": "node", "tags": [STANDBY_TAG], "name": node}


def _power(cluster: Snapshot, nodes: Sequence[int], command: str) -> list[Job]:
    """One job: nodes marked as on or off, then told to be so."""
    names = [cluster.nodes[node].name for node in nodes]
    marks: list[dict[str, object]] = [
        {
            "OP_ID": "OP_NODE_SET_PARAMS", "node_name": name, "force": False,
            "offline": command == "power-off", "auto_promote": False,
        }
        for name in names
    ]  # fmt: skip
    order: Mapping[str, object] = {
        "OP_ID": "OP_OOB_COMMAND", "node_names": names, "command": command, "timeout": 60,
        "ignore_status": False, "power_delay": 2.0,
    }  # fmt: skip
    return [[*marks, dict(order)]]


def _run(jobs: _Jobs, comment: str, options: Parsed) -> None:
    """Make the changes, if that is asked for."""
    if not options.exec:
        return
    if options.luxi is None:
        raise InvalidRequest("hsqueeze: Execution of commands possible only on LUXI")
    run_jobs(options.luxi, jobs, program="hsqueeze", reason=comment)


main = partial(run, "hsqueeze", OPTIONS, squeeze)

if __name__ == "__main__":
    main()
