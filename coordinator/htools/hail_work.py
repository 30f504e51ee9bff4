"""The work of ``hail``: from the request's text to the answer's, with what options add."""

from __future__ import annotations

from coordinator.allocator.refusal import Reason
from coordinator.htools.options import Parsed
from coordinator.htools.output import tell
from coordinator.iallocator.answers import Options
from coordinator.iallocator.cluster import read_cluster, read_message
from coordinator.iallocator.missing import missing
from coordinator.iallocator.protocol import answered
from coordinator.iallocator.requests import (
    AllocateMany,
    AllocateOne,
    AllocateSecondary,
    read_request,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.answers import Answer
    from coordinator.iallocator.fields import Fields
    from coordinator.iallocator.requests import Request


def answer(request: Any, options: Parsed) -> str:
    """Answer a request, as read from JSON.

    Raises:
        GntError: the request or what an option names cannot be read.
    """
    message = read_message(request)
    asked = message.inside("request", "invalid request dict")
    if options.verbose > 2:
        from json import dumps

        tell(f"Received request: {dumps(asked.values)}")
    cluster = read_cluster(message, kvm_node_memory=options.static_kvm_node_memory)
    wanted = read_request(asked, cluster)
    if options.text_data or options.simulate:
        cluster, wanted = _other_cluster(asked, options)
    cluster = _with_loads(cluster, options)
    for line in missing(*cluster.columns):
        tell(line)
    if options.print_nodes is not None:
        _print_nodes("Initial", cluster, cluster, options)
    _save(cluster, options, "pre")
    among = options.restrict_allocation_to
    found, line = answered(
        cluster,
        wanted,
        Options(
            check_capacity=not options.no_capacity_checks,
            ignore_soft_errors=options.ignore_soft_errors,
            among=None if among is None else frozenset(among),
            strict=options.strict_compat,
        ),
    )
    for node, reason in found.refused.items() if options.verbose > 1 else ():
        if reason is not Reason.NONE:
            tell(f"Node {node} {reason.in_words(1)}.")
    if options.print_nodes is not None or options.save is not None:
        after = _after(cluster, wanted, found)
        if options.print_nodes is not None:
            _print_nodes("Final", after, cluster, options)
        _save(after, options, "post")
    return line


def _other_cluster(asked: Fields, options: Parsed) -> tuple[Snapshot, Request]:
    """The cluster that an option names; the request is read again with its instances."""
    from coordinator.htools.source import load

    cluster = load(Parsed({"text_data": options.text_data, "simulate": options.simulate}))
    return cluster, read_request(asked, cluster)


def _with_loads(cluster: Snapshot, options: Parsed) -> Snapshot:
    """Apply what monitoring agents say; without them all instances count alike.

    With ``--ignore-dynu`` they still count alike, not as 0: so does Debian's program, whatever
    its manual says.
    """
    if options.ignore_dynu or not (options.mond_data or options.mond):
        return cluster
    from coordinator.htools.monitoring import with_measured_loads
    from coordinator.htools.source import read_text

    text = read_text(options.mond_data) if options.mond_data else None
    return with_measured_loads(cluster, text, is_xen=options.mond_xen, has_to_be_complete=False)


def _after(cluster: Snapshot, request: Request, answer: Answer) -> Snapshot:
    """The cluster once the answer is carried out."""
    from common.record import replace
    from coordinator.htools.view import at_home, settled

    moved = [(at, at_home(cluster.instances[at], homes)) for at, homes in answer.after.items()]
    if isinstance(request, AllocateSecondary):
        moved = [(at, replace(one, template="drbd")) for at, one in moved]
    news = request.news if isinstance(request, AllocateMany) else ()
    news = (request.new,) if isinstance(request, AllocateOne) else news
    named = {new.instance.name: new.instance for new in news}
    created = [at_home(named[name], homes) for name, homes in answer.created.items()]
    after = settled(cluster, moved, created)
    if isinstance(request, AllocateMany):
        return after
    present = after.instances[: len(cluster.instances)]
    return replace(after, instances=(*created, *present))  # one by itself is first, as with hail


def _print_nodes(when: str, cluster: Snapshot, start: Snapshot, options: Parsed) -> None:
    """Print the nodes; what was free or missing at the ``start`` decides what is now."""
    import numpy as np

    from common.record import replace
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.htools.tables import node_table
    from coordinator.htools.view import nodes_now, whole
    from coordinator.iallocator.names import common_suffix

    state, before = whole(cluster), ClusterModel(start)
    # Nobody has measured again what is free: it is less by what has come since.
    came = np.array(before.missing) - np.array(state.model.missing)
    resources = state.resources.changed(memory=before.resources.memory - came)
    now = [
        replace(node, has=resources.row(node.index), missing=before.missing[node.index])
        for node in nodes_now(state, cluster, common_suffix(start))
    ]
    tell(f"\n{when} cluster status:\n{node_table(now, options.print_nodes)}\n")


def _save(cluster: Snapshot, options: Parsed, which: str) -> None:
    if options.save is not None:
        from coordinator.htools.saving import save_cluster

        when = "before" if which == "pre" else "after"
        save_cluster(cluster, options.save, f"{which}-ialloc", f"{when} iallocator run")
