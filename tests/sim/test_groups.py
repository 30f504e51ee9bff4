"""Groups of nodes: made, changed, given nodes, emptied and removed, with what has to be refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity, NotFound
from common.model.allocation_policy import AllocationPolicy
from common.model.instance import AdminState
from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName, NodeId, NodeName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.base import Operation
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes, split_instances
from coordinator.operations.group.evacuate import EvacuateGroup
from coordinator.operations.group.modify import ModifyGroup
from coordinator.operations.group.remove import RemoveGroup
from coordinator.operations.group.rename import RenameGroup
from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.node.add import AddNode
from coordinator.state.rows import Put
from tests.sim.settings import BETA, DELTA, GAMMA, WEB1, create, mirrored
from tests.sim.stories.group import OTHER, another_group, another_group_of_two
from tests.sim.stories.node import add_delta
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import uuid_of

DEFAULT = GroupName("default")


def play(
    story: Callable[[SimulatedCluster], Awaitable[None]], *, nodes: int = 4, strangers: int = 0
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes, strangers=strangers) as cluster:
            await story(cluster)

    simulate(scenario())


async def jobs_done(cluster: SimulatedCluster, order: Operation[Any, Any]) -> None:
    """Give an order that leaves its work to other jobs, and see these succeed."""
    result = await cluster.run(order)
    for accepted, number in result["jobs"]:
        assert accepted
        job = await cluster.finished(number)
        assert all(op.failure is None for op in job.ops), job.ops[0].failure


def home_of(cluster: SimulatedCluster, instance: str) -> str:
    node = cluster.config.nodes[cluster.config.instance(instance).primary_node]
    return cluster.config.groups[node.group].name


async def rows(cluster: SimulatedCluster, *fields: str) -> list[list[Any]]:
    answer = await cluster.master.luxi("Query", "group", list(fields), None)
    return [[value for _, value in row] for row in answer["data"]]


def test_an_instance_is_made_in_the_group_that_is_named() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await another_group_of_two(cluster)
        closed = ModifyGroup(group_name=OTHER, alloc_policy=AllocationPolicy.UNALLOCABLE)
        await cluster.run(closed)
        await cluster.run(replace(create("web2", start=False), group_name=OTHER))
        assert home_of(cluster, "web2") == OTHER
        await cluster.run(ExportInstance(instance_name=InstanceName("web2"), target_node="alpha"))
        await cluster.run(
            ImportInstance(
                instance_name=InstanceName("web3"),
                src_node="alpha",
                src_path="web2",
                group_name=OTHER,
            )
        )
        assert home_of(cluster, "web3") == OTHER
        before = await cluster.snapshot()
        wrong = replace(create("web4"), group_name="nowhere")
        with pytest.raises(NotFound, match="nowhere"):
            await cluster.run(wrong)
        with pytest.raises(InvalidRequest, match="a group whose nodes are chosen from, not both"):
            await cluster.run(replace(create("web4", "beta"), group_name=OTHER))
        assert await cluster.snapshot() == before

    play(story)


def test_a_group_is_made_changed_renamed_and_removed() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(
            AddGroup(
                group_name=OTHER, alloc_policy=AllocationPolicy.LAST_RESORT,
                ndparams={"spindle_count": 4}, ipolicy={"vcpu-ratio": 2},
                diskparams={"plain": {"stripes": 2}},
            )
        )  # fmt: skip
        fields = ("name", "alloc_policy", "custom_ndparams", "custom_ipolicy", "node_cnt")
        told = ["other", "last_resort", {"spindle_count": 4}, {"vcpu-ratio": 2.0}, 0]
        assert (await rows(cluster, *fields))[1] == told
        (_, (policy,)) = await rows(cluster, "ipolicy")
        assert (policy["vcpu-ratio"], policy["spindle-ratio"]) == (2.0, 32.0)  # the cluster's
        ((custom, merged),) = (await rows(cluster, "custom_diskparams", "diskparams"))[1:]
        assert custom == {"plain": {"stripes": 2}}
        assert merged["plain"] == {"stripes": 2, "stripe-size": 0, "thin-pool": ""}
        assert merged["drbd"]["resync-rate"] == 61440
        await cluster.run(
            ModifyGroup(
                group_name=OTHER, alloc_policy=AllocationPolicy.UNALLOCABLE,
                ndparams={"spindle_count": "default", "cpu_speed": 2.0},
                diskparams={"plain": {"stripes": "default"}},
                ipolicy={"vcpu-ratio": "default", "disk-templates": ["file"]},
            )
        )  # fmt: skip
        await cluster.run(RenameGroup(group_name=OTHER, new_name=GroupName("attic")))
        told = ["attic", "unallocable", {"cpu_speed": 2.0}, {"disk-templates": ["file"]}, 0]
        assert (await rows(cluster, *fields))[0] == told
        await cluster.run(ModifyGroup(group_name=GroupName("attic"),
                                      ipolicy={"disk-templates": "default"}))  # fmt: skip
        attic = cluster.config.group("attic")
        assert attic.ipolicy is None
        assert attic.diskparams == {}
        await cluster.run(RemoveGroup(group_name=GroupName("attic")))
        assert [group.name for group in cluster.config.sorted_groups()] == ["default"]

    play(story)


BOUNDS = {
    "memory-size": 64, "cpu-count": 1, "disk-count": 1, "disk-size": 1, "nic-count": 1,
    "spindle-use": 1,
}  # fmt: skip


REFUSED: list[tuple[Operation[Any, Any], type[GntError], str]] = [  # and how
    (AddGroup(group_name=DEFAULT), Conflict, "a group default already"),
    (AddGroup(group_name=GroupName("No good")), InvalidRequest, "no group name"),
    (AddGroup(group_name=OTHER, ndparams={"foo": 1}), InvalidRequest, "foo"),
    (AddGroup(group_name=OTHER, diskparams={"plain": {"stripes": 0}}), InvalidRequest, "strip"),
    (AddGroup(group_name=OTHER, ipolicy={"std": {}}), InvalidRequest, "no “std”"),
    (AddGroup(group_name=OTHER, ipolicy={"?": {}}), InvalidRequest, "has no “?"),
    (AddGroup(group_name=OTHER, ipolicy={"vcpu-ratio": 0}), InvalidRequest, "above 0"),
    (AddGroup(group_name=OTHER, ipolicy={"minmax": []}), InvalidRequest, "allow everything"),
    (
        AddGroup(group_name=OTHER, ipolicy={"disk-templates": ["tape"]}),
        InvalidRequest, "not “tape”",
    ),
    (
        AddGroup(
            group_name=OTHER,
            ipolicy={"minmax": [{"min": BOUNDS, "max": BOUNDS | {"memory-size": 32}}]},
        ),
        InvalidRequest, "memory-size are 64 and 32",
    ),
    (
        AddGroup(group_name=OTHER, ipolicy={"minmax": [{"min": {"memory-size": 1}}]}),
        InvalidRequest, "cpu_count",
    ),
    (ModifyGroup(group_name=DEFAULT), InvalidRequest, "Nothing to change on group default"),
    (ModifyGroup(group_name=OTHER, ipolicy={}), NotFound, "other"),
    (RenameGroup(group_name=DEFAULT, new_name=DEFAULT), Conflict, "already"),
    (RemoveGroup(group_name=DEFAULT), Conflict, "still has nodes"),
    (AssignNodes(group_name=DEFAULT, nodes=(BETA,)), InvalidRequest, "Nothing to change"),
    (ChangeGroup(instance_name=WEB1), Conflict, "one group of nodes only"),
    (EvacuateGroup(group_name=DEFAULT), Conflict, "one group of nodes only"),
]  # fmt: skip


def test_what_makes_no_sense_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "beta", start=False))
        before = cluster.config
        for order, kind, said in REFUSED:
            with pytest.raises(kind, match=said.replace("?", r"\?")):
                await cluster.run(order)
            assert cluster.config == before, order

    play(story)


def test_instances_are_placed_where_the_groups_say() -> None:
    """The policies of allocation and of instances of a group count at once."""

    async def story(cluster: SimulatedCluster) -> None:
        await another_group_of_two(cluster)
        await cluster.run(
            ModifyGroup(group_name=DEFAULT, alloc_policy=AllocationPolicy.LAST_RESORT)
        )
        await cluster.run(create("web2"))
        assert home_of(cluster, "web2") == "other"
        await cluster.run(ModifyGroup(group_name=OTHER, alloc_policy=AllocationPolicy.UNALLOCABLE))
        await cluster.run(create("web3"))
        assert home_of(cluster, "web3") == "default"
        await cluster.run(ModifyGroup(group_name=DEFAULT, ipolicy={"disk-templates": ["diskless"]}))
        with pytest.raises(NoCapacity):
            await cluster.run(create("web4"))
        with pytest.raises(Conflict, match="policy of group default"):
            await cluster.run(create("web4", "beta"))

    play(story)


def test_an_instance_goes_to_another_group_and_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await another_group_of_two(cluster)
        await jobs_done(cluster, ChangeGroup(instance_name=WEB1))
        assert home_of(cluster, "web1") == "other"
        with pytest.raises(Conflict, match="is in group other already"):
            await cluster.run(ChangeGroup(instance_name=WEB1, target_groups=("other",)))
        await jobs_done(cluster, ChangeGroup(instance_name=WEB1, target_groups=("default",)))
        assert home_of(cluster, "web1") == "default"

    play(story)


def test_a_mirrored_instance_goes_to_another_group_with_both_its_copies() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(mirrored("web1", "alpha", "beta"))
        await another_group(cluster)
        await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA, DELTA)))
        await jobs_done(cluster, ChangeGroup(instance_name=WEB1, early_release=True))
        homes = cluster.config.nodes_of(cluster.config.instance("web1"))
        assert {cluster.config.nodes[uuid].name for uuid in homes} == {"gamma", "delta"}
        orders = [op.input for job in cluster.state.jobs.values() for op in job.ops]
        replaced = [o for o in orders if o["OP_ID"] == "OP_INSTANCE_REPLACE_DISKS"]
        assert [order["early_release"] for order in replaced] == [True, True]
        assert {name for name, m in cluster.machines.items() if m.local_disks} == {"gamma", "delta"}

    play(story)


@pytest.mark.parametrize("how", [{}, {"sequential": True}, {"force_failover": True}])
def test_a_group_is_evacuated_and_then_removed(how: dict[str, Any]) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await another_group_of_two(cluster)
        await cluster.run(create("web2", "alpha"))
        await jobs_done(cluster, EvacuateGroup(group_name=DEFAULT, **how))
        assert {home_of(cluster, name) for name in ("web1", "web2")} == {"other"}
        assert cluster.config.instance("web2").admin_state is AdminState.UP
        opcodes = [[op.input["OP_ID"] for op in job.ops] for job in cluster.state.jobs.values()]
        assert (["OP_INSTANCE_MIGRATE"] in opcodes) == (not how)
        assert any(len(job) == 2 for job in opcodes) == ("sequential" in how)
        await cluster.run(
            AssignNodes(group_name=OTHER, nodes=(NodeName("alpha"), BETA, GAMMA, DELTA))
        )
        for wrong, why in (
            ("nowhere", "no group “nowhere”"),
            ("default", "in group default already"),
        ):
            with pytest.raises(GntError, match=why):  # though nothing is left to be moved
                await cluster.run(EvacuateGroup(group_name=DEFAULT, target_groups=(wrong,)))
        await cluster.run(RemoveGroup(group_name=DEFAULT))
        with pytest.raises(Conflict, match="still has nodes"):
            await cluster.run(RemoveGroup(group_name=OTHER))

    play(story)


def test_a_new_node_comes_to_the_group_that_is_named() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await another_group(cluster)
        order = add_delta(cluster)
        with pytest.raises(InvalidRequest, match="Say with -g to which group delta comes: default"):
            await cluster.run(order)
        fields = {name: getattr(order, name) for name in order.__struct_fields__}
        await cluster.run(AddNode(**fields | {"group": "other"}))
        assert cluster.config.node("delta").group == cluster.config.group("other").uuid

    play(story, nodes=3, strangers=1)


def test_nodes_that_hold_the_two_sides_of_a_mirror_are_not_parted_unasked() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await another_group(cluster)
        await cluster.run(create("web1", "beta", start=False))
        config = cluster.config
        instance = config.instance("web1")
        sides = (NodeId(uuid_of("beta")), NodeId(uuid_of("gamma")))
        mirrored = [Put(replace(disk, nodes=sides)) for disk in config.disks_of(instance)]
        drbd = replace(instance, disk_template=DiskTemplate.DRBD)
        await cluster.master.running.store.commit([Put(drbd), *mirrored])
        with pytest.raises(Conflict, match="several groups: web1"):
            await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA,)))
        await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA,), force=True))
        assert split_instances(cluster.config, {}) == ((), (InstanceName("web1"),))
        await cluster.run(AssignNodes(group_name=OTHER, nodes=(BETA, DELTA)))  # together again
        assert split_instances(cluster.config, {}) == ((), ())

    play(story)
