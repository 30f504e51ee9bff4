"""Scripts before operations may refuse them; scripts after them are told the end, at least once."""

from collections.abc import Awaitable, Callable

import pytest

from common.errors import Conflict, GntError
from common.model.job import Status
from common.names import InstanceName
from common.noderpc.hooks import Ending
from coordinator.hooks.phases import HookPhases
from coordinator.hooks.table import HOOKS
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.ganeti.opcodes import opcodes
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.tags.add import AddTags
from coordinator.operations.test.delay import Delay
from coordinator.state.tagged import Tagged
from tests.sim.members import add_delta
from tests.sim.settings import BETA, WEB1, changed, create, mirrored
from tests.sim.stories.backup import web1_exported_to_beta
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Mishap, Once, Trap
from tests.support.network import Trip

START = StartInstance(instance_name=WEB1)


def play(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Tell a story of web1, which is down; it has copies of its disk on gamma and beta."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored(start=False))
            await story(cluster)

    simulate(scenario())


def put(cluster: SimulatedCluster, directory: str, ending: Ending = Ending.DONE) -> None:
    """Give every machine a script in a directory."""
    for machine in cluster.machines.values():
        machine.hooks.scripts.setdefault(directory, {})["50-tell"] = ending


def ran(cluster: SimulatedCluster, directory: str) -> dict[str, list[dict[str, str]]]:
    """Return on which machines a directory was run, and the environment of each time."""
    found: dict[str, list[dict[str, str]]] = {}
    for name, machine in cluster.machines.items():
        for where, _, environment in machine.hooks.runs:
            if where == directory:
                found.setdefault(name, []).append(environment)
    return found


def test_scripts_run_before_and_after_on_the_master_and_where_the_instance_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-start-pre.d")
        put(cluster, "instance-start-post.d")
        await cluster.run(START)
        before = ran(cluster, "instance-start-pre.d")
        after = ran(cluster, "instance-start-post.d")
        assert set(before) == set(after) == {"alpha", "beta", "gamma"}
        (told,) = before["gamma"]
        wanted = {
            "GANETI_HOOKS_VERSION": "2", "GANETI_HOOKS_PHASE": "pre",
            "GANETI_HOOKS_PATH": "instance-start", "GANETI_OP_CODE": "OP_INSTANCE_STARTUP",
            "GANETI_OBJECT_TYPE": "INSTANCE", "GANETI_MASTER": "alpha",
            "GANETI_OP_TARGET": "web1", "GANETI_INSTANCE_NAME": "web1",
            "GANETI_INSTANCE_PRIMARY": "gamma", "GANETI_INSTANCE_SECONDARIES": "beta",
            "GANETI_INSTANCE_STATUS": "down", "GANETI_INSTANCE_DISK_COUNT": "1",
            "GANETI_INSTANCE_DISK0_SIZE": "64", "GANETI_INSTANCE_DISK_TEMPLATE": "drbd",
            "GANETI_INSTANCE_NIC0_MODE": "bridged", "GANETI_INSTANCE_NIC0_BRIDGE": "br0",
            "GANETI_FORCE": "False", "GANETI_IS_MASTER": "not_master",
        }  # fmt: skip
        assert wanted.items() <= told.items()
        assert not any(name.startswith("GANETI_POST_") for name in told)
        (told,) = after["alpha"]
        wanted |= {
            "GANETI_HOOKS_PHASE": "post", "GANETI_POST_INSTANCE_STATUS": "up",
            "GANETI_IS_MASTER": "master",
        }  # fmt: skip
        assert wanted.items() <= told.items()

    play(story)


def test_scripts_of_a_move_are_told_where_from_and_where_to() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for directory in ("instance-failover-pre.d", "instance-migrate-pre.d"):
            put(cluster, directory)
        await cluster.run(START)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        await cluster.run(MigrateInstance(instance_name=WEB1))
        ends = ["OLD_PRIMARY", "OLD_SECONDARY", "NEW_PRIMARY", "NEW_SECONDARY"]
        for directory, where in (
            ("instance-failover-pre.d", ["gamma", "beta", "beta", "gamma"]),
            ("instance-migrate-pre.d", ["beta", "gamma", "gamma", "beta"]),
        ):
            told = ran(cluster, directory)["alpha"][0]
            assert [told[f"GANETI_{name}"] for name in ends] == where

    play(story)


def test_scripts_of_an_import_know_the_instance_and_run_where_it_is_going_to_be() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_exported_to_beta(cluster)
            put(cluster, "instance-add-pre.d")
            await cluster.run(ImportInstance(instance_name=WEB1, src_node="beta", pnode="gamma"))
            before = ran(cluster, "instance-add-pre.d")
            assert set(before) == {"alpha", "gamma"}
            told = before["gamma"][0]
            assert told["GANETI_INSTANCE_NAME"] == "web1"
            assert told["GANETI_INSTANCE_DISK_COUNT"] == told["GANETI_INSTANCE_NIC_COUNT"] == "1"

    simulate(scenario())


def test_a_script_that_fails_before_refuses_the_operation_and_nothing_is_done() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-add-post.d")
        cluster.machines["beta"].hooks.scripts["instance-add-pre.d"] = {"10-no": Ending.FAILED}
        before = await cluster.snapshot()
        with pytest.raises(Conflict, match=r"instance-add-pre.d/10-no on beta failed: It ended"):
            await cluster.run(create("web2", "beta"))
        await cluster.settle()
        assert not before.differences(await cluster.snapshot())
        assert not ran(cluster, "instance-add-post.d")

    play(story)


def test_scripts_after_an_operation_change_nothing_when_they_fail_and_the_log_names_them() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-start-post.d", Ending.FAILED)
        job = await cluster.finished(await cluster.submit(START))
        assert job.status is Status.SUCCESS
        told = [entry.message for entry in job.ops[0].log]
        assert "Hook instance-start-post.d/50-tell on gamma failed: It ended with status 1." in told

    play(story)


def test_global_scripts_run_with_every_operation_on_the_master_and_cannot_refuse() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "global-pre.d", Ending.FAILED)
        put(cluster, "global-post.d")
        await cluster.run(Delay(duration=0.0))
        assert set(ran(cluster, "global-pre.d")) == {"alpha"}
        ((told,),) = ran(cluster, "global-post.d").values()
        assert told["GANETI_OBJECT_TYPE"] == "NOT_APPLICABLE"
        assert told["GANETI_POST_STATUS"] == "success"

    play(story)


def test_a_failure_is_told_to_global_scripts_of_the_master_alone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "global-post.d")
        put(cluster, "instance-start-post.d")

        def starts(trip: Trip) -> bool:
            return trip.call.name == "instances.ensure_running"

        cluster.network.faults.append(Once(starts, 0, Mishap.FAILS_BEFORE, cluster.restart_noded))
        with pytest.raises(GntError):
            await cluster.run(START)
        ((told,),) = ran(cluster, "global-post.d").values()
        assert told["GANETI_POST_STATUS"] == "error"
        assert not ran(cluster, "instance-start-post.d")

    play(story)


def test_scripts_after_an_operation_are_told_what_it_changed() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-rename-post.d")
        await cluster.run(RenameInstance(instance_name=WEB1, new_name=InstanceName("web9")))
        (told,) = ran(cluster, "instance-rename-post.d")["gamma"]
        assert told["GANETI_INSTANCE_NAME"] == "web1"
        assert told["GANETI_INSTANCE_NEW_NAME"] == "web9"
        assert told["GANETI_POST_INSTANCE_NAME"] == "web9"

    play(story)


def test_scripts_after_a_removal_know_what_was_removed() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-remove-pre.d")
        put(cluster, "instance-remove-post.d")
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert set(ran(cluster, "instance-remove-pre.d")) == {"alpha"}
        after = ran(cluster, "instance-remove-post.d")
        assert set(after) == {"alpha", "beta", "gamma"}
        assert after["beta"][0]["GANETI_POST_INSTANCE_NAME"] == "web1"

    play(story)


def test_scripts_of_a_node_that_does_not_answer_hold_up_nothing() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNode(node_name=BETA, offline=True))
        put(cluster, "instance-stop-pre.d")
        await cluster.lose_power("beta")
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert set(ran(cluster, "instance-stop-pre.d")) == {"alpha", "gamma"}

    play(story)


def test_no_script_is_run_for_a_dry_run() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-start-pre.d")
        put(cluster, "global-post.d")
        await cluster.run(START, dry_run=True)
        assert not any(machine.hooks.runs for machine in cluster.machines.values())

    play(story)


def test_a_change_of_the_configuration_is_told_on_the_master() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "config-update-post.d")
        await cluster.run(Delay(duration=0.0))
        assert not ran(cluster, "config-update-post.d")
        await cluster.run(START)
        assert set(ran(cluster, "config-update-post.d")) == {"alpha"}

    play(story)


@pytest.mark.parametrize("place", ["instances.ensure_running", "hooks.run"])
def test_whoever_goes_on_with_a_job_runs_the_scripts_after_it(place: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-start-post.d")

        trap = Trap(lambda trip: trip.call.name == place, 0, cluster.master.die)
        cluster.network.faults.append(trap)
        number = await cluster.submit(START)
        await trap.sprung.wait()
        cluster.network.faults.clear()
        await cluster.crash_master()
        await cluster.take_over("beta")
        job = await cluster.finished(number)
        outcome(job)
        assert set(ran(cluster, "instance-start-post.d")) == {"alpha", "beta", "gamma"}
        assert any("perhaps for the second time" in e.message for e in job.ops[0].log)

    play(story)


def test_scripts_of_a_new_node_run_there_though_nobody_else_has_any() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            cluster.machines["delta"].hooks.scripts["node-add-post.d"] = {"50-tell": Ending.DONE}
            await cluster.run(add_delta(cluster))
            assert set(ran(cluster, "node-add-post.d")) == {"delta"}

    simulate(scenario())


def test_scripts_are_told_no_secrets_and_nor_are_they_kept_with_the_job() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-modify-pre.d")
        put(cluster, "instance-modify-post.d")
        private = {"root_password": "xyzzy"}
        number = await cluster.submit(
            ModifyInstance(instance_name=WEB1, os_name="debian+stable", osparams_private=private)
        )
        job = await cluster.finished(number)
        outcome(job)
        told = [machine.hooks.runs for machine in cluster.machines.values()]
        assert all(told)
        assert "xyzzy" not in f"{told}{job}"

    play(story)


def test_a_script_can_refuse_whatever_texts_an_instance_has() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        tags = tuple(f"{number:0>120}" for number in range(600))
        await cluster.run(AddTags(kind=Tagged.INSTANCE, name=WEB1, tags=tags))
        name = {"name": "a\0b\nc"}
        await cluster.run(ModifyInstance(instance_name=WEB1, nics=(changed(0, name),)))
        put(cluster, "instance-start-pre.d", Ending.FAILED)
        with pytest.raises(Conflict, match="refused by hooks"):
            await cluster.run(START)
        (told,) = ran(cluster, "instance-start-pre.d")["gamma"]
        assert told["GANETI_INSTANCE_TAGS"] == " ".join(tags)[: 64 << 10]
        assert told["GANETI_INSTANCE_NIC0_NAME"] == "ab\nc"

    play(story)


def test_what_cannot_be_told_to_scripts_afterwards_leaves_no_job_without_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def after(*_: object, **__: object) -> None:
        raise KeyError("a node")

    monkeypatch.setattr(HookPhases, "after", after)

    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "instance-start-post.d")
        job = await cluster.finished(await cluster.submit(START))
        assert job.status is Status.SUCCESS
        told = [entry.message for entry in job.ops[0].log]
        assert any("Hooks that follow this operation could not be run" in each for each in told)

    play(story)


def test_only_operations_of_ganeti_have_hooks_of_their_own() -> None:
    assert set(HOOKS) - {"OP_BACKUP_IMPORT", "OP_NETWORK_RENAME"} <= set(opcodes())


def test_the_watcher_runs_its_own_scripts_on_all_nodes_that_answer() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        put(cluster, "watcher")
        assert await cluster.master.luxi("RunWatcherHooks") == []
        assert set(ran(cluster, "watcher")) == {"alpha", "beta", "gamma"}
        (told,) = ran(cluster, "watcher")["beta"]
        assert told["GANETI_MASTER"] == "alpha"
        cluster.machines["beta"].hooks.scripts["watcher"]["60-fail"] = Ending.FAILED
        cluster.network.isolate("gamma")
        complaints = await cluster.master.luxi("RunWatcherHooks")
        assert complaints == ["Hook watcher/60-fail on beta failed: It ended with status 1."]

    play(story)
