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
    from coordinator.iallocator.answers import Options
    from coordinator.iallocator.cluster import read_cluster, read_message
    from coordinator.iallocator.jsontext import parse
    from coordinator.iallocator.protocol import answered
    from coordinator.iallocator.requests import read_request

    told = read_message(parse(message))
    seen = read_cluster(told, kvm_node_memory=0)
    return answered(seen, read_request(told.inside("request"), seen), Options())[1]
