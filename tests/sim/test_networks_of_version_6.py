"""Networks that have addresses of version 6, alone or beside those of version 4."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest
from common.messages import to_builtins
from common.model.network import Network
from common.names import InstanceName, NetworkName
from coordinator.hooks.variables import of_network
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.devices import NicRequest
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.modify import ModifyNetwork
from coordinator.queries.config_data import config_data
from coordinator.state.rows import Put
from tests.sim.lan import LAN, asked, in_lan, nics_of, outside, play
from tests.sim.settings import WEB1, changed, create
from tests.support.cluster import SimulatedCluster, outcome
from tests.support.rest import rest_of

SIX = AddNetwork(network_name=LAN, network6="2001:db8::/64", gateway6="2001:db8::1")
BOTH = replace(SIX, network="198.51.100.0/24")


def network_of(cluster: SimulatedCluster) -> Network:
    (network,) = cluster.config.networks.values()
    return network


async def modify(cluster: SimulatedCluster, *nics: Any) -> None:
    await cluster.run(ModifyInstance(instance_name=WEB1, nics=nics))


async def change_network(cluster: SimulatedCluster, **told: Any) -> None:
    await cluster.run(ModifyNetwork(network_name=LAN, **told))


def test_a_nic_gets_the_lowest_address_that_is_free_and_its_node_is_told_of_the_network() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await change_network(cluster, add_reserved_ips=("2001:DB8::0:3",))
        jobs = [await cluster.submit(in_lan(f"web{n}", ip="pool")) for n in range(1, 4)]
        for number in jobs:
            outcome(await cluster.finished(number))
        given = {nics_of(cluster, f"web{n}")[0].ip for n in range(1, 4)}
        assert given == {"2001:db8::2", "2001:db8::4", "2001:db8::5"}
        guest = next(iter(cluster.machines["gamma"].guests._guests.values()))
        (told,) = to_builtins(guest.spec.told_of_nics).values()
        of_network_6 = {
            "NETWORK_NAME": "lan", "NETWORK_UUID": network_of(cluster).uuid,
            "NETWORK_SUBNET6": "2001:db8::/64", "NETWORK_GATEWAY6": "2001:db8::1",
            "NETWORK_TAGS": "",
        }  # fmt: skip
        assert told["network"] == of_network_6
        assert of_network(network_of(cluster)) == {"OP_TARGET": LAN, **of_network_6}

    play(story, SIX)


def test_addresses_of_version_6_are_counted_without_a_map() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="pool"))
        fields = ("network", "network6", "free_count", "reserved_count", "map", "inst_list",
                  "external_reservations")  # fmt: skip
        assert await asked(cluster, *fields) == [
            None, "2001:db8::/64", 2**64 - 3, 3, "", ["web1"], "2001:db8::, 2001:db8::1",
        ]  # fmt: skip

    play(story, SIX)


def test_an_address_that_is_taken_reserved_or_elsewhere_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="2001:DB8::7"))
        for ip, why in (
            ("2001:db8::7", "2001:db8::7 is taken by a nic in the network lan"),
            ("2001:db8::", "reserved"),
            ("2001:db8::1", "reserved"),
            ("2001:db9::7", "not in the network lan, which is 2001:db8::/64"),
            ("192.0.2.7", "not in the network lan"),
        ):
            with pytest.raises(GntError, match=why):
                await cluster.run(in_lan("web2", ip=ip))
        with pytest.raises(Conflict, match="2001:db8::9 is an address of the network lan: give"):
            await cluster.run(outside("2001:db8::9"))
        with pytest.raises(Conflict, match="2001:db8::7 is the address of a nic of web1"):
            await change_network(cluster, add_reserved_ips=("2001:db8::7",))
        with pytest.raises(Conflict, match="2001:db8::7 is the address of a nic of web1"):
            await change_network(cluster, gateway6="2001:db8::7")

    play(story, SIX)


def test_an_import_puts_a_nic_back_with_its_address() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="2001:db8::9"))
        await cluster.run(ExportInstance(instance_name=WEB1, target_node="beta"))
        shop = InstanceName("shop")
        again = ImportInstance(instance_name=shop, src_node="beta", src_path="web1", pnode="gamma")
        await cluster.run(again)  # while web1 has its address
        assert nics_of(cluster, "shop")[0].ip == "2001:db8::2"
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(ImportInstance(instance_name=WEB1, src_node="beta", pnode="gamma"))
        assert nics_of(cluster)[0].ip == "2001:db8::9"

    play(story, SIX)


def test_in_a_network_of_both_versions_the_pool_is_that_of_version_4() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        nics = tuple(NicRequest(network=LAN, ip=ip) for ip in ("pool", "2001:db8::7"))
        await cluster.run(replace(create("web1", "gamma"), nics=nics))
        assert [nic.ip for nic in nics_of(cluster)] == ["198.51.100.1", "2001:db8::7"]
        assert await asked(cluster, "free_count", "reserved_count") == [253, 3]
        with pytest.raises(Conflict, match="2001:db8:0::7 is taken"):
            await cluster.run(in_lan("web2", ip="2001:db8:0::7"))
        with pytest.raises(InvalidRequest, match=r"is 198\.51\.100\.0/24 and 2001:db8::/64"):
            await cluster.run(in_lan("web2", ip="2001:db9::7"))

    play(story, BOTH)


@pytest.mark.parametrize("given", ["2001:db9::/64", "none"])
def test_a_range_that_nics_have_addresses_of_is_not_taken_away(given: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="2001:db8::7"))
        with pytest.raises(Conflict, match="2001:db8::7 of web1 is in 2001:db8::/64"):
            await change_network(cluster, network6=given, gateway6="none")
        await change_network(cluster, network6="2001:db8::/60")
        await modify(cluster, changed(0, {"ip": "pool"}))
        await change_network(cluster, network6=given, gateway6="none")

    play(story, BOTH)


def test_a_network_keeps_the_only_addresses_that_it_has() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(InvalidRequest, match="IPv4 addresses, IPv6 addresses, or both"):
            await change_network(cluster, network6="none", gateway6="none")
        await change_network(cluster, network6="2001:db9::/64", gateway6="none")
        await cluster.run(in_lan(ip="pool"))
        assert nics_of(cluster)[0].ip == "2001:db9::1"

    play(story, SIX)


def test_a_nic_whose_address_was_let_be_is_changed_otherwise_all_the_same() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(in_lan(ip="2001:db8::7"))
        stray = replace(nics_of(cluster)[0], ip="2001:db9::7")  # as earlier versions let it be
        await cluster.master.running.store.commit([Put(stray)])
        await modify(cluster, changed(0, {"mac": "aa:00:00:12:34:56"}))
        assert [nic.ip for nic in nics_of(cluster)] == ["2001:db9::7"]
        with pytest.raises(InvalidRequest, match="2001:db9::7 is not in the network lan"):
            await modify(cluster, changed(0, {"ip": "2001:db9::7"}))

    play(story, BOTH)


def test_an_address_of_a_node_is_reserved_in_whichever_version() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        wan = AddNetwork(network_name=NetworkName("wan"), network="192.0.2.0/24",
                         network6="2001:db9::/64", add_reserved_ips=("2001:db9::2",))  # fmt: skip
        await cluster.run(wan)
        (reserved,) = (n.reserved for n in cluster.config.networks.values() if n.name == "wan")
        assert reserved[-1] == "2001:db9::2"
        assert set(reserved[:-1]) == {n.primary_ip for n in cluster.config.nodes.values()}

    play(story, SIX)


def test_the_configuration_in_ganetis_words_has_no_bits_of_so_many_addresses() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        networks = config_data(cluster.master.running.store.state)["networks"]
        (told,) = networks.values()
        assert (told["network"], told["network6"], told["reservations"]) == (
            None, "2001:db8::/64", "",
        )  # fmt: skip

    play(story, SIX)


def test_programs_of_the_rest_interface_make_such_a_network_and_read_what_it_has(
    tmp_path: Path,
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        body = {"network_name": "six", "network": None, "network6": "2001:db9::/64"}
        async with rest_of(cluster, tmp_path) as rest:
            job = await rest.job("POST", "/2/networks", body)
            assert job["status"] == "success"
            fields = "network,network6,free_count,reserved_count,map"
            path = f"/2/query/network?fields=name,{fields}"
            rows = (await rest.ask("GET", path)).value["data"]
        (six,) = (row[1:] for row in rows if row[0][1] == "six")
        assert [value for _, value in six] == [None, "2001:db9::/64", 2**64 - 1, 1, ""]

    play(story)
