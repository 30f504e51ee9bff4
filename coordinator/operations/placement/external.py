"""Ask an allocator program, and see whether its answer can be."""

from pathlib import Path
from typing import Any

from common.errors import InvalidRequest, NoCapacity
from coordinator.iallocator.response import Response, read_nodes, read_response
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import AllocatorFailed
from coordinator.operations.placement.look import Look
from coordinator.state.config import Config


def failed(name: str, info: str, **detail: Any) -> NoCapacity:
    """Return the error for an allocator that found nothing, in Ganeti's words."""
    return NoCapacity(f"Can't compute nodes using iallocator '{name}': {info}", **detail)


async def ask_program(
    cluster: Cluster, name: str, program: Path, look: Look, request: dict[str, Any]
) -> tuple[str, ...]:
    """Return the nodes that a program chooses for one instance.

    Raises:
        NoCapacity: it finds none; in its own words.
        AllocatorFailed: it ended badly, or answered what cannot be.
    """
    response = await run(cluster, name, program, look, request)
    try:
        nodes = read_nodes(response, request["required_nodes"])
        for node in nodes:
            check_usable(look.config, node)
    except InvalidRequest as error:
        raise nonsense(name, error) from error
    return nodes


async def run(
    cluster: Cluster, name: str, program: Path, look: Look, request: dict[str, Any]
) -> Response:
    """Return what a program answered, if it succeeded.

    Raises:
        NoCapacity, AllocatorFailed: as ``ask_program``.
    """
    from coordinator.operations.placement.message import message_of

    options = options_of(look.config)
    output = await cluster.placing.run_program(program, options, message_of(look, request))
    try:
        response = read_response(output)
    except InvalidRequest as error:
        raise nonsense(name, error) from error
    if not response.success:
        raise failed(name, response.info)
    cluster.log(f"{name}: {response.info}")
    return response


def nonsense(name: str, error: InvalidRequest) -> AllocatorFailed:
    """Return the error for a program whose answer is none."""
    why = error.message.removesuffix(".")
    return AllocatorFailed(f"Can't compute nodes using iallocator '{name}': {why}.")


def check_usable(config: Config, name: str) -> None:
    """Refuse a node that takes no instances; a program may be mistaken.

    Raises:
        InvalidRequest: says what is wrong with it.
    """
    node = config.find_node(name)
    if node is None:
        raise InvalidRequest(f"it names “{name}”, which is no node of this cluster")
    if node.offline or node.drained or not node.vm_capable:
        raise InvalidRequest(f"it names {name}, which takes no instances")


def options_of(config: Config) -> tuple[str, ...]:
    """Return the cluster's parameters for allocators as options, as Ganeti passes them on."""
    return tuple(
        f"--{key}" if value is True or value == "" else f"--{key}={value}"
        for key, value in sorted(config.cluster.default_iallocator_params.items())
    )
