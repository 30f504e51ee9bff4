"""What is only reserved is made at last: as it was reserved, or it stays reserved."""

import asyncio
from typing import Any

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity
from common.model.template import DiskTemplate
from common.names import InstanceName
from coordinator.operations.devices import DiskRequest, NicRequest
from coordinator.operations.instance.commit import CommitInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.reserve import ReserveInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.reserving import OWN_MIB, commit, order, web1
from tests.sim.settings import GAMMA, WEB1, create
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import outcome, simulated_cluster
from tests.support.faults import Failing, Slow
from tests.support.network import Trip


def test_a_reservation_without_a_name_or_a_template_cannot_be_made_yet() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            uuid = InstanceName(await cluster.run(ReserveInstance(forthcoming=True)))
            with pytest.raises(Conflict, match="has no name yet; “gnt-instance rename"):
                await cluster.run(commit(uuid))
            await cluster.run(RenameInstance(instance_name=uuid, new_name=WEB1))
            with pytest.raises(Conflict, match="how the disks of the reserved instance web1 are"):
                await cluster.run(commit(uuid))
            await web1(cluster, order("web2", disks=()))
            with pytest.raises(InvalidRequest, match="disk"):
                await cluster.run(commit("web2"))

    simulate(scenario())


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"beparams": {"memory": 512}}, "with maxmem 256, and is to be made with 512"),
        ({"disks": (DiskRequest(size=65),)}, "disks of 64 MiB, and is to be made with 65 MiB"),
        ({"disk_template": DiskTemplate.DRBD}, "the disk template plain"),
        ({"pnode": "alpha"}, "the nodes gamma, and is to be made with alpha"),
        ({"nics": (NicRequest(ip="192.0.2.7"),)}, "the address none, and is to be made with"),
    ],
)
def test_what_is_made_is_what_was_reserved(fields: dict[str, Any], what: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, order("web1", pnode="gamma", nics=(NicRequest(),)))
            with pytest.raises(InvalidRequest, match=what):
                await cluster.run(commit("web1", **fields))

    simulate(scenario())


def test_what_takes_no_room_can_still_be_said_when_it_is_made() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = await web1(cluster, order("web1", tags=("a",), osparams={"x": "1"}))
            again = order("web1", tags=("b",), osparams={"y": "2"}, hvparams={"acpi": False},
                          os_type="noop", no_install=True)  # fmt: skip
            said = {name: getattr(again, name) for name in again.__struct_fields__}
            await cluster.run(CommitInstance(**said | {"commit": True, "nics": (NicRequest(),)}))
            after = cluster.config.instance("web1")
            assert (after.uuid, after.disks, after.primary_node) == (
                before.uuid, before.disks, before.primary_node,
            )  # fmt: skip
            assert (after.os, after.tags) == ("noop", ("a", "b"))
            assert after.osparams == {"x": "1", "y": "2"}
            with pytest.raises(Conflict, match="web1 is there already"):
                await cluster.run(commit("web1"))

    simulate(scenario())


def test_a_reservation_stands_while_its_node_is_down_and_is_made_when_that_is_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, create(node="gamma", template=DiskTemplate.PLAIN))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            shop = InstanceName("shop")
            await cluster.run(RenameInstance(instance_name=WEB1, new_name=shop))
            with pytest.raises(GntError, match="gamma"):
                await cluster.run(commit("shop"))
            await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
            assert await cluster.run(commit("shop")) == ["gamma"]

    simulate(scenario())


def test_room_is_kept_while_what_is_reserved_is_made_as_that_may_fail() -> None:
    """Also for one that is not going to be started: if it fails, it is reserved as before."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].shrink_memory(OWN_MIB + 512)
            await web1(cluster, order("web1", 512, pnode="gamma"))
            cluster.network.faults += [Slow(_makes_disks, 5.0), Failing(_makes_disks)]
            making = await cluster.submit(commit("web1", start=False))
            await asyncio.sleep(2.0)
            with pytest.raises(NoCapacity, match="gamma has 0 MiB"):
                await cluster.run(
                    order("web2", 512, pnode="gamma", disk_template=DiskTemplate.SHAREDFILE)
                )
            with pytest.raises(GntError):
                outcome(await cluster.finished(making))
            assert cluster.config.instance("web1").forthcoming

    simulate(scenario())


def _makes_disks(trip: Trip) -> bool:
    return trip.call.name == "disks.ensure_present"


def test_a_display_that_is_told_later_has_a_port_of_its_own() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            display = {"vnc_bind_address": "127.0.0.1"}
            for name in ("web1", "web2", "web3"):
                await cluster.run(reserved(create(name, "gamma")))
            change = ModifyInstance(instance_name=WEB1, hvparams=display)
            made = [commit(name, hvparams=display) for name in ("web2", "web3")]
            jobs = [await cluster.submit(change), *[await cluster.submit(each) for each in made]]
            for job in jobs:
                outcome(await cluster.finished(job))
            ports = {each.network_port for each in cluster.config.instances.values()}
            assert len(ports - {0}) == 3

    simulate(scenario())
