"""Ask allocators in order, promise what the first that succeeds has chosen, and tell the job's log.

Looking takes time; choosing and promising are one thing, with nothing in between. What was
chosen is checked once more under the job's locks, on new reports of the nodes.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from common.errors import InvalidRequest, NoCapacity, NotFound
from common.model.disk import Disk
from coordinator.iallocator.response import Response, read_response
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import AllocatorFailed, find_program
from coordinator.operations.placement.look import Look, look_about
from coordinator.operations.placement.message import message_of
from coordinator.operations.placement.promises import Promise
from coordinator.state.config import Config

T = TypeVar("T")


class Question(NamedTuple, Generic[T]):
    """One question, as each allocator is asked, and what follows from its answer.

    Attributes:
        disks: whose pools are looked at.
        here: has the built-in one answer; may raise NoCapacity.
        request: what a program is asked.
        read: reads what a program answered; may raise NoCapacity, and InvalidRequest if that
            cannot be.
        promises: what the answer takes of nodes.
        places: who goes where, for the log.
    """

    disks: Sequence[Disk]
    here: Callable[[Look], T]
    request: Callable[[Look], dict[str, Any]]
    read: Callable[[Look, Response], T]
    promises: Callable[[Look, T], Iterable[Promise]]
    places: Callable[[T], Iterable[tuple[str, str]]]


async def ask(cluster: Cluster, allocators: Sequence[str], question: Question[T]) -> tuple[str, T]:
    """Return which allocator succeeded, and its answer; what that takes is promised.

    Raises:
        NoCapacity: the last one found nothing; says why.
        AllocatorFailed: the last one is a program that did not do its work.
        NotFound: there is no such allocator.
    """
    *others, last = allocators
    for name in others:
        try:
            return name, await _ask_one(cluster, name, question)
        except (NoCapacity, AllocatorFailed, NotFound) as error:
            cluster.log(f"{error.message} The next allocator is asked.")
    return last, await _ask_one(cluster, last, question)


async def _ask_one(cluster: Cluster, name: str, question: Question[T]) -> T:
    program = find_program(name, cluster.placing.search_path)
    if program is None:
        found = await _ask_here(cluster, name, question)
    else:
        async with cluster.placing.turn:
            found = await _ask_program(cluster, name, program, question)
    for who, where in question.places(found):
        cluster.log(f"Selected nodes for instance {who} via iallocator {name}: {where}")
    return found


async def _ask_here(cluster: Cluster, name: str, question: Question[T]) -> T:
    look = await look_about(cluster, question.disks)
    try:
        found = question.here(look)
    except NoCapacity:  # the reports may be a second old; nobody is refused for that
        look = await look_about(cluster, question.disks, max_age_s=0.0)
        try:
            found = question.here(look)
        except NoCapacity as error:
            raise _failed(name, error.message, **error.detail) from error
    cluster.promise(*question.promises(look, found))
    return found


async def _ask_program(cluster: Cluster, name: str, program: Path, question: Question[T]) -> T:
    look = await look_about(cluster, question.disks)
    message = message_of(look, question.request(look))
    output = await cluster.placing.run_program(program, options_of(look.config), message)
    try:
        response = _read(output)
        cluster.log(f"{name}: {response.info}")
        found = question.read(look, response)
    except InvalidRequest as error:
        why = error.message.removesuffix(".")
        raise AllocatorFailed(f"Can't compute nodes using iallocator '{name}': {why}.") from error
    except NoCapacity as error:
        raise _failed(name, error.message, **error.detail) from error
    cluster.promise(*question.promises(look, found))
    return found


def _read(output: str) -> Response:
    response = read_response(output)
    if response.success:
        return response
    raise NoCapacity(response.info)


def _failed(name: str, info: str, **detail: Any) -> NoCapacity:
    """Return the error for an allocator that found nothing, in Ganeti's words."""
    return NoCapacity(f"Can't compute nodes using iallocator '{name}': {info}", **detail)


def check_usable(config: Config, names: Iterable[str]) -> None:
    """Refuse nodes that take no instances; a program may be mistaken.

    Raises:
        InvalidRequest: says what is wrong with one.
    """
    for name in names:
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
