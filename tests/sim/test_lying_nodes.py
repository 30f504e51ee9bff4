"""A regular node that answers anything: nothing of it ends, stalls or misleads the coordinator."""

import asyncio
import json
from random import Random
from typing import Any

import pytest

from common.errors import GntError
from common.names import InstanceName
from common.rpc.server import Reply
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.quorum.question import Mode
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.network import Fault, Trip
from tests.support.seeds import seeds

LIAR = "gamma"
BAD_NUMBERS = [-1, 0, 1, 2**40 + 1, 2**53 + 1, 2**63, 2**64, 10**400, 1e308, 0.5, True, "7", None]
BAD_TEXTS = ["", "alpha", "\x1b[2J\x9b", "\u202e", "x" * 300, "y" * 20_000, 7, None, ["a"]]
CODES = [
    "conflict.deposed", "cancelled", "stuck", "unreachable", "bug", "", "of the future",
    "conflict.expired", "not-found", "invalid-request",
]  # fmt: skip
FOREVER_S = 1000.0


class Lying(Fault):
    """Has one node answer with the truth bent, with errors, nonsense, too much, or never."""

    def __init__(self, random: Random) -> None:
        self.lies = 0
        self._random = random

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if trip.target != LIAR:
            return reply
        self.lies += 1
        match self._random.randrange(8):
            case 0:
                await asyncio.sleep(FOREVER_S)
                return reply
            case 1:
                return Reply(200, self._random.choice([b"", b"[]", b"\xff", b"[" * 100_000]))
            case 2:
                return Reply(200, b'{"result":"' + b"z" * (60 << 20) + b'"}')
            case 3 | 4:
                error = {
                    "code": self._random.choice(CODES), "message": self._random.choice(BAD_TEXTS),
                    "detail": {"message": 1, "epoch": 2**53, "self": ["z" * 100_000]},
                }  # fmt: skip
                return Reply(409, json.dumps({"error": error}).encode())
            case _:
                return Reply(200, json.dumps(self._bend(json.loads(reply.body))).encode())

    def _bend(self, value: Any) -> Any:
        """Replace about every third leaf."""
        match value:
            case dict():
                return {key: self._bend(inner) for key, inner in value.items()}
            case list():
                return [self._bend(inner) for inner in value] * self._random.choice([0, 1, 1, 3])
            case _ if self._random.random() < 0.7:
                return value
            case str():
                return self._random.choice(BAD_TEXTS)
            case _:
                return self._random.choice(BAD_NUMBERS)


@pytest.mark.parametrize("seed", seeds())
def test_nothing_that_a_regular_node_answers_harms_the_others(seed: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster(seed=seed, candidates=2) as cluster:
            lying = Lying(Random(seed))
            cluster.network.faults.append(lying)
            for number in range(6):
                await cluster.run(create(f"web{number}", "alpha" if number % 2 else "beta"))
                await _try(cluster, VerifyGroup(group_name="default"))
                # By its own words the liar may be the best place, or none at all.
                await _try(cluster, create(f"anywhere{number}"))
            assert lying.lies > 5
            await cluster.crash_master()
            await cluster.start_master("alpha", Mode.START)
            await cluster.take_over("beta")
            await cluster.run(create("last", "alpha"))
            await cluster.run(RemoveInstance(instance_name=InstanceName("last")))
            assert cluster.master.is_alive

    simulate(scenario())


async def _try(cluster: SimulatedCluster, operation: Any) -> None:
    failure = None
    try:
        await cluster.run(operation)
    except GntError as error:
        failure = error
    if failure:
        assert failure.code != "bug", failure
        assert len(failure.message) < 20_000
