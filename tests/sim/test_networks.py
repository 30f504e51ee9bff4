"""Networks say how nics are plugged in, and which addresses they get."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure, NotFound
from common.model.job import Status
from common.names import GroupName, InstanceName, NetworkName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.base import Operation
from coordinator.operations.devices import NicRequest
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from coordinator.operations.network.disconnect import DisconnectNetwork
from coordinator.operations.network.modify import ModifyNetwork
from coordinator.operations.network.remove import RemoveNetwork
from coordinator.operations.network.rename import RenameNetwork
from coordinator.state.kinds import NETWORK
from tests.sim.settings import BETA, GAMMA, WEB1, added, changed, create, removed
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.network import Trip

LAN = NetworkName("lan")
CONNECT = ConnectNetwork(network_name=LAN, group_name="default", network_link="br7")


def play(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Tell a story of a network to which the only group is connected."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for machine in cluster.machines.values():
                machine.network.bridges.add("br7")
            await cluster.run(AddNetwork(network_name=LAN, network="198.51.100.0/24"))
            await cluster.run(CONNECT)
            await story(cluster)

    simulate(scenario())


def in_lan(name: str = "web1", node: str | None = "gamma", **nic: Any) -> CreateInstance:
    return replace(create(name, node), nics=(NicRequest(network=LAN, **nic),))


def outside(ip: str, *, check: bool = True) -> CreateInstance:
    return replace(create("web3", "gamma"), nics=(NicRequest(ip=ip),), conflicts_check=check)


def nics_of(cluster: SimulatedCluster, name: str = "web1") -> Any:
    return cluster.config.nics_of(cluster.config.instance(name))


async def asked(cluster: SimulatedCluster, *fields: str) -> list[Any]:
    """Return what a query tells of the network."""
    ((row,),) = ((await cluster.master.luxi("Query", "network", list(fields), None))["data"],)
    return [value for _, value in row]


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


def test_a_node_of_a_group_that_is_not_connected_gets_no_such_nic() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(AddGroup(group_name=GroupName("attic")))
        await cluster.run(AssignNodes(group_name=GroupName("attic"), nodes=(GAMMA,), force=True))
        with pytest.raises(Conflict, match="attic is not connected to the network lan"):
            await cluster.run(in_lan())
        await cluster.run(in_lan(node=None))  # the allocator knows
        assert cluster.config.nodes[cluster.config.instance("web1").primary_node].name != "gamma"
        with pytest.raises(Conflict, match="gnt-network connect lan attic"):
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node="gamma"))
        attic = ConnectNetwork(network_name=LAN, group_name="attic", network_link="br0")
        await cluster.run(attic)
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node="gamma"))
        (tap,) = await cluster.machines["gamma"].network.taps()
        assert tap.link == "br0"

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
        await modify(changed(0, {"network": "none", "ip": "none"}), removed(1))
        assert await asked(cluster, "inst_cnt", "map") == [0, "X" + 254 * "." + "X"]
        await cluster.run(StartInstance(instance_name=WEB1))
        (tap,) = await cluster.machines["gamma"].network.taps()
        assert tap.link == "br0"

    play(story)


def test_what_is_connected_or_disconnected_already_is_told_and_nothing_is_changed() -> None:
    async def told(cluster: SimulatedCluster, order: Operation[Any, Any]) -> list[str]:
        before = cluster.config
        job = await cluster.finished(await cluster.submit(order))
        assert job.status is Status.SUCCESS
        assert cluster.config.groups == before.groups
        return [entry.message for entry in job.ops[0].log]

    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(outside("198.51.100.9", check=False))
        assert await told(cluster, CONNECT) == ["Group default is connected to lan already."]
        with pytest.raises(Conflict, match="default is connected to lan in another way"):
            await cluster.run(replace(CONNECT, network_link="br0"))
        disconnect = DisconnectNetwork(network_name=LAN, group_name="default")
        await cluster.run(disconnect)
        assert await told(cluster, disconnect) == ["Group default is not connected to lan."]

    play(story)


def test_a_network_that_is_used_stays_connected_and_is_not_removed() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="pool"))
        disconnect = DisconnectNetwork(network_name=LAN, group_name="default")
        with pytest.raises(Conflict, match="Instances of default have nics in lan: web1"):
            await cluster.run(disconnect)
        with pytest.raises(Conflict, match="lan is connected to default; disconnect it"):
            await cluster.run(RemoveNetwork(network_name=LAN))
        await cluster.run(ModifyInstance(instance_name=WEB1, nics=(removed(0),)))
        await cluster.run(disconnect)
        await cluster.run(RemoveNetwork(network_name=LAN))
        with pytest.raises(NotFound):
            await cluster.run(CONNECT)

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


@pytest.mark.parametrize(
    ("order", "call"),
    [
        (ModifyInstance(instance_name=WEB1, nics=(added(-1, {"network": "lan", "ip": "pool"}),)),
         "instances.guests"),
        (FailOverInstance(instance_name=WEB1, target_node="beta"), "instances.begin_shutdown"),
    ],
)  # fmt: skip
def test_a_network_stays_connected_while_an_instance_comes_into_it(order: Any, call: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(AddGroup(group_name=GroupName("attic")))
        is_moved = isinstance(order, FailOverInstance)
        if is_moved:
            await cluster.run(AssignNodes(group_name=GroupName("attic"), nodes=(BETA,)))
            await cluster.run(replace(CONNECT, group_name="attic"))
            await cluster.run(in_lan(ip="pool"))
        else:
            await cluster.run(create("web1", "gamma"))
        reached = asyncio.Event()

        def is_reached(trip: Trip) -> bool:
            if trip.call.name == call:
                reached.set()
            return trip.call.name == call

        cluster.network.faults.append(Slow(is_reached, 5))
        number = await cluster.submit(order)
        await reached.wait()
        group = "attic" if is_moved else "default"
        with pytest.raises(Conflict, match="have nics in lan: web1"):
            await cluster.run(DisconnectNetwork(network_name=LAN, group_name=group))
        outcome(await cluster.finished(number))

    play(story)


def test_a_node_stays_in_its_group_while_another_could_not_plug_its_guests_in() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="pool"))
        attic = GroupName("attic")
        await cluster.run(AddGroup(group_name=attic))
        assign = AssignNodes(group_name=attic, nodes=(GAMMA,))
        with pytest.raises(Conflict, match=r"attic is not connected to.*: lan of web1"):
            await cluster.run(assign)
        assert cluster.config.node(GAMMA).group != cluster.config.group(attic).uuid
        await cluster.run(replace(CONNECT, group_name=attic))
        await cluster.run(assign)

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


def test_a_renamed_network_keeps_its_nics() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="pool"))
        await cluster.run(RenameNetwork(network_name=LAN, new_name=NetworkName("dmz")))
        assert await asked(cluster, "name", "inst_list") == ["dmz", ["web1"]]

    play(story)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"network": "198.51.100.1/24"}, "no IPv4 network, as in 192.0.2.0/24"),
        ({"network": "10.0.0.0/8"}, "too large: a network has /16 to /30"),
        ({"network": "192.0.2.1/32"}, "too small"),
        ({"network": "192.0.2.0/24", "gateway": "192.0.3.1"}, "192.0.3.1 is not in 192.0.2.0/24"),
        ({"network": "192.0.2.0/24", "gateway": "router"}, "“router” is no IPv4 address"),
        ({"network": "192.0.2.0/24", "add_reserved_ips": ("192.0.3.1",)}, "is not in"),
        ({"network": "192.0.2.0/24", "gateway6": "2001:db8::1"}, "needs a network of version 6"),
        ({"network": "192.0.2.0/24", "network6": "2001:db8::/64", "gateway6": "2001:db9::1"},
         "2001:db9::1 is not in 2001:db8::/64"),
        ({"network": "192.0.2.0/24", "mac_prefix": "aa:00"}, "no MAC prefix"),
        ({"network": "192.0.2.0/24", "mac_prefix": "01:00:00"}, "of groups of machines"),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused_and_nothing_is_kept(words: dict[str, Any], why: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match=why):
                await cluster.run(AddNetwork(network_name=LAN, **words))
            assert not cluster.config.networks

    simulate(scenario())


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


def test_nics_are_put_into_switches_and_vlans_as_asked() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        nic = NicRequest(mode="openvswitch", link="ovs0", vlan=".10:20")
        name = InstanceName("web9")
        order = replace(create("web9", "gamma"), nics=(nic,))
        with pytest.raises(NodeFailure, match="The switch 'ovs0' does not exist"):
            await cluster.run(order)
        cluster.machines["gamma"].network.switches.add("ovs0")
        await cluster.run(order)
        (tap,) = [t for t in await cluster.machines["gamma"].network.taps() if t.link == "ovs0"]
        assert tap.instance == cluster.config.instance(name).uuid
        with pytest.raises(InvalidRequest, match="a routed nic is in no VLAN"):
            change = changed(0, {"mode": "routed", "ip": "192.0.2.9"})
            await cluster.run(ModifyInstance(instance_name=name, nics=(change,)))
        change = changed(0, {"mode": "bridged", "link": "br0", "vlan": "none"})
        await cluster.run(ModifyInstance(instance_name=name, nics=(change,), hotplug=True))
        (nic_after,) = nics_of(cluster, "web9")
        assert nic_after.nicparams == {"mode": "bridged", "link": "br0", "vlan": ""}
        taps = {tap.nic: tap.link for tap in await cluster.machines["gamma"].network.taps()}
        assert taps[nic_after.uuid] == "br0"

    play(story)


def test_how_nics_are_plugged_in_can_be_said_in_one_word() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(AddNetwork(network_name=LAN, network="198.51.100.0/24"))
            group, mode = "default", "bridged"
            for words, why in (
                ({"link": "br7", "mode": "flying"}, "flying"),
                ({"colour": "red"}, "has no colour; it has mode, link and vlan"),
            ):
                bad = ConnectNetwork(network_name=LAN, group_name=group, nicparams=words)
                with pytest.raises(InvalidRequest, match=why):
                    await cluster.run(bad)
            words = {"link": "br7", "mode": mode}
            order = ConnectNetwork(network_name=LAN, group_name=group, nicparams=words)
            with pytest.raises(InvalidRequest, match=r"only once .* link"):
                await cluster.run(replace(order, network_link="br8"))
            await cluster.run(order)
            (connection,) = cluster.config.group(group).networks.values()
            assert connection == {"link": "br7", "mode": mode, "vlan": ""}

    simulate(scenario())
