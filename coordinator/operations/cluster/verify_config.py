"""Look over the configuration, without a look at any node."""

from typing import Any

from common.version import VERSION
from coordinator.checks.every import OF_CONFIGURATION
from coordinator.checks.finding import Seen
from coordinator.checks.report import VerifyPlan, check_codes, report
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster.verify_fields import (
    IgnoredCodes,
    NamedCodes,
    ResultIsFindings,
    SimulatedErrors,
    ToldChecks,
)
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.state.config import Config


@operation("OP_CLUSTER_VERIFY_CONFIG")
class VerifyConfig(Operation[None, VerifyPlan], kw_only=True):
    """Check the configuration; the first part of OP_CLUSTER_VERIFY."""

    error_codes: NamedCodes = False
    debug_simulate_errors: SimulatedErrors = False
    ignore_errors: IgnoredCodes = ()
    verbose: ToldChecks = False
    findings: ResultIsFindings = False

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it looks at all, and locks nothing
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> VerifyPlan:
        check_codes(self.ignore_errors)
        config = cluster.config
        if self.verbose:
            cluster.log(
                f"* Looking at {len(config.groups)} groups, {len(config.nodes)} nodes, "
                f"{len(config.instances)} instances, {len(config.disks)} disks and "
                f"{len(config.nics)} nics"
            )
        seen = Seen(config, {}, cluster.state.stamp, {}, VERSION)
        return report(
            OF_CONFIGURATION,
            seen,
            cluster.log,
            codes=self.error_codes,
            ignored=self.ignore_errors,
            simulated=self.debug_simulate_errors,
        )

    def result(self, plan: VerifyPlan) -> Any:
        return plan.told(findings=self.findings)
