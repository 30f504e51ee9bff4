"""Instances with operating systems, in simulated clusters, and which systems these have."""

from typing import Any

from msgspec.structs import replace

from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.reinstall import ReinstallInstance
from coordinator.operations.os.diagnose import FIELDS, DiagnoseOperatingSystems
from tests.sim.settings import WEB1, create
from tests.support.cluster import SimulatedCluster

LOOK = DiagnoseOperatingSystems(output_fields=FIELDS)


async def looked(cluster: SimulatedCluster) -> dict[str, dict[str, object]]:
    rows = await cluster.run(LOOK)
    return {row[0]: dict(zip(FIELDS, row, strict=True)) for row in rows}


def installed(
    os: str = "debian+stable", node: str | None = "gamma", *, start: bool = False, **more: Any
) -> CreateInstance:
    return replace(create(node=node, start=start), os_type=os, **more)


def reinstalled(**more: Any) -> ReinstallInstance:
    return ReinstallInstance(instance_name=WEB1, **more)
