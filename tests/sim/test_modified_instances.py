"""An instance's parameters and nics are changed as asked, checked before, and used at a start."""

from typing import Any

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure, NotFound
from common.model.instance import AdminState
from common.model.nic import Nic
from common.names import InstanceName
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import WEB1, added, changed, create, removed
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing
from tests.support.network import Trip


def modify(**fields: Any) -> ModifyInstance:
    return ModifyInstance(instance_name=WEB1, **fields)


def on_stopped_web1(play: Any) -> None:
    """Play something with an instance that has one nic and is down."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            await play(cluster)

    simulate(scenario())


def nics(cluster: SimulatedCluster) -> tuple[Nic, ...]:
    return cluster.config.nics_of(cluster.config.instance("web1"))


async def guests(cluster: SimulatedCluster) -> list[tuple[int, int, int]]:
    found = await cluster.machines["beta"].guest_list()
    return [(guest.memory, guest.vcpus, len(guest.nics)) for guest in found]


def test_parameters_are_set_and_reset_and_used_at_the_next_start() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(StartInstance(instance_name=WEB1))
        assert await guests(cluster) == [(128, 1, 1)]
        result = await cluster.run(
            modify(
                beparams={"memory": "256M", "vcpus": 2}, hvparams={"acpi": False}, os_name="noop",
                osparams={"release": "trixie"}, nics=(added(-1),),
            )
        )  # fmt: skip
        assert result[:3] == [["be/maxmem", 256], ["be/minmem", 256], ["be/vcpus", 2]]
        assert ["hv/acpi", False] in result
        assert ["os", "noop"] in result
        assert await guests(cluster) == [(128, 1, 1)]  # it goes on as it is
        await cluster.run(RebootInstance(instance_name=WEB1))
        assert await guests(cluster) == [(256, 2, 2)]
        await cluster.run(
            modify(beparams={"memory": "default", "vcpus": "default"}, osparams={"release": None})
        )
        instance = cluster.config.instance("web1")
        assert (instance.beparams, instance.hvparams, instance.osparams) == (
            {}, {"acpi": False}, {},
        )  # fmt: skip

    on_stopped_web1(play)


def test_what_takes_effect_at_the_next_start_only_is_said() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        async def log_of(change: ModifyInstance) -> str:
            job = await cluster.finished(await cluster.submit(change))
            return " ".join(entry.message for entry in job.ops[0].log)

        assert "takes effect" not in await log_of(modify(beparams={"vcpus": 2}))
        await cluster.run(StartInstance(instance_name=WEB1))
        assert "takes effect" in await log_of(modify(beparams={"vcpus": 3}))
        assert "takes effect" not in await log_of(modify(osparams={"release": "trixie"}))

    on_stopped_web1(play)


def test_nics_are_found_by_number_name_and_uuid() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        first = nics(cluster)[0]
        await cluster.run(
            modify(
                nics=(
                    added(-1, {"name": "inner", "link": "br1"}),
                    added(0, {"mac": "aa:00:00:12:34:56"}),
                    changed("inner", {"ip": "192.0.2.7", "mode": "routed"}),
                    changed(first.uuid, {"name": "outer"}),
                )
            )
        )
        assert [nic.name for nic in nics(cluster)] == ["", "outer", "inner"]
        assert nics(cluster)[0].mac == "aa:00:00:12:34:56"
        assert nics(cluster)[1].mac == first.mac
        inner = nics(cluster)[2]
        assert (inner.ip, inner.nicparams) == ("192.0.2.7", {"link": "br1", "mode": "routed"})
        await cluster.run(
            modify(
                nics=(
                    changed(
                        -1, {"ip": "none", "link": "default", "mode": "bridged", "name": "none"}
                    ),
                    changed("outer", {"mac": "generate"}),
                    removed(0),
                )
            )
        )
        outer, inner = nics(cluster)
        assert (inner.ip, inner.name, inner.nicparams) == ("", "", {"mode": "bridged"})
        assert outer.mac.startswith("aa:00:00:")
        assert set(cluster.config.nics) == {outer.uuid, inner.uuid}  # nothing is left of the first

    on_stopped_web1(play)


REFUSED: list[tuple[dict[str, Any], type[GntError], str]] = [  # and how
    ({}, InvalidRequest, "Nothing to change on instance web1"),
    ({"beparams": {"vcpus": 0}}, InvalidRequest, "vcpus"),
    ({"beparams": {"vcpu": 1}}, InvalidRequest, "vcpu"),
    ({"beparams": {"minmem": "1G"}}, InvalidRequest, "minmem"),
    ({"beparams": {"memory": "64G"}}, Conflict, "does not allow web1"),
    ({"hvparams": {"serial_speed": -1}}, InvalidRequest, "serial_speed"),
    ({"hvparams": {"initrd_path": "/initrd"}}, InvalidRequest, "kernel_path is not"),
    ({"nics": (removed(1),)}, NotFound, "has no nic 1"),
    ({"nics": (changed("inner", {"ip": ""}),)}, NotFound, "no nic inner"),
    ({"nics": (changed(0, {"lnk": "br1"}),)}, InvalidRequest, "lnk"),
    ({"nics": (changed(0, {"ip": "x"}),)}, InvalidRequest, "address"),
    ({"nics": (changed(0, {"mode": "x"}),)}, InvalidRequest, "mode"),
    ({"nics": (changed(0, {"mac": "default"}),)}, InvalidRequest, "mac"),
    ({"nics": (removed(0, {"ip": "x"}),)}, InvalidRequest, "is removed"),
    ({"nics": (added(3),)}, InvalidRequest, "the numbers 0 to 1"),
    ({"nics": (added(-1),) * 8}, InvalidRequest, "at most 8 nics"),
]


def test_what_does_not_fit_is_refused_and_nothing_is_changed() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        before = cluster.config
        for fields, kind, said in REFUSED:
            with pytest.raises(kind, match=said):
                await cluster.run(modify(**fields))
            assert cluster.config == before, fields

    on_stopped_web1(play)


def test_a_mac_address_of_another_instance_is_refused() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web2", "beta", start=False))
        theirs = cluster.config.nics_of(cluster.config.instance("web2"))[0].mac
        with pytest.raises(Conflict, match="taken by a nic of web2"):
            await cluster.run(modify(nics=(changed(0, {"mac": theirs}),)))

    on_stopped_web1(play)


def test_a_policy_is_overridden_on_request() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(beparams={"memory": "64G"}, ignore_ipolicy=True))
        assert cluster.config.instance("web1").beparams["maxmem"] == 65536

    on_stopped_web1(play)


def test_an_instance_that_is_offline_is_not_started_before_it_is_online() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(offline=True))
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert cluster.config.instance("web1").admin_state is AdminState.OFFLINE
        for start in (StartInstance(instance_name=WEB1), RebootInstance(instance_name=WEB1)):
            with pytest.raises(Conflict, match="modify --online web1"):
                await cluster.run(start)
        await cluster.run(modify(offline=False))
        assert cluster.config.instance("web1").admin_state is AdminState.DOWN
        await cluster.run(StartInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match="runs; stop it"):
            await cluster.run(modify(offline=True))

    on_stopped_web1(play)


def test_a_guest_uses_less_of_its_memory_while_it_runs_and_when_it_has_moved() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(beparams={"maxmem": 128, "minmem": 64}))
        less = modify(runtime_mem=96)
        with pytest.raises(Conflict, match="web1 does not run, so there is no memory"):
            await cluster.run(less)
        await cluster.run(StartInstance(instance_name=WEB1))
        assert await cluster.run(less) == [["runtime_memory", 96]]
        assert await oper_ram(cluster) == 96
        for amount in (0, 63, 129):
            with pytest.raises(InvalidRequest, match=r"between 64 .minmem. and 128 MiB"):
                await cluster.run(modify(runtime_mem=amount))
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
        assert await oper_ram(cluster) == 96
        await cluster.run(modify(runtime_mem=128))
        assert await oper_ram(cluster) == 128
        await cluster.run(modify(runtime_mem=64))
        await cluster.run(RebootInstance(instance_name=WEB1))
        assert await oper_ram(cluster) == 128

    on_stopped_web1(play)


def test_a_guest_has_its_memory_back_when_the_rest_of_a_change_fails() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(beparams={"maxmem": 128, "minmem": 32}))
        await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(modify(runtime_mem=96))
        left = iter([True])  # and not when it is undone

        def plugs(trip: Trip) -> bool:
            return trip.call.name == "instances.ensure_nics" and next(left, False)

        cluster.network.faults.append(Failing(plugs))
        with pytest.raises(NodeFailure, match="injected"):
            await cluster.run(modify(runtime_mem=64, nics=(added(-1),), hotplug=True))
        assert await oper_ram(cluster) == 96

    on_stopped_web1(play)


def test_memory_is_taken_from_no_guest_that_says_nothing_or_has_ended() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(beparams={"maxmem": 128, "minmem": 32}))
        await cluster.run(StartInstance(instance_name=WEB1))
        uuid, guests = cluster.config.instance("web1").uuid, cluster.machines["beta"].guests
        guests.hang(uuid)
        with pytest.raises(Conflict, match="whether it runs is not known"):
            await cluster.run(modify(runtime_mem=64))
        guests.wake(uuid)
        guests.crash(uuid)
        with pytest.raises(Conflict, match="web1 does not run, so there is no memory"):
            await cluster.run(modify(runtime_mem=64))

    on_stopped_web1(play)


async def oper_ram(cluster: SimulatedCluster) -> int:
    ((ram,),) = await cluster.master.luxi("QueryInstances", (), ["oper_ram"])
    return int(ram)


def seen(cluster: SimulatedCluster, node: str = "beta") -> dict[int, str]:
    """Return the nics that the guest itself has: slots, and MAC addresses."""
    return cluster.machines[node].guests.seen_nics(cluster.config.instance("web1").uuid)


async def taps(cluster: SimulatedCluster, node: str = "beta") -> set[str]:
    return {tap.nic for tap in await cluster.machines[node].network.taps()}


def test_nics_come_and_go_and_change_at_once_with_hotplug() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(StartInstance(instance_name=WEB1))
        first = nics(cluster)[0].mac
        result = await cluster.run(modify(nics=(added(-1, {"name": "inner"}),), hotplug=True))
        assert result[0][0] == "nic.1"
        assert seen(cluster) == {0: first, 1: nics(cluster)[1].mac}
        await cluster.run(modify(nics=(changed("inner", {"mac": "auto"}),), hotplug=True))
        second = nics(cluster)[1].mac
        assert seen(cluster) == {0: first, 1: second}
        await cluster.run(modify(nics=(removed(0), added(-1)), hotplug=True))
        assert seen(cluster) == {0: nics(cluster)[1].mac, 1: second}
        assert await taps(cluster) == {nic.uuid for nic in nics(cluster)}
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="gamma"))
        assert seen(cluster, "gamma") == {0: nics(cluster)[1].mac, 1: second}
        assert await taps(cluster) == set()

    on_stopped_web1(play)


def test_a_nic_that_the_guest_does_not_let_go_of_stays() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(StartInstance(instance_name=WEB1))
        cluster.machines["beta"].guests.deafen(cluster.config.instance("web1").uuid)
        before = nics(cluster)
        with pytest.raises(NodeFailure, match="asked to let go of a nic"):
            await cluster.run(modify(nics=(removed(0), added(-1)), hotplug=True))
        assert nics(cluster) == before
        assert await taps(cluster) == {before[0].uuid}

    on_stopped_web1(play)


def test_without_hotplug_nics_come_at_the_next_start_or_with_the_next_that_does() -> None:
    async def play(cluster: SimulatedCluster) -> None:
        await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(modify(nics=(added(-1),)))
        assert len(seen(cluster)) == 1
        await cluster.run(modify(nics=(added(-1),), hotplug_if_possible=True))
        assert len(seen(cluster)) == len(nics(cluster)) == 3
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(modify(nics=(removed(-1),), hotplug=True))
        assert await taps(cluster) == set()

    on_stopped_web1(play)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"beparams": {"memory": "256M"}}, "other memory since"),
        ({"nics": (added(-1),)}, "other nics since"),
        ({"beparams": {"vcpus": 2}}, "other processors since"),
    ],
)
def test_a_guest_that_runs_otherwise_than_configured_is_not_moved_before_its_reboot(
    fields: dict[str, Any], said: str
) -> None:
    async def play(cluster: SimulatedCluster) -> None:
        move = MigrateInstance(instance_name=InstanceName("web1"), target_node="gamma")
        await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(modify(**fields))
        with pytest.raises(Conflict, match=said):
            await cluster.run(move)
        await cluster.run(RebootInstance(instance_name=WEB1))
        await cluster.run(move)

    on_stopped_web1(play)
