"""Networks say how nics are plugged in, and which addresses they get."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure, NotFound
from common.messages import to_builtins
from common.model.job import Status
from common.names import GroupName, InstanceName, NetworkName
from coordinator.operations.base import Operation
from coordinator.operations.devices import NicRequest
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from coordinator.operations.network.disconnect import DisconnectNetwork
from coordinator.operations.network.modify import ModifyNetwork
from coordinator.operations.network.remove import RemoveNetwork
from coordinator.operations.network.rename import RenameNetwork
from coordinator.operations.tags.add import AddTags
from coordinator.state.tagged import Tagged
from tests.sim.lan import CONNECT, LAN, asked, in_lan, nics_of, outside, play
from tests.sim.settings import BETA, GAMMA, WEB1, added, changed, create, removed
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.network import Trip


def test_a_node_is_told_what_scripts_for_taps_want_to_know() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNetwork(network_name=LAN, gateway="198.51.100.254"))
        await cluster.run(AddTags(kind=Tagged.NETWORK, name=LAN, tags=("blue", "amber")))
        both = (NicRequest(network=LAN, ip="pool"), NicRequest(name="in\nside"), NicRequest())
        tags = ("web", *(f"{number:0120}" for number in range(40)))
        await cluster.run(replace(create("web1", "gamma"), nics=both, tags=("web", "front")))
        await cluster.run(replace(create("web2", "gamma"), tags=tags))
        nics, (network,) = nics_of(cluster), cluster.config.networks.values()
        guests = cluster.machines["gamma"].guests._guests.values()
        told = {str(guest.spec.name): guest.spec for guest in guests}
        assert told["web1"].tags == "front web"
        assert {nic: to_builtins(each) for nic, each in told["web1"].told_of_nics.items()} == {
            nics[0].uuid: {
                "network": {
                    "NETWORK_NAME": "lan", "NETWORK_UUID": network.uuid,
                    "NETWORK_SUBNET": "198.51.100.0/24", "NETWORK_GATEWAY": "198.51.100.254",
                    "NETWORK_TAGS": "amber blue",
                }
            },
        }  # fmt: skip
        assert told["web2"].tags == "", "half of them would say something else"

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
        assert await told(cluster, replace(CONNECT, network_link="br0")) == [
            "Group default is connected to lan already, in another way (link br7, mode bridged), "
            "and stays so. To have it otherwise, give “gnt-network disconnect lan default” first."
        ]
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
        ({}, "IPv4 addresses, IPv6 addresses, or both: give --network"),
        ({"network6": "2001:db8::1/64"}, "no IPv6 network, as in 2001:db8::/64"),
        ({"network6": "192.0.2.0/24"}, "no IPv6 network"),
        ({"network": "2001:db8::/64"}, "no IPv4 network"),
        ({"network6": "2001:db8::/48"}, "too large: a network of IPv6 addresses alone has /64 to"),
        ({"network6": "2001:db8::/127"}, "too small"),
        ({"network6": "2001:db8::/64", "gateway": "192.0.2.1"}, "needs a network of version 4"),
        ({"network6": "2001:db8::/64", "gateway6": "192.0.2.1"}, "is no IPv6 address"),
        ({"network6": "2001:db8::/64", "gateway6": "2001:db8::1%lo"}, "names a link"),
        ({"network6": "2001:db8::%lo/64"}, "names a link"),
        ({"network6": "2001:db8::/64", "add_reserved_ips": ("192.0.2.1",)}, "is not in 2001:db8"),
        ({"network6": "2001:db8::/64", "add_reserved_ips": ("2001:db8::1%lo",)}, "names a link"),
        ({"network6": "2001:db8::/64", "add_reserved_ips": ("router",)}, "is no IP address"),
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
