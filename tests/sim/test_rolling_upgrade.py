"""Candidates of two versions: mastership goes to and fro between them, and nothing is lost."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from typing import Any, Self

import pytest
from msgspec.structs import replace

from common.model.entity import Entity
from common.model.instance import Instance
from common.model.job import Job, OperationRecord, Status
from common.model.node import Node
from common.names import JobId, NodeId, NodeName
from coordinator.master.confirm import NotMaster
from coordinator.operations.base import Operation
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.quorum.question import Word
from coordinator.state.kinds import INSTANCE, JOB, Kind
from coordinator.state.rows import Put
from noded.replica.store import ReplicaFile
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.kinds import knowing
from tests.support.seeds import seeds

CANDIDATES = ("alpha", "beta", "gamma")


class NewerInstance(Instance, kw_only=True):
    colour: str = "none"


class NewerRecord(OperationRecord, kw_only=True, omit_defaults=True):
    mood: str = ""


class NewerJob(Job, kw_only=True, omit_defaults=True):
    ops: tuple[NewerRecord, ...]


class NewerNode(Node, kw_only=True):
    """Its version 2 counts slots; a node of version 1 has as many as its port has digits."""

    slots: int


class Zone(Entity, kw_only=True):
    name: str


def _with_slots(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"slots": len(str(values["port"]))}


ZONE = Kind[str, Zone]("zone", Zone, named=True, since=0)
NEWER: tuple[Kind[Any, Any], ...] = (
    Kind("instance", NewerInstance, named=True, indexes=INSTANCE.indexes),
    Kind("job", NewerJob, key=JOB.key, home=JOB.home),
    Kind("node", NewerNode, named=True, upgrades=(_with_slots,), since=1),
    ZONE,
)
STRICT = Kind[NodeId, NewerNode](
    "node", NewerNode, named=True, upgrades=(_with_slots,)
)  # shuts older ones out


class Versions:
    """Which version the master has just now."""

    def __init__(self) -> None:
        self._knowing = ExitStack()
        self.is_newer = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._knowing.close()

    async def hand_over(self, cluster: SimulatedCluster, name: str, *, newer: bool) -> None:
        """Kill the master, and have a node become it that has the newer version, or the older."""
        await cluster.crash_master()
        self.become(newer=newer)
        await cluster.take_over(name)

    def become(self, *, newer: bool, kinds: tuple[Kind[Any, Any], ...] = NEWER) -> None:
        self._knowing.close()
        self.is_newer = newer
        if newer:
            self._knowing.enter_context(knowing(*kinds))


def _rows(cluster: SimulatedCluster, name: str) -> dict[tuple[str, str], Any]:
    replica = ReplicaFile(cluster.machines[name].paths.replica)
    page = replica.read(None, 10_000)
    replica.close()
    return {(row.kind, row.id): json.loads(bytes(row.body)) for row in page.rows}


class Marks:
    """What only the newer version knows: what it has written, and everybody has to have."""

    def __init__(self) -> None:
        self._expected: dict[tuple[str, str], Callable[[Any], bool]] = {}

    async def write(self, cluster: SimulatedCluster, turn: int) -> None:
        config, jobs = cluster.config, cluster.state.jobs
        web1, gamma = config.instance("web1"), config.node("gamma")
        lan = Zone(uuid=f"zone {turn}", name=f"lan{turn}")
        ended = next(job for job in jobs.values() if job.status.is_final)
        happy = replace(ended.ops[0], mood=f"fine {turn}")
        await cluster.master.running.store.commit(
            [
                Put(replace(web1, colour=f"red {turn}")), Put(lan),
                Put(replace(gamma, slots=100 + turn)),
                Put(replace(ended, ops=(happy, *ended.ops[1:]))),
            ]
        )  # fmt: skip
        self._expected |= {
            ("instance", web1.uuid): lambda row: row["colour"] == f"red {turn}",
            ("zone", lan.uuid): lambda row: row["schema"] == [1, 0],
            ("node", gamma.uuid): lambda row: (row["slots"], row["schema"]) == (100 + turn, [2, 1]),
            ("job", str(ended.id)): lambda row: row["ops"][0]["mood"] == f"fine {turn}",
        }

    def check(self, cluster: SimulatedCluster) -> None:
        """Look at every replica."""
        cluster.check_replicas()
        for name in CANDIDATES:
            rows = _rows(cluster, name)
            for key, is_as_written in self._expected.items():
                assert is_as_written(rows[key]), f"{name} has lost a part of {key}: {rows[key]}"


def _orders(random: Random) -> Iterator[Operation[Any, Any]]:
    """Yield what changes the same objects, whatever comes of it."""
    while True:
        yield random.choice(
            [
                ShutDownInstance(instance_name=WEB1),
                StartInstance(instance_name=WEB1),
                MigrateInstance(instance_name=WEB1, iallocator="hail"),
                ModifyNode(node_name=NodeName("gamma"), ndparams={"spindle_count": 3}),
                create(f"web{random.randrange(10, 10**6)}"),
            ]
        )


@pytest.mark.parametrize("seed", seeds())
def test_mastership_goes_to_and_fro_between_versions_and_nothing_is_lost(seed: int) -> None:
    async def scenario(versions: Versions) -> None:
        random, marks = Random(seed), Marks()
        async with simulated_cluster(nodes=3, seed=seed) as cluster:
            await cluster.run(create("web1", "gamma"))
            orders = _orders(random)
            for turn in range(6):
                number = await cluster.submit(next(orders))
                await asyncio.sleep(random.random() * 0.3)
                name = CANDIDATES[(turn + 1) % 3]
                await versions.hand_over(cluster, name, newer=turn % 2 == 0)
                job = await cluster.finished(number)
                failure = job.ops[0].failure
                assert failure is None or failure.code != "stuck", failure
                if versions.is_newer:
                    assert cluster.config.nodes  # those of version 1 have become of version 2
                    assert all(isinstance(n, NewerNode) for n in cluster.config.nodes.values())
                    await marks.write(cluster, turn)
                await cluster.settle()
                marks.check(cluster)

    with Versions() as versions:
        simulate(scenario(versions))


def test_an_older_master_copies_what_it_does_not_know() -> None:
    async def scenario(versions: Versions) -> None:
        async with simulated_cluster(nodes=3) as cluster:
            marks = Marks()
            await cluster.run(create("web1", "gamma"))
            await versions.hand_over(cluster, "beta", newer=True)
            await marks.write(cluster, 0)
            await versions.hand_over(cluster, "alpha", newer=False)
            gamma = cluster.machines["gamma"]
            await gamma.kill_noded()
            gamma.paths.replica.unlink()
            await gamma.start_noded()
            await cluster.settle(30.0)
            marks.check(cluster)

    with Versions() as versions:
        simulate(scenario(versions))


def test_a_version_that_would_misread_the_state_does_not_become_master_and_says_why() -> None:
    async def scenario(versions: Versions) -> None:
        async with simulated_cluster(nodes=3) as cluster:
            number = await cluster.submit(create("web1", "gamma"))
            await cluster.crash_master()
            versions.become(newer=True, kinds=(STRICT,))
            await cluster.take_over("beta")
            assert (await cluster.finished(number)).status is Status.SUCCESS
            await cluster.master.running.store.commit([Put(cluster.config.node("gamma"))])
            after = await cluster.submit(create("web2", "gamma"))
            await cluster.settle()
            await cluster.crash_master()
            versions.become(newer=False)
            gamma = cluster.config.node("gamma").uuid
            with pytest.raises(NotMaster, match=f"row node {gamma} is of version 2, .* knows 1"):
                await cluster.take_over("alpha")
            versions.become(newer=True, kinds=(STRICT,))
            await cluster.take_over("gamma")
            assert (await cluster.finished(JobId(after))).status is Status.SUCCESS
            await cluster.settle()
            cluster.check_replicas()

    with Versions() as versions:
        simulate(scenario(versions))


@pytest.mark.parametrize("word", [Word.NONE, Word.NO_VOTING])
def test_a_version_that_is_behind_does_not_go_on_from_its_older_state(word: Word) -> None:
    """What it has it could read; what the others have, and was acknowledged, it could not."""

    async def scenario(versions: Versions) -> None:
        async with simulated_cluster(nodes=3) as cluster:
            await cluster.crash_master()
            versions.become(newer=True, kinds=(STRICT,))
            await cluster.take_over("beta")
            cluster.network.isolate("alpha")
            await cluster.master.running.store.commit([Put(cluster.config.node("gamma"))])
            await cluster.crash_master()
            cluster.heal()
            versions.become(newer=False)
            gamma = cluster.config.node("gamma").uuid
            with pytest.raises(NotMaster, match=f"row node {gamma} is of version 2, .* knows 1"):
                await cluster.take_over("alpha", word)
            versions.become(newer=True, kinds=(STRICT,))
            await cluster.take_over("gamma")
            await cluster.settle()
            cluster.check_replicas()

    with Versions() as versions:
        simulate(scenario(versions))
