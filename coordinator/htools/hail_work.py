"""The work of ``hail``: from the request's text to the answer's, with what options add."""

from __future__ import annotations

from common.errors import GntError
from coordinator.allocator.refusal import Reason
from coordinator.htools.options import Parsed
from coordinator.iallocator import show
from coordinator.iallocator.answers import Answer, Options, Refused
from coordinator.iallocator.cluster import read_cluster
from coordinator.iallocator.fields import Fields
from coordinator.iallocator.missing import missing
from coordinator.iallocator.protocol import solve
from coordinator.iallocator.requests import read_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.requests import Request


def answer(request: Any, parsed: Parsed, stderr: TextIO) -> str:
    """Answer a request, as read from JSON.

    Raises:
        GntError: the request or what an option names cannot be read.
    """
    message = Fields.of(request, "Parsing input IAllocator message")
    message = Fields(message.values, "invalid iallocator message")
    asked = message.inside("request", "invalid request dict")
    if parsed.verbose > 1:
        from json import dumps

        stderr.write(f"Received request: {dumps(asked.values)}\n")
    cluster = read_cluster(message, kvm_node_memory=parsed.kvm_node_memory)
    wanted = read_request(asked, cluster)
    if parsed.text or parsed.simulate:
        cluster, wanted = _other_cluster(asked, parsed)
    cluster = _with_loads(cluster, parsed, stderr)
    for line in missing(*cluster.columns):
        stderr.write(f"{line}\n")
    if parsed.print_nodes is not None:
        _print_nodes("Initial", cluster, cluster, parsed, stderr)
    _save(cluster, parsed, "pre", stderr)
    options = Options(
        check_capacity=not parsed.no_capacity_checks,
        ignore_soft_errors=parsed.ignore_soft_errors,
        among=None if parsed.among is None else frozenset(parsed.among.split(",")),
        strict=parsed.strict,
    )
    try:
        found = solve(cluster, wanted, options)
        line = show.answer(success=True, info=found.info, result=found.result)
    except Refused as error:
        found = Answer("", [], refused=error.refused)
        line = show.answer(success=False, info=str(error), result=[])
    if parsed.verbose:
        _explain(found, stderr)
    if parsed.print_nodes is not None or parsed.save is not None:
        after = _after(cluster, wanted, found)
        if parsed.print_nodes is not None:
            _print_nodes("Final", after, cluster, parsed, stderr)
        _save(after, parsed, "post", stderr)
    return line


def _other_cluster(asked: Fields, parsed: Parsed) -> tuple[Snapshot, Request]:
    """The cluster that an option names; the request is read again with its instances."""
    from coordinator.htools.source import load

    without_loads = Parsed({"text": parsed.text, "simulate": parsed.simulate}, parsed.arguments)
    cluster = load(without_loads)
    return cluster, read_request(asked, cluster)


def _with_loads(cluster: Snapshot, parsed: Parsed, stderr: TextIO) -> Snapshot:
    """Apply what monitoring agents say; without them all instances count alike.

    With ``--ignore-dynu`` they still count alike, not as 0: so does Debian's program, whatever
    its manual says.
    """
    if parsed.ignore_dynu:
        return cluster
    if parsed.mond_data or parsed.mond:
        from coordinator.htools.agents import ask_agents
        from coordinator.htools.monitoring import with_cpu_loads
        from coordinator.htools.source import read_text

        if parsed.mond_data:
            reports = read_text(parsed.mond_data)
        else:
            reports, silent = ask_agents([node.name for node in cluster.nodes])
            if silent:
                stderr.write(
                    f"Warning: no load is known, since {len(silent)} monitoring agent(s) do not "
                    f"answer: {', '.join(silent[:5])}\n"
                )
        cluster = with_cpu_loads(cluster, reports)
    return cluster


def _explain(found: Answer, stderr: TextIO) -> None:
    for node, reason in found.refused.items():
        if reason is not Reason.NONE:
            stderr.write(f"Node {node} {reason.in_words(1)}.\n")


def _after(cluster: Snapshot, request: Request, found: Answer) -> Snapshot:
    from coordinator.htools.aftermath import cluster_after

    return cluster_after(cluster, request, found)


def _print_nodes(
    when: str, cluster: Snapshot, start: Snapshot, parsed: Parsed, stderr: TextIO
) -> None:
    """Print the nodes; what was free or missing at the ``start`` decides what is now."""
    import numpy as np

    from common.record import replace
    from coordinator.allocator.balancing.group_state import GroupState
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.htools.source import common_suffix
    from coordinator.htools.tables import node_table
    from coordinator.htools.view import nodes_now

    suffix = common_suffix(start)
    everyone = np.arange(len(cluster.nodes))
    state, before = GroupState(ClusterModel(cluster), everyone), ClusterModel(start)
    # Nobody has measured again what is free: it is less by what has come since.
    came = np.array(before.missing) - np.array(state.model.missing)
    resources = state.resources.changed(memory=before.resources.memory - came)
    now = nodes_now(state, cluster, lambda name: name.removesuffix(suffix))
    now = replace(now, resources=resources, missing=list(before.missing))
    stderr.write(f"\n{when} cluster status:\n")
    stderr.write(f"{node_table(now, everyone.tolist(), parsed.print_nodes)}\n")


def _save(cluster: Snapshot, parsed: Parsed, which: str, stderr: TextIO) -> None:
    if parsed.save is None:
        return
    from pathlib import Path

    from coordinator.htools.text import format_cluster

    path = Path(f"{parsed.save}.{which}-ialloc")
    when = "before" if which == "pre" else "after"
    try:
        path.write_text(format_cluster(cluster), encoding="utf-8")
    except OSError as error:
        raise GntError(f"{path}: cannot be written ({error.strerror})") from error
    stderr.write(f"The cluster state {when} iallocator run has been written to file '{path}'\n")
