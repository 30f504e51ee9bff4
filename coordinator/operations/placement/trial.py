"""Ask an allocator by a message, and hear its very words: for who writes one."""

import asyncio
from pathlib import Path

from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.asking import options_of


async def answer_to(cluster: Cluster, program: Path | None, message: str) -> str:
    """Return what a program prints, or the built-in allocator would; nobody looks at the answer.

    Raises:
        AllocatorFailed: the program ended badly.
        InvalidRequest: the built-in allocator cannot read the message.
    """
    if program is None:
        return await asyncio.to_thread(_answer_here, message)
    async with cluster.placing.turn:
        return await cluster.placing.run_program(program, options_of(cluster.config), message)


def _answer_here(message: str) -> str:
    from coordinator.iallocator import show
    from coordinator.iallocator.answers import Options, Refused
    from coordinator.iallocator.cluster import read_cluster
    from coordinator.iallocator.fields import Fields
    from coordinator.iallocator.jsontext import parse
    from coordinator.iallocator.protocol import solve
    from coordinator.iallocator.requests import read_request

    told = Fields.of(parse(message), "the message for allocators")
    seen = read_cluster(told, kvm_node_memory=0)
    try:
        found = solve(seen, read_request(told.inside("request", "its request"), seen), Options())
    except Refused as error:
        return show.answer(success=False, info=str(error), result=[])
    return show.answer(success=True, info=found.info, result=found.result)
