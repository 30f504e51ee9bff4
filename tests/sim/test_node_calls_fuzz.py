"""Whatever a node is told by who may tell it, it answers, and never with an internal error."""

import json
from itertools import chain
from random import Random

import msgspec
from msgspec import inspect as info

from common.rpc.declare import CallSpec
from tests.sim.settings import create
from tests.support.any_values import PLAIN, spoiled, typed
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.image import uuid_of
from tests.support.seeds import seeds

CALLS = 300
LEFT_OUT = {
    "facts.powercycle",
    "identity.leave",
    "mastership.watch",
}  # then nobody answers, or late


def test_no_call_ends_in_an_internal_error() -> None:
    for seed in seeds(1):
        simulate(bombard(Random(seed)))


async def bombard(random: Random) -> None:
    async with simulated_cluster(nodes=3, seed=1) as cluster:
        await cluster.run(create("web1", "beta"))
        instance = cluster.config.instance("web1")
        disks = [str(disk.uuid) for disk in cluster.config.disks_of(instance)]
        texts = (each for each in PLAIN if isinstance(each, str) and each.isprintable())
        words = [*texts, instance.uuid, *disks, uuid_of("beta"), "br0", "kvm", "/srv/x", "hmac.key"]
        node = cluster.machines["beta"].noded
        assert node is not None
        calls = [each.calls.values() for each in node._dispatcher._services.values()]
        specs = [call for call in chain.from_iterable(calls) if call.name not in LEFT_OUT]
        reached = set[str]()
        for _ in range(CALLS):
            call = random.choice(specs)
            reply = await node._dispatcher.run(call, body_for(call, random, words))
            told = msgspec.json.decode(reply.body)
            assert "internal error" not in str(told.get("error")), (call.name, told)
            if reply.status == 200:
                reached.add(call.name)
        assert len(reached) > len(specs) / 4  # else it tries nothing but the reading of arguments


def body_for(call: CallSpec, random: Random, words: list[str]) -> bytes:
    arguments = typed(info.type_info(call.arguments), random, words)
    if random.random() < 0.3:
        arguments = spoiled(arguments, random)
    return json.dumps(arguments).encode()
