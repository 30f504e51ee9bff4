"""Have an allocator say how instances get somewhere else: off their node, or to another group."""

import json
from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest, NoCapacity
from common.model.instance import AdminState
from coordinator.iallocator.answers import Options, Refused
from coordinator.iallocator.response import Moves, read_moves
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.filling import backend
from coordinator.operations.placement.allocators import find_program, first_success
from coordinator.operations.placement.choose import look_and_tell
from coordinator.operations.placement.external import check_usable, failed, nonsense, run
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import Promise
from coordinator.state.config import Config


async def plan_moves(
    cluster: Cluster,
    allocators: Sequence[str],
    request: dict[str, Any],
    *,
    ignore_soft_errors: bool = False,
) -> Moves:
    """Return what moves, where to, and the jobs for it; the new nodes are promised.

    Args:
        cluster: as the job sees it.
        allocators: to be asked, in order, until one succeeds.
        request: as of ``coordinator.iallocator.document``.
        ignore_soft_errors: of the built-in allocator: go beyond limits that can be exceeded.

    Raises:
        NoCapacity: not all can be moved; says which cannot, and why.
        AllocatorFailed, NotFound: a program did not do its work, or is not there.
    """

    async def attempt(name: str) -> Moves:
        program = find_program(name, cluster.placing.search_path)
        if program is None:
            look = await look_and_tell(cluster)
            result = solve_here(name, look, request, Options(ignore_soft_errors=ignore_soft_errors))
            moves = _read(name, look, result)
            cluster.promise(*promises_of(look.config, moves))
        else:
            async with cluster.placing.turn:
                look = await look_and_tell(cluster)
                response = await run(cluster, name, program, look, request)
                moves = _read(name, look, response.result)
                cluster.promise(*promises_of(look.config, moves))
        for instance, group, nodes in moves.moved:
            where = f"{', '.join(nodes)} (group {group})"
            cluster.log(f"Selected nodes for instance {instance} via iallocator {name}: {where}")
        return moves

    return await first_success(allocators, attempt, cluster.log)


def solve_here(name: str, look: Look, request: dict[str, Any], options: Options) -> Any:
    """Ask the built-in allocator, which reads the same message as a program."""
    from coordinator.iallocator.cluster import read_cluster
    from coordinator.iallocator.fields import Fields
    from coordinator.iallocator.jsontext import parse
    from coordinator.iallocator.protocol import solve
    from coordinator.iallocator.requests import read_request
    from coordinator.operations.placement.message import message_of

    message = Fields.of(parse(message_of(look, request)), "the message")
    shown = read_cluster(message, kvm_node_memory=0)  # what they report says it already
    try:
        found = solve(shown, read_request(message.inside("request"), shown), options)
    except Refused as error:
        raise failed(name, str(error)) from error
    return json.loads(json.dumps(found.result))


def _read(name: str, look: Look, result: Any) -> Moves:
    try:
        moves = read_moves(result)
        for _, _, nodes in moves.moved:
            check_usable(look.config, nodes[0] if nodes else "")
    except InvalidRequest as error:
        raise nonsense(name, error) from error
    if moves.failed:
        reasons = "; ".join(f"{instance}: {why}" for instance, why in moves.failed)
        raise NoCapacity(
            f"Can't compute nodes using iallocator '{name}': {reasons}",
            failed=[instance for instance, _ in moves.failed],
        )
    return moves


def promises_of(config: Config, moves: Moves) -> tuple[Promise, ...]:
    """Return what the moves take of the nodes they lead to."""
    promises = []
    for name, _, nodes in moves.moved:
        instance = config.find_instance(name)
        if instance is not None and instance.admin_state is AdminState.UP:
            node, memory = config.node(nodes[0]), backend(config, instance).maxmem
            promises.append(Promise(instance.uuid, node.uuid, memory))
    return tuple(promises)
