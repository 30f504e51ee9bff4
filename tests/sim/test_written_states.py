"""What another version has left half done is gone on with, or refused whole; never misread."""

import pytest
from msgspec.structs import replace

from common.model.commit import ARCHIVE
from common.model.job import Job
from common.model.node import Node
from common.names import KeyId
from common.noderpc.replica import Row
from coordinator.state.rows import from_row, to_row
from noded.replica.store import ReplicaFile
from tests.golden.states import WrittenState, versions, written_states
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Watching
from tests.support.seeds import one_in
from tests.support.story import is_call

STATES = {
    f"version {version}: {state.told}": state
    for version in versions()
    for state in written_states(version, "stories.json")
}
TOLD = list(STATES)[:: one_in(5)]


@pytest.mark.parametrize("told", TOLD)
def test_a_job_of_another_version_is_gone_on_with_or_refused_whole(told: str) -> None:
    written = STATES[told]
    jobs = [item for item in map(from_row, written.loaded) if isinstance(item, Job)]

    async def scenario() -> None:
        nodes = sum(row.kind == "node" for row in written.rows)
        async with simulated_cluster(max(nodes, 3), strangers=1) as cluster:
            await _put_back(cluster, written)
            calls = Watching(is_call)
            cluster.network.faults.append(calls)
            await cluster.take_over("alpha")
            for job in jobs:
                for op in (await cluster.finished(job.id)).ops:
                    if op.failure is not None and "another version of Gantry" in op.failure.message:
                        assert not [t for t in calls.seen if t.envelope.job == job.id]
            await cluster.settle(60.0)
            assert not cluster.master.running.locks.rows()
            cluster.check_replicas()

    simulate(scenario())


async def _put_back(cluster: SimulatedCluster, written: WrittenState) -> None:
    """Have the candidates hold what was written, but for the keys of these machines."""
    keys = {node.uuid: node.key for node in cluster.config.nodes.values()}
    secrets = {secret.id: to_row(secret) for secret in cluster.state.secrets.values()}

    def adapted(row: Row) -> Row:
        if row.kind == "secret":
            return secrets[row.id]
        item = from_row(row)
        if not isinstance(item, Node):
            return row
        return to_row(replace(item, key=keys.get(item.uuid, KeyId(""))))

    rows = tuple(adapted(row) for row in written.rows if row.kind != ARCHIVE)
    await cluster.crash_master()
    for node in cluster.config.candidates():
        machine = cluster.machines[node.name]
        await machine.kill_noded()
        replica = ReplicaFile(machine.paths.replica)
        replica.restore("put back", rows, first=True, becomes=written.stamp)
        replica.close()
        await machine.start_noded()
