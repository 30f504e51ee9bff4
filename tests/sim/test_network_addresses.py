"""Addresses of a network are given once, and come back."""

from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest
from common.names import InstanceName, NetworkName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.devices import NicRequest
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.modify import ModifyNetwork
from coordinator.state.kinds import NETWORK
from tests.sim.lan import LAN, asked, in_lan, nics_of, outside, play
from tests.sim.settings import WEB1, added, changed, create, removed
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow


def test_a_nic_of_a_network_is_plugged_in_as_its_group_says_and_gets_a_free_address() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="pool"))
        (nic,) = nics_of(cluster)
        assert nic.ip == "198.51.100.1"
        (tap,) = await cluster.machines["gamma"].network.taps()
        assert tap.link == "br7"
        assert await asked(cluster, "free_count", "reserved_count", "inst_list", "group_list") == [
            253, 3, ["web1"], [["default", "bridged", "br7", ""]],
        ]  # fmt: skip
        (shown,) = (await cluster.master.luxi(
            "Query", "instance", ["nic.networks.names", "nic.network.name/0", "nic.links"], None
        ))["data"]  # fmt: skip
        assert [value for _, value in shown] == [["lan"], "lan", ["br7"]]

    play(story)


def test_jobs_at_the_same_time_get_different_addresses() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        jobs = [await cluster.submit(in_lan(f"web{n}", ip="pool")) for n in range(1, 7)]
        for number in jobs:
            outcome(await cluster.finished(number))
        given = [nics_of(cluster, f"web{n}")[0] for n in range(1, 7)]
        assert len({nic.ip for nic in given}) == len({nic.mac for nic in given}) == 6

    play(story)


def test_an_address_that_is_taken_reserved_or_elsewhere_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="198.51.100.7"))
        for ip, why in (
            ("198.51.100.7", "198.51.100.7 is taken by a nic in the network lan"),
            ("198.51.100.255", "reserved"),
            ("192.0.2.1", "not in the network lan"),
        ):
            with pytest.raises(GntError, match=why):
                await cluster.run(in_lan("web2", ip=ip))
        with pytest.raises(InvalidRequest, match="ip=pool in a network only"):
            await cluster.run(outside("pool"))
        with pytest.raises(
            Conflict, match=r"198\.51\.100\.9 is an address of the network lan: give"
        ):
            await cluster.run(outside("198.51.100.9"))
        await cluster.run(outside("198.51.100.9", check=False))

    play(story)


def test_nics_join_and_leave_a_network_and_their_addresses_come_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", start=False))

        async def modify(*nics: Any) -> None:
            await cluster.run(ModifyInstance(instance_name=WEB1, nics=nics))

        await modify(added(-1, {"network": "lan", "ip": "pool"}))
        await modify(changed(0, {"network": "lan", "ip": "pool"}))
        assert [nic.ip for nic in nics_of(cluster)] == ["198.51.100.2", "198.51.100.1"]
        with pytest.raises(InvalidRequest, match="network=none to have it otherwise"):
            await modify(changed(0, {"link": "br1"}))
        await modify(changed(0, {"network": "none", "ip": "None"}), removed(1))
        assert await asked(cluster, "inst_cnt", "map") == [0, "X" + 254 * "." + "X"]
        await cluster.run(StartInstance(instance_name=WEB1))
        (tap,) = await cluster.machines["gamma"].network.taps()
        assert tap.link == "br0"

    play(story)


def test_what_is_reserved_of_a_network_is_given_to_no_nic() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        reserve = ("198.51.100.1", "198.51.100.2")
        await cluster.run(ModifyNetwork(network_name=LAN, add_reserved_ips=reserve,
                                        gateway="198.51.100.3", mac_prefix="02:00:01"))  # fmt: skip
        await cluster.run(in_lan(ip="pool"))
        (nic,) = nics_of(cluster)
        assert (nic.ip, nic.mac[:8]) == ("198.51.100.4", "02:00:01")
        with pytest.raises(Conflict, match=r"198\.51\.100\.4 is the address of a nic of web1"):
            await cluster.run(ModifyNetwork(network_name=LAN, add_reserved_ips=("198.51.100.4",)))
        await cluster.run(ModifyNetwork(network_name=LAN, remove_reserved_ips=reserve[:1]))
        await cluster.run(in_lan("web2", ip="pool"))
        assert nics_of(cluster, "web2")[0].ip == "198.51.100.1"
        assert (await asked(cluster, "external_reservations")) == [
            "198.51.100.0, 198.51.100.2, 198.51.100.3, 198.51.100.255"
        ]

    play(story)


def test_changes_at_once_give_no_address_twice() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(replace(create("web1", "gamma"), nics=2 * (NicRequest(network=LAN),)))
        same = [changed(index, {"ip": "198.51.100.9"}) for index in range(2)]
        with pytest.raises(Conflict, match=r"198\.51\.100\.9 is taken"):
            await cluster.run(ModifyInstance(instance_name=WEB1, nics=tuple(same)))

    play(story)


def test_instances_that_are_changed_at_the_same_time_get_different_addresses() -> None:
    """Also while their nodes are asked whether they have an operating system."""

    async def story(cluster: SimulatedCluster) -> None:
        names = [InstanceName(f"web{n}") for n in range(1, 4)]
        for name in names:
            await cluster.run(create(name, "gamma", start=False))
        cluster.network.faults.append(Slow(lambda trip: trip.call.service == "os", 5))
        nic = added(-1, {"network": LAN, "ip": "pool"})
        change = ModifyInstance(instance_name=WEB1, nics=(nic,), os_name="noop")
        jobs = [await cluster.submit(replace(change, instance_name=name)) for name in names]
        for number in jobs:
            outcome(await cluster.finished(number))
        assert len({nics_of(cluster, name)[1].ip for name in names}) == len(names)

    play(story)


def test_an_import_puts_nics_into_their_network_again() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="198.51.100.9"))
        before = nics_of(cluster)
        export = ExportInstance(instance_name=WEB1, target_node="beta")
        await cluster.run(export)
        shop = ImportInstance(
            instance_name=InstanceName("shop"), src_node="beta", src_path="web1", pnode="gamma"
        )
        await cluster.run(shop)  # while web1 has its address
        (nic,) = nics_of(cluster, "shop")
        assert (nic.network, nic.ip) == (before[0].network, "198.51.100.1")
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(ImportInstance(instance_name=WEB1, src_node="beta", pnode="gamma"))
        (nic,) = nics_of(cluster)
        assert (nic.network, nic.ip, nic.mac) == (before[0].network, "198.51.100.9", before[0].mac)
        assert nic.nicparams == {}

    play(story)


def test_a_nic_that_was_let_be_outside_of_a_network_is_in_the_way_of_no_other() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(outside("198.51.100.9", check=False))
        web3, another = InstanceName("web3"), added(-1, {"network": "lan"})
        await cluster.run(ModifyInstance(instance_name=web3, nics=(another,)))
        assert len(nics_of(cluster, "web3")) == 2
        with pytest.raises(Conflict, match=r"198\.51\.100\.8 is an address of the network lan"):
            ip = changed(0, {"ip": "198.51.100.8"})
            await cluster.run(ModifyInstance(instance_name=web3, nics=(ip,)))

    play(story)


def test_addresses_of_nodes_are_reserved_in_a_network_that_has_them() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(AddNetwork(network_name=LAN, network="192.0.2.0/24"))
            (network,) = cluster.config.networks.values()
            assert set(network.reserved) == {n.primary_ip for n in cluster.config.nodes.values()}
            wan = NetworkName("wan")
            await cluster.run(
                AddNetwork(network_name=wan, network="192.0.2.0/24", conflicts_check=False)
            )
            assert cluster.config.get(NETWORK, wan).reserved == ()

    simulate(scenario())
