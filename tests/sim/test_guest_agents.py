"""What the agent in a guest tells is seen by who lists instances."""

from typing import Any

from msgspec.structs import replace

from coordinator.cli.info.instance import LIVE, STATIC, describe_instance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.query_data import QueryInstanceData
from coordinator.operations.instance.shutdown import ShutDownInstance
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

AGENT = {"use_guest_agent": True}


async def shown(cluster: SimulatedCluster) -> list[Any]:
    fields = ["name", "guest_addresses", "guest_interfaces"]
    rows: list[Any] = await cluster.master.luxi("QueryInstances", (), fields)
    return rows


def test_addresses_that_an_agent_tells_are_listed_wherever_its_guest_runs() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(replace(create("web1", "beta"), hvparams=AGENT))
            (nic,) = cluster.config.nics_of(cluster.config.instance("web1"))
            told = [{"name": "eth0", "mac": nic.mac, "addresses": ["192.0.2.1"]}]
            assert await shown(cluster) == [["web1", ["192.0.2.1"], told]]
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
            assert await shown(cluster) == [["web1", ["192.0.2.1"], told]]
            about = await cluster.run(QueryInstanceData(instances=(WEB1,)))
            assert about["web1"]["guest_interfaces"] == told
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            assert await shown(cluster) == [["web1", None, None]]

    simulate(scenario())


def test_guests_without_an_agent_have_no_addresses_to_show() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta"))
            await cluster.run(replace(create("web2", "beta"), hvparams=AGENT))
            web2 = cluster.config.instance("web2").uuid
            cluster.machines["beta"].guests.deafen(web2)
            assert await shown(cluster) == [["web1", None, None], ["web2", None, None]]
            about = await cluster.run(QueryInstanceData())
            assert [about[name]["guest_interfaces"] for name in ("web1", "web2")] == [None, None]

    simulate(scenario())


def test_info_shows_addresses_by_interface() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(replace(create("web1", "beta"), hvparams=AGENT))
            (nic,) = cluster.config.nics_of(cluster.config.instance("web1"))
            answer = await cluster.master.luxi("Query", "instance", [*STATIC, *LIVE], None)
            row = {
                field["name"]: None if status else value
                for field, (status, value) in zip(answer["fields"], answer["data"][0], strict=True)
            }
            described = describe_instance(row)
            assert described["Addresses by its agent"] == {f"eth0 {nic.mac}": "192.0.2.1"}
            assert "Addresses by its agent" not in describe_instance(row | {LIVE[-1]: None})

    simulate(scenario())
