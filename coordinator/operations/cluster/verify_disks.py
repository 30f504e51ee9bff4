"""Look whether all instances have their disks, group by group."""

from typing import Annotated, Any

from common.messages import Order
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.group.verify_disks import VerifyDisksOfGroup
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import option
from coordinator.state.config import Config


class VerifyDisksJobs(Order):
    """One job for each group."""

    jobs: tuple[tuple[FollowUp, ...], ...]


@operation("OP_CLUSTER_VERIFY_DISKS")
class VerifyDisks(Operation[None, VerifyDisksJobs], kw_only=True):
    """Look for disks that are missing or mirrored badly, and note whose copies are behind."""

    group_name: Annotated[
        str | None, option("-g", "--node-group", help="look at the nodes of this group only")
    ] = None

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- each part takes its own
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> VerifyDisksJobs:
        config = cluster.config
        groups = [config.group(self.group_name)] if self.group_name else config.sorted_groups()
        parts = (VerifyDisksOfGroup(group_name=group.name) for group in groups)
        return VerifyDisksJobs(jobs=tuple((FollowUp(input=part.to_input()),) for part in parts))

    def jobs(self, plan: VerifyDisksJobs) -> FollowUps:
        return plan.jobs

    def result(self, plan: VerifyDisksJobs) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}
