"""How far a job has come, as its log tells it."""

import asyncio

from common.names import JobId
from tests.support.cluster import SimulatedCluster


async def until_step(cluster: SimulatedCluster, number: JobId, title: str) -> None:
    """Wait until a job says that it has begun a step."""
    seen = 0
    while True:
        news = await cluster.master.luxi("WaitForJobChange", number, ["status"], None, seen, 60.0)
        for serial, _, _, message in news[1]:
            seen = serial
            if title in message:
                return
        await asyncio.sleep(0.001)
