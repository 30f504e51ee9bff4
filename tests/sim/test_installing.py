"""Operating systems are installed on new instances, amid mishaps."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.messages import to_json
from common.model.job import Job, Status
from common.model.template import DiskTemplate
from common.names import JobId, NetworkName
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.operations.devices import NicRequest
from coordinator.operations.instance.reinstall import ReinstallInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from tests.sim.operating_systems import installed, reinstalled
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


async def installing(cluster: SimulatedCluster) -> JobId:
    """Submit a job, and return when its script runs on gamma."""
    number = await cluster.submit(installed())
    for _ in range(1000):
        if cluster.machines["gamma"].operating_systems.known:
            return number
        await asyncio.sleep(0.05)
    raise AssertionError("it is not installed")


def test_an_instance_is_installed_before_it_starts() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            job = await cluster.finished(await cluster.submit(installed(start=True)))
            assert job.status is Status.SUCCESS, job.ops[0].failure
            assert list((await cluster.snapshot()).contents["shared"].values()) == [
                "debian+stable for web1"
            ]
            assert "create of debian+stable" in [entry.message for entry in job.ops[0].log]
            assert cluster.config.instance("web1").os == "debian+stable"
            assert cluster.machines["gamma"].operating_systems.known == ()

    simulate(story())


@pytest.mark.parametrize("template", [DiskTemplate.FILE, DiskTemplate.PLAIN, DiskTemplate.DRBD])
def test_disks_of_any_kind_are_installed_on(template: DiskTemplate) -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            second = "beta" if template.traits.is_mirrored else None
            order = create(node="gamma", second=second, template=template)
            await cluster.run(replace(order, os_type="noop"))
            words = (await cluster.snapshot()).contents
            assert "noop for web1" in words["gamma"].values()
            assert ("noop for web1" in words["beta"].values()) == template.traits.is_mirrored

    simulate(story())


def test_an_installation_that_fails_leaves_nothing_and_says_why() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.snapshot()
            cluster.machines["gamma"].operating_systems.failing.add(Script.CREATE)
            with pytest.raises(NodeFailure, match=r"ended with status 1.* no mirror.*is in /var"):
                await cluster.run(installed())
            assert not before.differences(await cluster.snapshot())

    simulate(story())


def test_a_cancelled_job_ends_its_script() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.snapshot()
            number = await installing(cluster)
            await cluster.master.luxi("CancelJob", number)
            assert (await cluster.finished(number)).status is Status.CANCELED
            assert cluster.machines["gamma"].operating_systems.known == ()
            assert not before.differences(await cluster.snapshot())

    simulate(story())


def test_a_script_that_always_has_something_to_say_is_cancelled_as_well() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].operating_systems.is_chatty = True
            number = await installing(cluster)
            await asyncio.sleep(100)
            await cluster.master.luxi("CancelJob", number)
            job = await cluster.finished(number)
            assert job.status is Status.CANCELED
            assert sum(entry.message == "and on" for entry in job.ops[0].log) == 300
            assert "all of it is in" in str(job.ops[0].log)

    simulate(story())


def test_a_script_goes_on_while_noded_is_restarted() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            number = await installing(cluster)
            await cluster.restart_noded("gamma")
            assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(story())


def test_a_node_that_loses_its_power_fails_the_installation_and_nothing_is_left() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            number = await installing(cluster)
            await cluster.lose_power("gamma")
            await cluster.machines["gamma"].boot()
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            assert job.ops[0].failure
            assert "the node has lost its power" in job.ops[0].failure.message
            assert cluster.config.find_instance("web1") is None

    simulate(story())


def test_what_no_node_could_install_is_refused_before_anything_is_done() -> None:
    refused: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"os": "debian"}, InvalidRequest, r"say which: debian\+stable, debian\+testing"),
        ({"os": "debian+sarge"}, InvalidRequest, "declares no variant “sarge”"),
        ({"os": "plan9"}, NodeFailure, "has no operating system “plan9”"),
        ({"osparams": {"speed": "1"}}, InvalidRequest, "has no parameter “speed”"),
        ({"osparams_secret": {"sp\need": "1"}}, InvalidRequest, "no name of a parameter"),
    )

    async def story() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.snapshot()
            for wrong, kind, match in refused:
                with pytest.raises(kind, match=match):
                    await cluster.run(installed(**wrong))
            assert not before.differences(await cluster.snapshot())
            await cluster.run(installed("debian+sarge", force_variant=True))

    simulate(story())


def test_scripts_are_told_of_the_networks_that_nics_are_in() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            lan = NetworkName("lan")
            for machine in cluster.machines.values():
                machine.network.bridges.add("br7")
            await cluster.run(
                AddNetwork(
                    network_name=lan, network="198.51.100.0/24", gateway="198.51.100.1",
                    network6="2001:db8::/64", mac_prefix="aa:bb:cc", tags=("blue", "amber"),
                )
            )  # fmt: skip
            await cluster.run(
                ConnectNetwork(network_name=lan, group_name="default", network_link="br7")
            )
            seen: list[ScriptOrder] = []
            cluster.machines["gamma"].operating_systems.watch = seen.append
            nics = (NicRequest(), NicRequest(network=lan, ip="pool"))
            await cluster.run(installed(nics=nics))
            (network,) = cluster.config.networks.values()
            assert seen[-1].subject.nic_networks == ({}, {
                "NETWORK_NAME": "lan", "NETWORK_UUID": network.uuid,
                "NETWORK_SUBNET": "198.51.100.0/24", "NETWORK_GATEWAY": "198.51.100.1",
                "NETWORK_SUBNET6": "2001:db8::/64", "NETWORK_MAC_PREFIX": "aa:bb:cc",
                "NETWORK_TAGS": "amber blue",
            })  # fmt: skip
            await cluster.run(RemoveInstance(instance_name=WEB1))
            await cluster.run(installed())
            assert b"nic_networks" not in to_json(seen[-1]), "older nodes would refuse it"

    simulate(story())


def test_scripts_are_told_the_level_that_their_job_was_given() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            seen: list[ScriptOrder] = []
            cluster.machines["gamma"].operating_systems.watch = seen.append

            async def give(**more: Any) -> Job:
                wire = installed().to_input() | more
                return await cluster.finished(await cluster.master.luxi("SubmitJob", [wire]))

            for wrong in (-1, "2", 1.5):
                with pytest.raises(InvalidRequest, match="debug_level"):
                    await give(debug_level=wrong)
            job = await give(debug_level=2)
            assert job.status is Status.SUCCESS
            assert job.ops[0].input["debug_level"] == 2
            assert {order.debug_level for order in seen} == {2}
            again = ReinstallInstance(instance_name=WEB1).to_input() | {"debug_level": 99}
            job = await cluster.finished(await cluster.master.luxi("SubmitJob", [again]))
            assert job.ops[0].input["debug_level"] == 10
            seen.clear()
            await cluster.run(reinstalled())
            assert {order.debug_level for order in seen} == {0}

    simulate(story())
