"""Look over the whole cluster and tell what is wrong."""

import hashlib
from collections.abc import Iterator
from typing import Annotated

from common.messages import Order
from common.model.node import Node
from common.model.parameters import NicParameters, filled
from common.names import NodeName
from common.version import VERSION
from coordinator.checks.every import CHECKS
from coordinator.checks.finding import NodeReport, Seen, Severity
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.step import Step
from coordinator.state.config import Config


class VerifyPlan(Order):
    """What was found; there is nothing to do about it."""

    errors: int
    warnings: int


@operation("OP_CLUSTER_VERIFY", command="gnt-cluster verify")
class VerifyCluster(Operation[VerifyPlan], kw_only=True):
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
    skip_checks: Annotated[tuple[str, ...], hidden("Ganeti's")] = ()
    debug_simulate_errors: Annotated[bool, hidden("Ganeti's")] = False
    group_name: Annotated[str | None, hidden("Ganeti's; all groups are verified")] = None
    verify_clutter: Annotated[bool, hidden("Ganeti's")] = False

    def locks(self, config: Config) -> Wanted:  # noqa: ARG002 -- it looks at all, and locks nothing
        return wanted()

    async def prepare(self, cluster: Cluster) -> VerifyPlan:
        seen = await _look(cluster)
        counts = dict.fromkeys(Severity, 0)
        for title, checks in CHECKS.items():
            cluster.log(f"* {title}")
            for finding in (finding for check in checks for finding in check(seen)):
                if finding.severity is Severity.ERROR and finding.code in self.ignore_errors:
                    finding = finding._replace(severity=Severity.WARNING)  # noqa: PLW2901
                counts[finding.severity] += 1
                code = f"{finding.code}: " if self.error_codes else ""
                cluster.log(f"  - {code}{finding}")
        return VerifyPlan(errors=counts[Severity.ERROR], warnings=counts[Severity.WARNING])

    def recipe(self, cluster: Cluster, plan: VerifyPlan) -> Iterator[Step]:  # noqa: ARG002
        return iter(())

    def result(self, plan: VerifyPlan) -> bool:
        return plan.errors == 0


async def _look(cluster: Cluster) -> Seen:
    # Jobs go on meanwhile: a copy of the state has to be as new as it was before we asked.
    config, stamp = cluster.config, cluster.state.stamp
    files = ssconf_files(config)
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    names = tuple(files)
    nodes = [node for node in config.sorted_nodes() if not node.offline]
    reports = await cluster.each({node.uuid: _ask(cluster, node, names) for node in nodes})
    return Seen(config, reports, stamp, digests, VERSION)


async def _ask(cluster: Cluster, node: Node, names: tuple[str, ...]) -> NodeReport:
    config = cluster.config
    places = tuple(
        place
        for place in (config.cluster.file_storage_dir, config.cluster.shared_file_storage_dir)
        if place
    )
    links = tuple(sorted(_links(config, node.name)))
    before = cluster.now()
    facts = await cluster.facts(node.uuid).facts(storage=places)
    after = cluster.now()
    ssconf = await cluster.files(node.uuid).digests(names=names)
    present = await cluster.network(node.uuid).links(names=links)
    return NodeReport(
        facts=facts,
        guests=await cluster.instances(node.uuid).guests(),
        taps=await cluster.network(node.uuid).taps(),
        disk_files=await cluster.disks(node.uuid).inventory(directories=places),
        ssconf=dict(zip(names, ssconf, strict=True)),
        ballot=await cluster.mastership(node).vote(),
        links=dict(zip(links, present, strict=True)),
        asked_at=(before + after) / 2,
    )


def _links(config: Config, name: NodeName) -> set[str]:
    """Return the bridges that instances of this node are plugged into."""
    node = config.node(name)
    return {
        parameters.link
        for instance in config.instances_on(node.uuid)
        for nic in config.nics_of(instance)
        for parameters in [
            filled(NicParameters, config.cluster.nicparams, nic.nicparams, what="nic parameters")
        ]
        if parameters.mode == "bridged"
    }
