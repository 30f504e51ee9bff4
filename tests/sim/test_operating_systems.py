"""Which operating systems a cluster has, and what becomes of scripts amid mishaps."""

import asyncio
import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.messages import to_json
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, NetworkName
from common.noderpc.operating_systems import DefinitionReport, Script, ScriptOrder
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.os_settings import OsListing
from coordinator.operations.devices import NicRequest
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reinstall import ReinstallInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.network.add import AddNetwork
from coordinator.operations.network.connect import ConnectNetwork
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.os.diagnose import FIELDS, DiagnoseOperatingSystems
from noded.operating_systems.fake import DEBIAN, NOOP, FakeOsDriver
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

LOOK = DiagnoseOperatingSystems(output_fields=FIELDS)


async def looked(cluster: SimulatedCluster) -> dict[str, dict[str, object]]:
    rows = await cluster.run(LOOK)
    return {row[0]: dict(zip(FIELDS, row, strict=True)) for row in rows}


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


def installed(
    os: str = "debian+stable", node: str | None = "gamma", *, start: bool = False, **more: Any
) -> CreateInstance:
    return replace(create(node=node, start=start), os_type=os, **more)


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


def test_confidential_parameters_reach_the_script_and_neither_job_nor_list_nor_log() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            seen: list[ScriptOrder] = []
            cluster.machines["gamma"].operating_systems.watch = seen.append
            secret: dict[str, Any] = {"osparams_private": {"root_password": "open sesame"}}
            secret |= {"osparams_secret": {"mirror": "http://user:word@mirror"}}
            number = await cluster.submit(installed(**secret))
            job = await cluster.finished(number)
            assert job.status is Status.SUCCESS, job.ops[0].failure
            (order,) = {each.parameters.get("root_password"): each for each in seen}.values()
            assert order.parameters == {
                "root_password": "open sesame", "mirror": "http://user:word@mirror",
            }  # fmt: skip
            assert order.confidential == ("mirror", "root_password")
            for text in (to_json(job), to_json(cluster.config.instance("web1"))):
                assert b"sesame" not in text
                assert b"user:word" not in text
            kept = "".join(each.value for each in cluster.state.secrets.values())
            assert "sesame" in kept
            assert "user:word" not in kept
            await cluster.run(RemoveInstance(instance_name=WEB1))
            assert "sesame" not in "".join(s.value for s in cluster.state.secrets.values())

    simulate(story())


def test_many_instances_at_once_have_no_confidential_parameters() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            told = {"instance_name": "web1", "osparams_secret": {"root_password": "sesame"}}
            wire = {"OP_ID": "OP_INSTANCE_MULTI_ALLOC", "instances": [told]}
            with pytest.raises(InvalidRequest, match="are made one by one"):
                await cluster.master.luxi("SubmitJob", [wire])

    simulate(story())


def reinstalled(**more: Any) -> ReinstallInstance:
    return ReinstallInstance(instance_name=WEB1, **more)


def test_an_instance_is_installed_anew_with_what_it_has_or_with_another() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            seen: list[ScriptOrder] = []
            private = {"root_password": "open sesame"}
            await cluster.run(installed(osparams={"mirror": "near"}, osparams_private=private))
            cluster.machines["gamma"].operating_systems.watch = seen.append
            await cluster.run(reinstalled())
            assert seen[-1].is_reinstallation
            assert seen[-1].parameters == {"mirror": "near", "root_password": "open sesame"}
            await cluster.run(reinstalled(os_type="debian+testing", osparams={"mirror": "far"}))
            assert seen[-1].parameters["mirror"] == "far"
            instance = cluster.config.instance("web1")
            assert (instance.os, instance.osparams) == ("debian+testing", {"mirror": "near"})
            await cluster.run(reinstalled(os_type="noop"))
            assert seen[-1].parameters == {}
            instance = cluster.config.instance("web1")
            assert (instance.os, instance.osparams) == ("noop", {})
            words = (await cluster.snapshot()).contents["shared"].values()
            assert list(words) == ["noop for web1"]
            assert cluster.machines["gamma"].attached == {}

    simulate(story())


def test_an_installation_anew_that_fails_leaves_the_instance_with_what_it_was() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed())
            cluster.machines["gamma"].operating_systems.failing.add(Script.CREATE)
            with pytest.raises(NodeFailure, match="no mirror"):
                await cluster.run(reinstalled(os_type="noop"))
            assert cluster.config.instance("web1").os == "debian+stable"

    simulate(story())


def test_what_runs_or_has_nothing_to_install_on_is_not_installed_anew() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create(node="gamma"))
            with pytest.raises(InvalidRequest, match="has no operating system; say which, with -o"):
                await cluster.run(reinstalled())
            with pytest.raises(Conflict, match="web1 runs; stop it first"):
                await cluster.run(reinstalled(os_type="noop"))

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
                ("noop+x", "declares no variant “x”, but none"),
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


def test_disks_that_an_operator_has_attached_stay_attached() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed())
            await cluster.run(ActivateDisks(instance_name=WEB1))
            before = cluster.machines["gamma"].attached
            assert before
            await cluster.run(reinstalled())
            assert cluster.machines["gamma"].attached == before

    simulate(story())


def test_what_the_cluster_has_for_a_system_lies_below_what_an_instance_has() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(
                ModifyCluster(
                    osparams={"debian": {"mirror": "near"}, "debian+stable": {"mirror": "nearer"}},
                    osparams_private_cluster={"debian": {"root_password": "open sesame"}},
                    os_hvp={"debian": {"kvm": {"acpi": False, "kernel_args": "quiet"}}},
                )
            )
            seen: list[ScriptOrder] = []
            for machine in cluster.machines.values():
                machine.operating_systems.watch = seen.append
            await cluster.run(installed(hvparams={"kernel_args": "ro"}))
            assert seen[-1].parameters == {"mirror": "nearer", "root_password": "open sesame"}
            hvparams = seen[-1].subject.hvparams
            assert (hvparams["acpi"], hvparams["kernel_args"]) == (False, "ro")
            await cluster.run(reinstalled(os_type="debian+testing", osparams={"mirror": "own"}))
            assert seen[-1].parameters["mirror"] == "own"
            assert b"sesame" not in to_json(cluster.config.cluster)
            found = (await looked(cluster))["debian"]
            assert found["osparams"] == {"mirror": "near"}
            await cluster.run(
                ModifyCluster(
                    osparams={"debian": {"mirror": "default"}},
                    osparams_private_cluster={"debian": {"root_password": "default"}},
                )
            )
            assert "debian" not in cluster.config.cluster.osparams
            assert "sesame" not in "".join(each.value for each in cluster.state.secrets.values())

    simulate(story())


def test_private_parameters_of_the_cluster_are_in_no_job() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            private = {"debian": {"root_password": "open sesame"}}
            order = ModifyCluster(osparams_private_cluster=private)
            job = await cluster.finished(await cluster.submit(order))
            assert job.status is Status.SUCCESS
            assert b"sesame" not in to_json(job)

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


def renamed(**more: Any) -> RenameInstance:
    return RenameInstance(instance_name=WEB1, new_name=InstanceName("shop"), **more)


def test_a_renaming_is_told_to_what_is_installed() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed())
            seen: list[ScriptOrder] = []
            cluster.machines["gamma"].operating_systems.watch = seen.append
            await cluster.run(renamed())
            assert (seen[-1].script, seen[-1].old_name) == (Script.RENAME, "web1")
            assert list(cluster.shared.contents.values()) == ["debian+stable for shop"]
            assert cluster.config.instance("shop").os == "debian+stable"
            assert cluster.machines["gamma"].attached == {}

    simulate(story())


@pytest.mark.parametrize(
    ("os", "start", "more"),
    [("noop", False, {}), ("debian+stable", True, {}), ("debian+stable", False, {"run_script": 0})],
    ids=["no such script", "it runs", "not wished"],
)
def test_without_a_script_only_the_name_is_changed(
    os: str, start: bool, more: dict[str, Any]
) -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed(os, start=start))
            wish = {name: bool(value) for name, value in more.items()}
            await cluster.run(renamed(**wish))
            words = cluster.shared.contents.values()
            assert list(words) == [f"{os} for web1"]
            assert cluster.config.find_instance("shop") is not None

    simulate(story())


def test_a_script_that_cannot_rename_keeps_the_name() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed())
            cluster.machines["gamma"].operating_systems.failing.add(Script.RENAME)
            with pytest.raises(NodeFailure, match="rename of debian"):
                await cluster.run(renamed())
            assert cluster.config.find_instance("shop") is None

    simulate(story())


def test_private_parameters_of_an_instance_are_changed_without_a_trace() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed())
            given = {"root_password": "open sesame"}
            order = ModifyInstance(instance_name=WEB1, osparams_private=given)
            job = await cluster.finished(await cluster.submit(order))
            assert job.status is Status.SUCCESS, job.ops[0].failure
            assert b"sesame" not in to_json(job)
            seen: list[ScriptOrder] = []
            cluster.machines["gamma"].operating_systems.watch = seen.append
            await cluster.run(reinstalled())
            assert seen[-1].parameters == given
            for wrong in ({"osparams_private": {"a b": "1"}}, {"os_name": "../debian"}):
                with pytest.raises(InvalidRequest, match="is no name of"):
                    await cluster.run(ModifyInstance(instance_name=WEB1, **wrong))

    simulate(story())
