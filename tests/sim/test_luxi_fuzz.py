"""Whatever is asked over the socket of the coordinator, the answer is no internal error."""

import asyncio
import json
from pathlib import Path
from random import Random
from typing import Any

from common.errors import GntError
from common.luxi.answers import read_request
from common.luxi.framing import END
from coordinator.master.luxi_server import LuxiServer
from tests.sim.settings import create
from tests.sim.test_luxi_answers import ASKED
from tests.support.any_values import any_value, spoiled
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.seeds import seeds

REQUESTS = 250


def test_no_request_ends_in_an_internal_error(tmp_path: Path) -> None:
    for seed in seeds(1):
        simulate(bombard(Random(seed), tmp_path))


async def bombard(random: Random, folder: Path) -> None:
    async with simulated_cluster(nodes=2, seed=1) as cluster:
        await cluster.run(create("web1", "beta"))
        server = LuxiServer(folder / "luxi")
        server._handle = cluster.master.running.luxi
        for _ in range(REQUESTS):
            method, good = random.choice(ASKED)
            args = any_call(good, random)
            try:
                request = read_request(json.dumps({"method": method, "args": args}).encode())
            except GntError:
                continue
            async with asyncio.timeout(3600):
                told = await server._answer(request, 0)
            answer = json.loads(told.removesuffix(END))
            assert "internal error" not in str(answer["result"]), (method, args, answer)
        assert await cluster.master.luxi("QueryInstances", ["web1"], ["name"], False) == [["web1"]]  # noqa: FBT003


def any_call(good: list[Any], random: Random) -> list[Any]:
    if random.random() < 0.2:
        return [any_value(random) for _ in range(random.randrange(5))]
    return [spoiled(each, random) if random.random() < 0.7 else each for each in good]
