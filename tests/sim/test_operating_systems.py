"""Which operating systems a cluster has, and which of them instances may be recorded with."""

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.job import Status
from common.names import JobId
from common.noderpc.operating_systems import DefinitionReport
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.os_settings import OsListing
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.os.diagnose import DiagnoseOperatingSystems
from noded.operating_systems.fake import DEBIAN, NOOP, FakeOsDriver
from tests.sim.operating_systems import LOOK, installed, looked, reinstalled
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import outcome, simulated_cluster


def test_what_every_node_has_whole_can_be_installed() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            debian = (await looked(cluster))["debian"]
            assert debian["valid"]
            assert debian["variants"] == ["stable", "testing"]
            assert debian["api_versions"] == [15, 20]
            assert debian["node_status"]["beta"][0][:2] == ["/srv/os/debian", True]  # type: ignore[index]
            cluster.machines["gamma"].operating_systems.there = (NOOP,)
            debian = (await looked(cluster))["debian"]
            assert not debian["valid"]
            assert debian["variants"] == []
            assert debian["node_status"]["gamma"] == []  # type: ignore[index]
            legacy = DiagnoseOperatingSystems(output_fields=("name",))
            assert await cluster.run(legacy) == [["noop"]]

    simulate(story())


def test_only_what_is_the_same_on_all_nodes_counts() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            newer = dataclasses.replace(DEBIAN, variants=("testing", "sid"), api_versions=(20,))
            cluster.machines["beta"].operating_systems.there = (newer,)
            debian = (await looked(cluster))["debian"]
            assert debian["variants"] == ["testing"]
            assert debian["api_versions"] == [20]

    simulate(story())


def test_a_node_that_does_not_answer_is_named_and_left_out() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.lose_power("gamma")
            job = await cluster.finished(await cluster.submit(LOOK))
            assert "gamma did not tell of its operating systems" in str(job.ops[0].log)
            assert job.ops[0].result[0][1]

    simulate(story())


def test_an_unknown_field_is_refused() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match="have no field “colour”; they have name,"):
                await cluster.run(DiagnoseOperatingSystems(output_fields=("colour",)))

    simulate(story())


def test_what_is_not_installed_is_recorded_if_its_node_has_it() -> None:
    order = create(node="gamma", start=False)

    async def story() -> None:
        async with simulated_cluster() as cluster:
            for os, why in (
                ("plan9", "gamma has no operating system “plan9”"),
                ("debian", "say which: debian"),
                ("debian+sarge", "declares no variant “sarge”"),
            ):
                with pytest.raises(InvalidRequest, match=why):
                    await cluster.run(replace(order, os_type=os, no_install=True))
                assert cluster.config.find_instance("web1") is None
            told = replace(order, os_type="debian+sarge", no_install=True, force_variant=True)
            await cluster.run(told)
            assert cluster.config.instance("web1").os == "debian+sarge"

    simulate(story())


def test_an_operating_system_that_its_node_does_not_have_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changed(os: str, *, force: bool = False) -> ModifyInstance:
        return ModifyInstance(instance_name=WEB1, os_name=os, force_variant=force)

    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create(node="gamma", start=False))
            for os, why in (
                ("nope", "gamma has no operating system “nope”"),
                ("debian+sid", "declares no variant “sid”, but stable, testing"),
                ("noop+x", "noop has no variants; leave \\+x out"),
                ("debian", "debian has variants; say which: debian\\+stable"),
                ("../debian", "is no name of an operating system"),
            ):
                with pytest.raises(InvalidRequest, match=why):
                    await cluster.run(changed(os))
                assert cluster.config.instance("web1").os == ""
            await cluster.run(changed("debian+sid", force=True))

            async def broken(_: object) -> tuple[DefinitionReport, ...]:
                return (DefinitionReport(name="noop", problem="It has no “create”."),)

            monkeypatch.setattr(FakeOsDriver, "definitions", broken)
            with pytest.raises(InvalidRequest, match="gamma cannot use noop: It has no"):
                await cluster.run(changed("noop", force=True))
            await cluster.run(ModifyCluster(blacklisted_os=((OsListing.ADD, "debian"),)))
            with pytest.raises(Conflict, match="blacklisted"):
                await cluster.run(changed("debian"))
            assert cluster.config.instance("web1").os == "debian+sid"
            await cluster.lose_power("gamma")
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            job = await cluster.finished(await cluster.submit(changed("nope")))
            assert job.status is Status.SUCCESS
            assert "whether it has nope was not looked at" in str(job.ops[0].log)

    simulate(story())


def test_hidden_systems_are_not_listed_and_blacklisted_ones_not_installed() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            listed = DiagnoseOperatingSystems(output_fields=("name",))
            await cluster.run(ModifyCluster(hidden_os=((OsListing.ADD, "noop"),)))
            assert await cluster.run(listed) == [["debian"]]
            await cluster.run(installed("noop"))
            changes = ((OsListing.ADD, "debian"), (OsListing.REMOVE, "plan9"))
            await cluster.run(ModifyCluster(blacklisted_os=changes))
            assert await cluster.run(listed) == []
            with pytest.raises(Conflict, match=r"debian is blacklisted; “gnt-os modify"):
                await cluster.run(reinstalled(os_type="debian+stable"))
            await cluster.run(ModifyCluster(blacklisted_os=((OsListing.REMOVE, "debian"),)))
            await cluster.run(reinstalled(os_type="debian+stable"))

    simulate(story())


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"osparams": {"../debian": {"mirror": "near"}}}, "no name of an operating system"),
        ({"osparams": {"debian": {"a b": "near"}}}, "no name of a parameter"),
        ({"osparams_private_cluster": {"debian": {"a b": "near"}}}, "no name of a parameter"),
        ({"osparams": {"debian": {"mirror": [1]}}}, "mirror in the parameters of debian is no"),
        ({"hidden_os": (("add", "debian+stable"),)}, "has a variant"),
        ({"hidden_os": (("paint", "debian"),)}, "paint"),
        ({"os_hvp": {"debian": {"kvm": {"acpi": "maybe"}}}}, "acpi"),
        ({"os_hvp": {"debian": {"vmware": {"acpi": True}}}}, "no hypervisor “vmware”"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], match: str) -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            before = cluster.config.cluster
            with pytest.raises(InvalidRequest, match=match):
                wire = {"OP_ID": "OP_CLUSTER_SET_PARAMS"} | wrong
                number = JobId(await cluster.master.luxi("SubmitJob", [wire]))
                outcome(await cluster.finished(number))
            assert cluster.config.cluster == before

    simulate(story())
