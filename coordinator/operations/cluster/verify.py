"""Look over the whole cluster and tell what is wrong."""

from typing import Annotated, Any

from common.messages import Order
from coordinator.checks.report import check_codes
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.cluster.verify_fields import ResultIsFindings
from coordinator.operations.cluster.verify_group import VerifyGroup, check_skipped
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Shorthand, Syntax, option
from coordinator.state.config import Config


class VerifyClusterPlan(Order):
    """One job for the configuration, unless one group was named, and one for each group."""

    jobs: tuple[tuple[FollowUp, ...], ...]


@operation("OP_CLUSTER_VERIFY")
class VerifyCluster(Operation[None, VerifyClusterPlan], kw_only=True):
    """Check configuration, nodes, mastership, instances and disks; change nothing."""

    error_codes: Annotated[
        bool, option("--error-codes", help="name the code of each finding", syntax=Syntax.FLAG)
    ] = False
    ignore_errors: Annotated[
        tuple[str, ...],
        option("-I", "--ignore-errors", help="codes that count as warnings", syntax=Syntax.LIST),
    ] = ()
    verbose: Annotated[
        bool, option("-v", "--verbose", help="tell what is looked at", syntax=Syntax.FLAG)
    ] = False
    group_name: Annotated[
        str | None, option("-g", "--node-group", help="look at the nodes of this group only")
    ] = None
    debug_simulate_errors: Annotated[
        bool,
        option(
            "--debug-simulate-errors",
            help="tell one error of each code, found or not: to try what reads them",
            syntax=Syntax.FLAG,
        ),
    ] = False
    skip_checks: Annotated[
        tuple[str, ...],
        option(
            "--skip-checks",
            help="names of checks to leave out",
            syntax=Syntax.LIST,
            shorthands=(
                Shorthand(
                    ("--no-nplus1-mem",),
                    "do not look whether nodes could take the instances of one that fails",
                    value="nplusone_mem",
                ),
            ),
        ),
    ] = ()
    findings: ResultIsFindings = False

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it looks at all, and locks nothing
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> VerifyClusterPlan:
        check_codes(self.ignore_errors)
        check_skipped(self.skip_checks)
        config = cluster.config
        how: dict[str, Any] = {
            "error_codes": self.error_codes,
            "debug_simulate_errors": self.debug_simulate_errors,
            "ignore_errors": self.ignore_errors,
            "verbose": self.verbose,
            "findings": self.findings,
        }
        groups = [config.group(self.group_name)] if self.group_name else config.sorted_groups()
        parts: list[Operation[Any, Any]] = [] if self.group_name else [VerifyConfig(**how)]
        parts += [
            VerifyGroup(group_name=group.name, skip_checks=self.skip_checks, **how)
            for group in groups
        ]
        return VerifyClusterPlan(jobs=tuple((FollowUp(input=part.to_input()),) for part in parts))

    def jobs(self, plan: VerifyClusterPlan) -> FollowUps:
        return plan.jobs

    def result(self, plan: VerifyClusterPlan) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}
