"""Of an instance whose disk is on two nodes: where it runs, and which of its copies count."""

from collections.abc import Awaitable, Callable

from common.names import NodeName
from coordinator.operations.group.verify_disks import VerifyDisksOfGroup
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


def tell(
    story: Callable[[SimulatedCluster], Awaitable[None]], *, start: bool = True, nodes: int = 3
) -> None:
    """Begin with web1 running on gamma, its disk on beta, too."""

    async def scenario() -> None:
        async with simulated_cluster(nodes=nodes, candidates=1) as cluster:
            await cluster.run(mirrored(start=start))
            await story(cluster)
            assert not cluster.pairs.lost, "what was acknowledged is gone"

    simulate(scenario())


def homes(cluster: SimulatedCluster) -> list[str]:
    config = cluster.config
    return [config.nodes[uuid].name for uuid in config.nodes_of(config.instance("web1"))]


def behind(cluster: SimulatedCluster) -> list[str]:
    config = cluster.config
    (disk,) = config.disks_of(config.instance("web1"))
    return [config.nodes[uuid].name for uuid in disk.behind]


def attached(cluster: SimulatedCluster) -> dict[str, list[str]]:
    every = cluster.machines.items()
    return {name: list(machine.attached.values()) for name, machine in every if machine.attached}


async def guests(cluster: SimulatedCluster) -> dict[str, dict[str, str]]:
    found = (await cluster.snapshot()).guests
    return {node: has for node, has in found.items() if has}


async def lose(cluster: SimulatedCluster, node: NodeName) -> None:
    await cluster.lose_power(node)
    await cluster.run(ModifyNode(node_name=node, offline=True, force=True))


async def bring_back(cluster: SimulatedCluster, node: NodeName) -> None:
    await cluster.machines[node].boot()
    await cluster.run(ModifyNode(node_name=node, offline=False))


async def look(cluster: SimulatedCluster) -> list[object]:
    """Look at the disks of all instances; return what Ganeti's tools are told."""
    found: list[object] = await cluster.run(VerifyDisksOfGroup(group_name="default"))
    return found


async def mirror_state(cluster: SimulatedCluster) -> str:
    fields = ["mirror_state", "disk.findings"]
    answer = await cluster.master.luxi("Query", "instance", fields, None)
    (((_, state), (_, (finding,))),) = answer["data"]
    return f"{state}: {finding}" if finding else str(state)
