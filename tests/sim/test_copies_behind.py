"""Which copy of a disk lacks writes: it is noted, told, and not started from."""

import re

import pytest

from common.errors import Conflict, NodeFailure
from common.noderpc.mirrors import Parted
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.discard_copy import DiscardCopy
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.mirrored_pair import attached, behind, bring_back, guests, look, mirror_state, tell
from tests.sim.settings import BETA, GAMMA, WEB1
from tests.sim.test_watcher import at_rest, watch
from tests.support.cluster import SimulatedCluster
from tests.support.image import GROUP


def test_it_starts_without_its_second_copy_only_when_told_so() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        with pytest.raises(NodeFailure, match=r"second copy of web1 on beta.*startup --force web1"):
            await cluster.run(StartInstance(instance_name=WEB1))
        assert behind(cluster) == []
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert behind(cluster) == ["beta"]
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story, start=False)


def test_it_starts_though_its_nodes_do_not_reach_each_other_if_told_so() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        with pytest.raises(Parted, match=r"not connected to its other.*startup --force web1”"):
            await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert behind(cluster) == ["beta"]
        cluster.heal()
        cluster.pairs.settle()
        await cluster.settle(60.0)
        assert await mirror_state(cluster) == "whole"

    tell(story, start=False)


def test_it_is_started_again_alone_where_the_other_copy_is_behind_anyway() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        await look(cluster)
        assert behind(cluster) == ["beta"]
        await cluster.lose_power("gamma")
        await cluster.machines["gamma"].boot()
        await cluster.run(StartInstance(instance_name=WEB1))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)


def test_it_starts_when_told_so_though_its_second_node_answers_nothing_but_the_module() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.machines["beta"].kill_noded()
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert attached(cluster) == {"beta": ["standby"]}
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)


def test_a_device_that_somebody_disconnected_by_hand_is_parted_and_no_split() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        module = cluster.machines["gamma"].drbd
        (device,) = await module.look()
        assert device.connection
        await module.disconnect(device.connection)
        await cluster.settle(60.0)
        assert (await mirror_state(cluster)).startswith("parted")
        await cluster.run(ActivateDisks(instance_name=WEB1, wait_for_sync=True))
        assert await mirror_state(cluster) == "whole"

    tell(story)


def test_it_is_told_how_much_a_node_lacks_that_was_off() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        await cluster.machines["beta"].boot()
        await cluster.settle(5.0)
        assert re.search(r"[1-9]\d* KiB are on the first one only", await mirror_state(cluster))
        order = ActivateDisks(instance_name=WEB1, wait_for_sync=True)
        job = await cluster.finished(await cluster.submit(order))
        lines = [entry.message for entry in job.ops[0].log]
        assert any(re.search(r"on gamma only: disk 0: [1-9]\d* KiB", line) for line in lines)

    tell(story)


def test_the_only_copy_is_not_noted_as_behind_because_somebody_wants_to_start_without_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].volumes.groups[GROUP].volumes.clear()
        await cluster.lose_power("beta")
        with pytest.raises(NodeFailure, match="Disk 0 of web1 is missing on gamma, and the other"):
            await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert behind(cluster) == []

    tell(story, start=False)


def test_a_copy_that_missed_writes_is_noted_when_the_guest_stops() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("gamma", "beta")
        await cluster.settle(60.0)
        cluster.pairs.settle()
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert behind(cluster) == ["beta"]

    tell(story)


def test_a_copy_that_failed_under_its_guest_is_noted_and_the_good_one_is_not() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert behind(cluster) == ["gamma"]
        await cluster.run(FailOverInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1, force=True))
        assert await guests(cluster) == {"beta": {"web1": "running"}}

    tell(story)


def test_a_copy_that_falls_behind_is_noted_by_who_looks_and_counts_again_when_it_is_equal() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await look(cluster) == [{}, [], {}]
        assert await mirror_state(cluster) == "whole"
        cluster.cut("gamma", "beta")
        assert await look(cluster) == [{}, ["web1"], {}]
        assert behind(cluster) == ["beta"]
        assert "not mirrored" in await mirror_state(cluster)
        cluster.heal()
        cluster.pairs.settle()  # they meet
        await cluster.settle(60.0)
        assert await look(cluster) == [{}, [], {}]
        assert behind(cluster) == []

    tell(story)


def test_a_silent_node_is_told_and_changes_no_note() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.machines["gamma"].kill_noded()
        silent, inactive, missing = await look(cluster)
        assert list(silent) == ["gamma"]  # type: ignore[call-overload]
        assert (inactive, missing, behind(cluster)) == ([], {}, [])
        assert (await mirror_state(cluster)).startswith("unknown: may have one copy only")
        await cluster.machines["gamma"].start_noded()

    tell(story)


async def written_apart(cluster: SimulatedCluster) -> None:
    """Have an operator run web1 on beta though gamma, which is alive, runs it as well."""
    cluster.cut("gamma", "beta")
    cluster.cut("gamma", "alpha")
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
    await cluster.run(FailOverInstance(instance_name=WEB1))
    await cluster.settle(60.0)
    cluster.pairs.settle()
    await cluster.lose_power("gamma")
    cluster.heal()
    await bring_back(cluster, GAMMA)
    await cluster.run(StartInstance(instance_name=WEB1))  # which attaches its copy on gamma, too
    await cluster.settle(10.0)


def test_copies_that_were_written_to_apart_are_found_and_one_is_given_up_by_name() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await written_apart(cluster)
        state = await mirror_state(cluster)
        assert state.startswith("split: was written to on both nodes apart")
        assert "gnt-instance discard-copy --node NODE web1" in state
        found = await cluster.run(VerifyGroup(group_name="default", findings=True))
        assert [each["code"] for each in found if each["name"] == "web1"] == ["EINSTANCEFAULTYDISK"]
        with pytest.raises(Conflict, match=r"uses disk 0 on beta.*Give up the other side"):
            await cluster.run(DiscardCopy(instance_name=WEB1, node_name=BETA))
        await cluster.run(DiscardCopy(instance_name=WEB1, node_name=GAMMA))
        assert await mirror_state(cluster) == "whole"
        assert behind(cluster) == []
        with pytest.raises(Conflict, match="were not written to apart"):
            await cluster.run(DiscardCopy(instance_name=WEB1, node_name=GAMMA))
        cluster.pairs.lost.clear()

    tell(story)


def test_the_watcher_has_it_noted_when_a_copy_falls_behind() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert [told.text for told in await watch(cluster)] == []
        cluster.cut("gamma", "beta")
        note, *_ = await watch(cluster)
        assert note.text.startswith("Group default: copies of mirrored disks fell behind")
        await at_rest(cluster)
        assert behind(cluster) == ["beta"]
        assert await mirror_state(cluster) != "whole"

    tell(story)
