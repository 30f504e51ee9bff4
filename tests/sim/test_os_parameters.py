"""Parameters of operating systems: whose count, who is told them, and who never sees them."""

from typing import Any

import pytest

from common.errors import InvalidRequest
from common.messages import to_json
from common.model.job import Status
from common.noderpc.operating_systems import ScriptOrder
from coordinator.operating_systems.parameters import keep_for_instance, private_parameters
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from tests.sim.operating_systems import installed, looked, reinstalled
from tests.sim.settings import WEB1
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


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


@pytest.mark.parametrize("field", ["osparams", "osparams_private_cluster"])
def test_the_cluster_keeps_no_parameter_that_an_operating_system_does_not_have(field: str) -> None:
    def changed(os: str, **values: str) -> ModifyCluster:
        return ModifyCluster(**{field: {os: values}})  # type: ignore[arg-type]

    async def story() -> None:
        async with simulated_cluster() as cluster:
            for os in ("debian", "debian+stable"):
                with pytest.raises(InvalidRequest, match="debian has no parameter “speed”; it has"):
                    await cluster.run(changed(os, speed="1"))
            await cluster.run(changed("debian", mirror="http://mirror.example"))
            await cluster.run(changed("plan9", speed="1"))  # which may come, as with Ganeti
            await cluster.run(changed("plan9", speed="default"))

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


def test_a_parameter_that_its_operating_system_does_not_have_is_not_recorded() -> None:
    def changed(**given: Any) -> ModifyInstance:
        return ModifyInstance(instance_name=WEB1, **given)

    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed(osparams={"mirror": "near"}))
            for order in (
                changed(osparams={"miror": "far"}),
                changed(osparams_private={"miror": "far"}),
                changed(os_name="debian+testing", osparams={"miror": "far"}),
            ):
                with pytest.raises(InvalidRequest, match="has no parameter “miror”; it has mirror"):
                    await cluster.run(order)
            assert cluster.config.instance("web1").osparams == {"mirror": "near"}
            await cluster.run(changed(osparams={"mirror": "default", "miror": "default"}))
            assert cluster.config.instance("web1").osparams == {}

    simulate(story())


def test_a_private_parameter_that_an_older_version_has_recorded_can_be_taken_away() -> None:
    async def story() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(installed())
            web1 = cluster.config.instance("web1")
            kept = keep_for_instance(cluster.state, web1.uuid, web1.os, {"miror": "near"})
            await cluster.master.running.store.commit(kept)
            assert private_parameters(cluster.state, web1.os, web1.uuid) == {"miror": "near"}
            without = {"miror": "default"}
            await cluster.run(ModifyInstance(instance_name=WEB1, osparams_private=without))
            assert private_parameters(cluster.state, web1.os, web1.uuid) == {}

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
