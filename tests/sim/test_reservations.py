"""What is only reserved counts in full, and no node knows of it until it is made."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import fields, replace

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId
from coordinator.operations.base import REGISTRY, read_operation
from coordinator.operations.cluster.verify import VerifyCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.create_many import CreateInstances
from coordinator.operations.instance.query_data import QueryInstanceData
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.reserve import ReserveInstance
from coordinator.operations.registry import load_all
from coordinator.state.rows import Put
from tests.sim.reserving import OWN_MIB, commit, order, web1
from tests.sim.settings import WEB1, create, mirrored
from tests.sim.stories.reserved import COMMIT, reserved
from tests.sim.test_watcher import at_rest, watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Watching
from tests.support.network import Trip
from tests.support.seeds import seeds

TAKE_RESERVATIONS = {
    "OP_BACKUP_REMOVE", "OP_INSTANCE_CHANGE_GROUP", "OP_INSTANCE_FAILOVER",
    "OP_INSTANCE_GROW_DISK", "OP_INSTANCE_REMOVE", "OP_INSTANCE_RENAME",
    "OP_INSTANCE_REPLACE_DISKS", "OP_INSTANCE_SET_PARAMS",
}  # fmt: skip
NEEDED = {
    "instance_name": "web1", "mode": "local", "target_node": "beta", "name": "s",
    "node_name": "beta", "src_node": "beta", "disk": 0, "amount": 64, "disk_template": "plain",
}  # fmt: skip


@pytest.mark.parametrize("seed", seeds(usual=1))
def test_fifty_reserved_at_once_never_overcommit_and_all_of_them_can_be_made(seed: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3, seed=seed) as cluster:
            chance = Random(seed)
            for machine in cluster.machines.values():
                machine.shrink_memory(OWN_MIB + chance.choice((2048, 3000, 4096)))
            at_once = replace(cluster.config.cluster, max_running_jobs=50)
            await cluster.master.running.store.commit([Put(at_once)])
            done = await submit(cluster, [reserved(order(f"web{n}")) for n in range(50)])
            kept = [InstanceName(f"web{n}") for n, good in enumerate(done) if good]
            assert len(kept) == len(cluster.config.reservations) < 50
            with pytest.raises(NoCapacity):
                await cluster.run(order("real"))
            assert all(await submit(cluster, [commit(name) for name in kept]))
            assert not cluster.config.reservations
            for machine in cluster.machines.values():
                guests = sum(guest.memory for guest in await machine.guest_list())
                assert guests <= machine.hardware.report.memory.total - OWN_MIB
            assert await cluster.run(VerifyGroup(group_name="default")) is True
            assert not cluster.master.running._around.placing.promises.standing()

    simulate(scenario())


async def submit(cluster: SimulatedCluster, orders: list[CreateInstance]) -> list[bool]:
    """Submit all at once; tell which succeeded. The others may only have found no room."""
    answers = await cluster.master.luxi("SubmitManyJobs", [[each.to_input()] for each in orders])
    done = []
    for _, number in answers:
        try:
            outcome(await cluster.finished(JobId(number)))
        except NoCapacity:
            done.append(False)
        else:
            done.append(True)
    return done


def test_space_that_is_reserved_is_given_to_nobody_else_and_to_its_instance() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            look = await cluster.master.luxi("Query", "node", ["name", "dfree"], None)
            free = min(row[1][1] for row in look["data"])
            most = DiskRequest(size=free - 64)
            await cluster.run(reserved(replace(create(node="gamma", template=DiskTemplate.PLAIN),
                                               disks=(most,))))  # fmt: skip
            with pytest.raises(NoCapacity, match="gamma"):
                await cluster.run(
                    replace(create("web2", "gamma", template=DiskTemplate.PLAIN),
                            disks=(DiskRequest(size=128),))
                )  # fmt: skip
            assert await cluster.run(COMMIT) == ["gamma"]

    simulate(scenario())


def test_no_node_is_told_of_what_is_reserved_renamed_and_removed() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            calls = Watching(_changes_a_node)
            cluster.network.faults.append(calls)
            await cluster.settle()
            before = await cluster.snapshot()
            number = await cluster.submit(ReserveInstance(forthcoming=True))
            (op,) = (await cluster.finished(number)).ops
            uuid = op.result
            told = [entry.message for entry in op.log]
            assert any("Selected nodes for instance without a name" in line for line in told)
            assert any(f"Its UUID is {uuid}" in line for line in told)
            await cluster.run(reserved(mirrored("web2")))
            found = cluster.config.instances[uuid]
            assert (found.name, found.disks, found.forthcoming) == (uuid, (), True)
            await cluster.run(RenameInstance(instance_name=found.name, new_name=WEB1))
            await cluster.run(VerifyCluster())
            assert cluster.config.instance("web1").uuid == uuid
            await cluster.run(RemoveInstance(instance_name=InstanceName(uuid)))
            await cluster.run(RemoveInstance(instance_name=InstanceName("web2")))
            assert not [str(trip) for trip in calls.seen]
            await cluster.settle()
            assert not (await cluster.snapshot()).differences(before)

    simulate(scenario())


def _changes_a_node(trip: Trip) -> bool:
    service = trip.call.name.partition(".")[0]
    return service in ("disks", "instances", "mirrors", "network") and not trip.call.name.endswith(
        ("guests", "volumes", "inventory", "status", "devices", "taps", "links", "find")
    )


def test_whatever_needs_an_instance_that_is_there_is_refused_by_its_name() -> None:
    load_all()
    about_one = {o for o, kind in REGISTRY.items() if "instance_name" in kind.__struct_fields__}
    assert {o for o in about_one if REGISTRY[o].takes_reservations} == TAKE_RESERVATIONS

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, mirrored())
            for opcode in sorted(about_one - TAKE_RESERVATIONS):
                kind = REGISTRY[opcode]
                needed = [each.name for each in fields(kind) if each.required]
                needed += getattr(kind, "needs", ())
                wire = {"OP_ID": opcode} | {name: NEEDED[name] for name in needed}
                operation = read_operation(wire)
                with pytest.raises(Conflict, match="is only reserved, and nothing of it is there"):
                    await cluster.run(operation)

    simulate(scenario())


def test_the_watcher_and_verify_leave_alone_what_is_reserved_and_lists_show_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, mirrored())
            assert await cluster.run(VerifyGroup(group_name="default")) is True
            fields = ["name", "forthcoming", "status", "oper_state", "pnode", "snodes", "be/memory"]
            told = await cluster.master.luxi("Query", "instance", fields, None)
            ((*values,),) = [[value for _, value in row] for row in told["data"]]
            assert values[:6] == ["web1", True, "ADMIN_down", False, "gamma", ["beta"]]
            about = (await cluster.run(QueryInstanceData()))["web1"]
            assert (about["run_state"], about["snodes"]) == ("down", ["beta"])

    simulate(scenario())


def test_expired_is_removed_only_while_it_is_reserved() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            remove = RemoveInstance(instance_name=WEB1, if_expired=True)
            uuid = await cluster.run(replace(reserved(create()), expires="60s"))
            with pytest.raises(Conflict, match="has not expired"):
                await cluster.run(remove)
            await cluster.settle(61.0)
            made = await cluster.submit(COMMIT)
            removal = await cluster.submit(remove)  # waits for the same lock
            outcome(await cluster.finished(made))
            with pytest.raises(Conflict, match="web1 is there already"):
                outcome(await cluster.finished(removal))
            assert cluster.config.instance("web1").uuid == uuid
            await cluster.run(replace(reserved(create("web2")), expires="60s"))
            await cluster.settle(61.0)
            await cluster.run(replace(remove, instance_name=InstanceName("web2")))
            assert len(cluster.config.instances) == 1

    simulate(scenario())


REFUSED: list[tuple[dict[str, Any], str]] = [  # and how
    ({"forthcoming": True, "commit": True}, "forthcoming and commit at once"),
    ({"forthcoming": True, "expires": "soon"}, "no span of time"),
    ({"forthcoming": True, "instance_name": "Web1"}, "no instance name"),
    ({"forthcoming": True, "expires": ""}, "“” is no span of time"),
    ({"expires": "1h", "instance_name": "w", "disk_template": "diskless"}, "Only what is res"),
    ({"forthcoming": True, "osparams_secret": {"a": "b"}}, "give them with --commit"),
    ({"forthcoming": True, "disk_template": "plain", "disks": [{"adopt": "x"}]}, "adopt it"),
    ({"commit": True}, "which one it is"),
    ({"commit": True, "instance_name": "w"}, "no instance"),
    ({"disk_template": "diskless"}, "its name"),
    ({"instance_name": "w"}, "how its disks are kept, with --disk-t"),
    ({"forthcoming": True, "beparams": {"memory": "lots"}}, "memory|maxmem|size"),
    (
        {"forthcoming": True, "instance_name": "w", "nics": [{}, {"mode": "routed"}]},
        "Nic 1 of w is routed, and has no address to which that leads",
    ),
]


def test_what_makes_no_sense_is_refused_in_a_sentence() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = cluster.config
            for wire, why in REFUSED:
                with pytest.raises(GntError, match=why):
                    await cluster.run(read_operation({"OP_ID": "OP_INSTANCE_CREATE"} | wire))
                assert cluster.config == before, wire

    simulate(scenario())


def test_the_watcher_forgets_what_has_expired_and_nothing_else() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(replace(reserved(create()), expires="60s"))
            await cluster.run(replace(reserved(create("web2")), expires="1d"))
            await cluster.run(reserved(create("web3")))
            await watch(cluster)
            assert len(cluster.config.reservations) == 3
            await cluster.settle(61.0)
            assert "Instance web1: its reservation has expired" in (await watch(cluster))[0].text
            await at_rest(cluster)
            assert [each.name for each in cluster.config.reservations] == ["web2", "web3"]

    simulate(scenario())


def test_many_are_reserved_in_one_go_if_they_have_names() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            named = ({"instance_name": f"web{n}", "forthcoming": True} for n in range(2))
            told = await cluster.run(CreateInstances(instances=tuple(named), iallocator="hail"))
            for _, number in told["jobs"]:
                outcome(await cluster.finished(JobId(number)))
            assert len(cluster.config.reservations) == 2
            with pytest.raises(InvalidRequest, match="Instance 1 of the list has no name"):
                await cluster.run(CreateInstances(instances=({"forthcoming": True},)))

    simulate(scenario())
