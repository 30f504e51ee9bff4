"""Each instance with a display has a port of its own, wherever it runs."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from common.model.job import Status
from common.names import InstanceName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.display_port import PORTS
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

DISPLAY = {"vnc_bind_address": "127.0.0.1"}


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await story(cluster)

    simulate(scenario())


def shown(name: str) -> CreateInstance:
    return replace(create(name, "beta", start=False), hvparams=DISPLAY)


def ports(cluster: SimulatedCluster) -> dict[str, int]:
    return {each.name: each.network_port for each in cluster.config.instances.values()}


def test_instances_that_are_made_at_once_get_different_ports() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        jobs = [await cluster.submit(shown(name)) for name in ("web1", "web2", "web3")]
        jobs.append(await cluster.submit(create("web4", "gamma", start=False)))
        for job in jobs:
            assert (await cluster.finished(job)).status is Status.SUCCESS
        given = ports(cluster)
        assert given.pop("web4") == 0
        assert sorted(given.values()) == list(PORTS[:3])
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(shown("web5"))
        assert ports(cluster)["web5"] == given["web1"]

    tell(story)


def test_two_that_get_their_displays_at_once_get_different_ports() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        names = (InstanceName("web1"), InstanceName("web2"))
        for name in names:
            await cluster.run(create(name, "beta", start=False))
        orders = [ModifyInstance(instance_name=name, hvparams=DISPLAY) for name in names]
        jobs = [await cluster.submit(order) for order in orders]
        for job in jobs:
            assert (await cluster.finished(job)).status is Status.SUCCESS
        assert sorted(ports(cluster).values()) == list(PORTS[:2])

    tell(story)


def test_a_port_is_kept_when_its_instance_moves_and_changes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(replace(shown("web1"), start=True))
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
        await cluster.run(ModifyInstance(instance_name=WEB1, hvparams={"keymap": "de"}))
        assert ports(cluster) == {"web1": PORTS[0]}
        ((port,),) = await cluster.master.luxi("QueryInstances", (), ["network_port"])
        assert port == PORTS[0]

    tell(story)


def test_the_clusters_parameters_give_displays_to_new_instances() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(hvparams={"kvm": {"spice_bind": "::1"}}))
        name = cluster.config.cluster.enabled_hypervisors[0]
        await cluster.run(ModifyCluster(hvparams={name: DISPLAY}))
        await cluster.run(create("web1", "beta", start=False))
        assert ports(cluster) == {"web1": PORTS[0]}

    tell(story)
