"""Hold what has become of a cluster against what the same story led to undisturbed."""

from common.model.job import Job
from tests.support.cluster import SimulatedCluster
from tests.support.snapshot import Snapshot
from tests.support.story import Told


async def check(
    cluster: SimulatedCluster,
    told: Told,
    wanted: Snapshot,
    except_for: frozenset[str] = frozenset(),
) -> bool:
    """Have the cluster be as ``wanted``; return whether that is as before, in every part.

    What succeeded has not left things as before, even if nothing of it is seen here.
    """
    await cluster.settle(told.story.rest_s)
    found = wanted.differences(await cluster.snapshot())
    different = [line for line in found if line.partition(":")[0] not in except_for]
    assert not different, "it is not as it should be:\n  " + "\n  ".join(different)
    cluster.check_replicas()
    return wanted is told.before and not found


async def check_failed(cluster: SimulatedCluster, told: Told, job: Job) -> bool:
    """Have what failed be undone, or, from where there is no return, done when sent again."""
    if not has_returned(job, told):
        return await check(cluster, told, told.before, told.story.uncertain)
    if told.story.again:
        await cluster.run(told.story.again)
    return await check(cluster, told, told.after, told.story.uncertain)


def has_returned(job: Job, told: Told) -> bool:
    """Tell whether a point of no return was passed."""
    final = {step.title for step in told.steps if step.point_of_no_return}
    return any(e.event == "finished" and e.step in final for op in job.ops for e in op.journal)
