"""What is installed is told that its instance has another name."""

from typing import Any

import pytest

from common.errors import NodeFailure
from common.names import InstanceName
from common.noderpc.operating_systems import Script, ScriptOrder
from coordinator.operations.instance.rename import RenameInstance
from tests.sim.operating_systems import installed
from tests.sim.settings import WEB1
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster


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
