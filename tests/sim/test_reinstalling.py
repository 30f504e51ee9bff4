"""Instances are installed anew: what is on their disks is lost, and nothing else."""

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.operations.instance.activate_disks import ActivateDisks
from tests.sim.operating_systems import installed, reinstalled
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


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
