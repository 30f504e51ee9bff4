"""Write what this version leaves in a replica: ``python -m tests.golden.write_states 2``.

Done once for each version whose rows, plans or journals differ from those of the one before; what
earlier ones have written is never written anew.
"""

import asyncio
import dataclasses
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from common.errors import GntError, NodeFailure
from common.model.allocation_policy import AllocationPolicy
from common.model.cluster import Override
from common.model.disk import Mode
from common.model.group import Group
from common.model.job import Job, OperationRecord, Status
from common.model.policy import PolicyLayer
from common.model.template import DiskTemplate
from common.names import Epoch, GroupId, GroupName, InstanceName, JobId, NodeName
from common.noderpc.replica import Row
from common.rpc.server import Reply
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.devices import DiskRequest, NicRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.step import Step
from coordinator.operations.test.delay import Delay
from coordinator.state.rows import Put
from tests.golden.states import DIRECTORY, WrittenState, read_replica, write_states
from tests.sim.stories import STORIES
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.network import Fault, Trip
from tests.support.story import Story, changed_recipes, undisturbed


def main(version: str) -> None:
    write_states(DIRECTORY / version / "cluster.json", [simulate(_many_things())])
    left = [state for name, story in STORIES.items() for state in _left(name, story)]
    write_states(DIRECTORY / version / "stories.json", left)


@dataclass
class Noting(Fault):
    """Takes in alpha's replica after each commit, with the newest operation."""

    cluster: SimulatedCluster
    seen: list[tuple[OperationRecord, WrittenState]] = field(default_factory=list)

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if trip.is_commit and trip.target == "alpha":
            state = read_replica("", self.cluster.machines["alpha"].paths.replica)
            newest = max((row for row in state.rows if row.kind == "job"), key=lambda r: int(r.id))
            self.seen.append((msgspec.json.decode(newest.body, type=Job).ops[0], state))
        return reply


def _left(name: str, story: Story) -> Iterator[WrittenState]:
    """Yield states of a story: queued, in the middle of its way forward, and of its way back."""
    seen = simulate(_told(story, failing=""))
    queued = [state for record, state in seen if record.status is Status.QUEUED]
    forward = [state for record, state in seen if record.plan is not None]
    yield _kept(queued[-1], f"{name}, queued")
    if forward:
        yield _kept(forward[len(forward) // 2], f"{name}, going forward")
    undoable = [step.title for step in undisturbed(name, story).undoable if step.do]
    if undoable:
        seen = simulate(_told(story, failing=undoable[-1]))
        failed = (each for each in seen if each[0].failure is not None)
        if back := [state for record, state in failed if record.plan is not None]:
            yield _kept(back[len(back) // 2], f"{name}, going back")


def _kept(state: WrittenState, told: str) -> WrittenState:
    """Leave out jobs that have ended: there are many, and all alike."""
    rows = (row for row in state.rows if not (row.kind == "job" and _has_ended(row)))
    return replace(state, told=told, rows=tuple(rows))


def _has_ended(row: Row) -> bool:
    return msgspec.json.decode(row.body, type=Job).status.is_final


async def _told(story: Story, failing: str) -> list[tuple[OperationRecord, WrittenState]]:
    async with story.told() as cluster:
        operation = story.made(cluster)
        noting = Noting(cluster)
        with changed_recipes(operation, lambda steps: _failing(steps, failing)):
            cluster.network.faults.append(noting)
            await cluster.finished(await cluster.submit(operation))
        return noting.seen


def _failing(steps: Iterator[Step], title: str) -> Iterator[Step]:
    async def do() -> None:
        raise NodeFailure("The disk of gamma is full.")

    for step in steps:
        yield dataclasses.replace(step, do=do) if step.title == title else step


async def _many_things() -> WrittenState:
    """Have one of everything in a cluster, as far as it goes together."""
    async with simulated_cluster(nodes=5, seed=7, candidates=3) as cluster:
        await _make_instances(cluster)
        await cluster.run(ModifyNode(node_name=NodeName("delta"), drained=True, force=True))
        await cluster.run(ModifyNode(node_name=NodeName("gamma"), ndparams={"spindle_count": 4}))
        await cluster.lose_power("epsilon")
        await cluster.run(ModifyNode(node_name=NodeName("epsilon"), offline=True, force=True))
        await cluster.run(
            ModifyCluster(
                default_iallocators={"allocate": "hail", "relocate": "none"},
                default_iallocator_params={"static-kvm-node-memory": "0"},
            )
        )
        await _edit(cluster)
        await _queue(cluster)
        await cluster.settle()
        return read_replica("one of everything", cluster.machines["alpha"].paths.replica)


async def _make_instances(cluster: SimulatedCluster) -> None:
    for name, node, template in (
        ("web1.example.com", "gamma", DiskTemplate.SHAREDFILE),
        ("web2.example.com", "beta", DiskTemplate.FILE),
        ("db1", "alpha", DiskTemplate.DISKLESS),
    ):
        disks = (
            DiskRequest(size="64M", name="system"),
            DiskRequest(size=32, mode=Mode.READ_ONLY),
        )
        await cluster.run(
            CreateInstance(
                instance_name=InstanceName(name), disk_template=template, pnode=node,
                disks=() if template is DiskTemplate.DISKLESS else disks,
                nics=(NicRequest(name="uplink"), NicRequest(guarded=False)),
                beparams={"maxmem": 256, "minmem": 256, "vcpus": 2},
                hvparams={"kernel_args": "ro quiet"} if name == "db1" else {},
                tags=("web", "owner:alice"), start=name != "db1",
            )
        )  # fmt: skip


async def _edit(cluster: SimulatedCluster) -> None:
    """Change by hand what no operation changes yet."""
    state = cluster.state
    other = Group(
        uuid=GroupId("00000000-0000-4000-8000-0000000000a1"), name=GroupName("other"),
        alloc_policy=AllocationPolicy.LAST_RESORT, ipolicy=PolicyLayer(vcpu_ratio=8.0),
        ndparams={"cpu_speed": 1.5}, tags=("rack:7",),
    )  # fmt: skip
    web1, delta = state.config.instance("web1"), state.config.node("delta")
    override = Override(
        time=cluster.now(), epoch=Epoch(2), master=state.config.cluster.master,
        unheard=("beta",), last_job=JobId(4),
    )  # fmt: skip
    changed = replace(
        state.config.cluster, overrides=(override,), tags=("test",), watcher_pause=cluster.now(),
        beparams={"maxmem": 512}, nicparams={"link": "br0"}, ndparams={"spindle_count": 2},
        hvparams={"fake": {"migration_mode": "live"}},
    )  # fmt: skip
    await cluster.master.running.store.commit(
        [
            Put(other), Put(changed), Put(replace(delta, group=other.uuid, tags=("old",))),
            Put(replace(web1, maybe_on=(web1.primary_node, delta.uuid), tags=())),
        ]
    )  # fmt: skip


async def _queue(cluster: SimulatedCluster) -> None:
    """Have jobs in every status, and one in the archive."""
    with suppress(GntError):  # it is there already
        await cluster.run(CreateInstance(
            instance_name=InstanceName("db1"), disk_template=DiskTemplate.DISKLESS,
        ))  # fmt: skip
    await cluster.master.luxi("ArchiveJob", 1)
    running = await cluster.submit(Delay(duration=10_000.0))
    waiting: dict[str, Any] = {"depends": [[running, ["success", "error"]]], "comment": "later"}
    await cluster.submit(StartInstance(instance_name=InstanceName("db1")), **waiting)
    cancelled = await cluster.submit(Delay(duration=1.0), **waiting)
    await cluster.submit(Delay(duration=1.0), Delay(duration=2.0), priority=10, **waiting)
    await cluster.master.luxi("CancelJob", cancelled)
    await asyncio.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
