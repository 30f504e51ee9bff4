"""``hail``: read a request in Ganeti's iallocator protocol, print the answer and what is asked for.

What only few requests need is imported where it is needed: to start takes most of the time of a
small one.
"""

from __future__ import annotations

import gc
import os
import sys

from common.errors import InvalidRequest
from coordinator.allocator.refusal import Reason
from coordinator.htools.catalogue import named
from coordinator.htools.options import Parsed
from coordinator.htools.output import say, tell
from coordinator.htools.program import status_of
from coordinator.iallocator.answers import Options
from coordinator.iallocator.cluster import read_cluster, read_message
from coordinator.iallocator.jsontext import parse
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
    from collections.abc import Sequence
    from typing import Any, NoReturn, TextIO

    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.answers import Answer
    from coordinator.iallocator.fields import Fields
    from coordinator.iallocator.requests import Request

_LARGEST_INPUT = 512 << 20  # characters; a request for 2,000 nodes has 10 million

OPTIONS = named(
    "print-nodes save text-data simulate verbose ignore-dynu ignore-soft-errors no-capacity-checks"
    " restrict-allocation-to mond mond-data mond-xen static-kvm-node-memory strict-compat",
    save="save the cluster before and after to FILE.pre-ialloc and FILE.post-ialloc",
    verbose="say on standard error why each node was refused; twice: what was asked, too",
    strict_compat="answer as Ganeti's hail does even where that is plainly wrong",
)


def main() -> NoReturn:
    """Entry point; the exit status is 0 even if nothing fits, as the protocol wants it."""
    gc.disable()  # all of a message is kept to the end, and looking through it again takes long
    status = run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)
    sys.stderr.flush()
    os._exit(status)  # taking a large message apart piece by piece would be wasted time


def run(words: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """The command on given streams; returns the exit status."""

    def work(parsed: Parsed) -> int:
        say(answer(parse(_request_text(parsed, stdin)), parsed))
        return 0

    return status_of("hail", OPTIONS, work, words, (stdout, stderr))


def _request_text(parsed: Parsed, stdin: TextIO) -> str:
    if not parsed.arguments:
        raise InvalidRequest("This program needs an input file.")
    if len(parsed.arguments) > 1:
        raise InvalidRequest("Only one argument is accepted (the input file)")
    (name,) = parsed.arguments
    try:
        if name == "-":
            text = stdin.read(_LARGEST_INPUT + 1)
        else:
            with open(name, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start-up time
                text = file.read(_LARGEST_INPUT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"cannot read the request: {error}") from error
    if len(text) > _LARGEST_INPUT:
        raise InvalidRequest(f"The input has more than {_LARGEST_INPUT} characters.")
    return text


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
    from common.model.template import MIRRORED
    from common.record import replace
    from coordinator.htools.view import at_home, settled

    moved = [(at, at_home(cluster.instances[at], homes)) for at, homes in answer.after.items()]
    if isinstance(request, AllocateSecondary):
        moved = [(at, replace(one, template=MIRRORED)) for at, one in moved]
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
    from common.record import replace
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.htools.tables import node_table
    from coordinator.htools.view import nodes_now
    from coordinator.iallocator.names import common_suffix

    model, before = ClusterModel(cluster), ClusterModel(start)
    now = []
    for at, node in enumerate(nodes_now(model, cluster, common_suffix(start), range(model.size))):
        # Nobody has measured again what is free: it is less by what has come since.
        memory = before.rows[at].memory - (before.missing[at] - model.missing[at])
        has = node.has.changed(memory=memory)
        now.append(replace(node, has=has, missing=before.missing[at]))
    tell(f"\n{when} cluster status:\n{node_table(now, options.print_nodes)}\n")


def _save(cluster: Snapshot, options: Parsed, which: str) -> None:
    if options.save is not None:
        from coordinator.htools.saving import save_cluster

        when = "before" if which == "pre" else "after"
        save_cluster(cluster, options.save, f"{which}-ialloc", f"{when} iallocator run")
