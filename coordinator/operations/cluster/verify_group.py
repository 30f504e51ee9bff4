"""Look over the nodes of one group, and the instances on them."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

from common.errors import InvalidRequest, NodeFailure, NotFound
from common.model.group import Group
from common.model.node import Node
from common.model.parameters import NicParameters, settled
from common.model.pool_kind import PoolKind
from common.model.template import TRAITS
from common.names import DiskId, NodeName
from common.noderpc.disks import Disks
from common.noderpc.facts import Facts
from common.noderpc.files import Files
from common.noderpc.instances import Instances
from common.noderpc.master_address import MasterAddresses
from common.noderpc.mastership import Mastership
from common.noderpc.mirrors import Mirrors
from common.noderpc.network import Network
from common.noderpc.operating_systems import OperatingSystems
from common.noderpc.programs import Programs
from common.noderpc.providers import ProviderReport, Providers
from common.noderpc.remote import Remote
from common.noderpc.roster import HeldRoster, Rosters
from common.revoked_keys import RevokedKeys
from common.version import VERSION
from coordinator.checks.every import OF_GROUP, SKIPPABLE, without
from coordinator.checks.finding import NodeReport, Seen
from coordinator.checks.hooks import of_hook
from coordinator.checks.report import VerifyPlan, check_codes, report, tell
from coordinator.disks.kinds import kind_of, pools_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster.verify_fields import (
    IgnoredCodes,
    NamedCodes,
    ResultIsFindings,
    SimulatedErrors,
    SkippedChecks,
    ToldChecks,
)
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.failed_hook import FailedHook
from coordinator.operations.locking import wanted
from coordinator.operations.node.power import program_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.operations.parameter import argument
from coordinator.operations.specs import disk_spec
from coordinator.operations.steps.syncing import ask_mirrors
from coordinator.state.config import Config


def check_skipped(names: Sequence[str]) -> None:
    """Refuse to leave out a check that there is not.

    Raises:
        InvalidRequest: names those that can be left out.
    """
    if not set(names) <= SKIPPABLE.keys():
        raise InvalidRequest(
            f"The checks that can be left out are {' and '.join(SKIPPABLE)}, not "
            f"{', '.join(names)}."
        )


@operation("OP_CLUSTER_VERIFY_GROUP")
class VerifyGroup(Operation[None, VerifyPlan], kw_only=True):
    """Check the nodes of a group, and what is on them; a part of OP_CLUSTER_VERIFY."""

    group_name: Annotated[str, argument("group to look at")]
    error_codes: NamedCodes = False
    debug_simulate_errors: SimulatedErrors = False
    ignore_errors: IgnoredCodes = ()
    verbose: ToldChecks = False
    skip_checks: SkippedChecks = ()
    findings: ResultIsFindings = False

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it looks at all, and locks nothing
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> VerifyPlan:
        check_codes(self.ignore_errors)
        check_skipped(self.skip_checks)
        group = cluster.config.group(self.group_name)
        if self.verbose:
            names = ", ".join(
                f"{node.name} (offline, not asked)" if node.offline else node.name
                for node in _nodes(cluster.config, group)
            )
            cluster.log(f"* Asking the nodes of group {group.name}: {names}")
        seen = await _look(cluster, group)
        return report(
            without(OF_GROUP, self.skip_checks),
            seen,
            cluster.log,
            codes=self.error_codes,
            ignored=self.ignore_errors,
            simulated=self.debug_simulate_errors,
        )

    def result(self, plan: VerifyPlan) -> Any:
        return plan.told(findings=self.findings)

    def result_after(self, cluster: Cluster, plan: VerifyPlan, failed: Sequence[FailedHook]) -> Any:
        if not failed:
            return self.result(plan)
        more = tell(
            "Scripts of yours that look at the cluster",
            (of_hook(each.node.name, str(each)) for each in failed),
            cluster.log,
            codes=self.error_codes,
            ignored=self.ignore_errors,
        )
        return self.result(VerifyPlan(findings=(*plan.findings, *more)))


async def _look(cluster: Cluster, group: Group) -> Seen:
    """Ask the nodes of a group."""
    from coordinator.operations.placement.fit import outside_policy  # commands have no use for it

    # Jobs go on meanwhile: a copy of the state has to be as new as it was before we asked.
    config, stamp = cluster.config, cluster.state.stamp
    files = ssconf_files(config)
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    names = tuple(files)
    nodes = [node for node in _nodes(config, group) if not node.offline]
    reports = await cluster.each({node.uuid: _ask(cluster, node, names) for node in nodes})
    members = frozenset(node.uuid for node in _nodes(config, group))
    outside = {
        name: why
        for name, why in outside_policy(config).items()
        if config.instance(name).primary_node in members
    }
    return Seen(config, reports, stamp, digests, VERSION, members, cluster.troubles, outside)


def _nodes(config: Config, group: Group) -> list[Node]:
    return [node for node in config.sorted_nodes() if node.group == group.uuid]


async def _ask(cluster: Cluster, node: Node, names: tuple[str, ...]) -> NodeReport:
    config = cluster.config
    pools = pools_of(config)
    groups = tuple(pool for pool in pools if pool.kind is PoolKind.VOLUME_GROUP)
    directories = tuple(pool for pool in pools if pool not in groups)
    links = tuple(sorted(_links(config, node.name)))
    before = cluster.now()
    facts = await cluster.call(Facts, node).facts(storage=pools)
    after = cluster.now()
    ssconf = await cluster.call(Files, node).digests(names=names)
    present = await cluster.call(Network, node).links(names=links)
    return NodeReport(
        facts=facts,
        guests=await cluster.call(Instances, node).guests(),
        taps=await cluster.call(Network, node).taps(),
        disk_files=await cluster.call(Disks, node).inventory(pools=directories),
        volumes=await cluster.call(Disks, node).volumes(pools=groups),
        bad_disks=await _bad_disks(cluster, node),
        ssconf=dict(zip(names, ssconf, strict=True)),
        ballot=await cluster.call(Mastership, node).vote(),
        roster=await _roster(cluster, node),
        links=dict(zip(links, present, strict=True)),
        mirrors=await ask_mirrors(cluster, node),
        devices=await cluster.call(Mirrors, node).devices() if not facts.unmirrored else (),
        systems=await cluster.call(OperatingSystems, node).definitions(),
        providers=await _providers(cluster, node),
        master_device=await _master_device(cluster, node),
        files=await _files(cluster, node),
        programs=await _programs(cluster, node),
        asked_at=(before + after) / 2,
    )


async def _roster(cluster: Cluster, node: Node) -> HeldRoster:
    try:
        return await cluster.call(Rosters, node).held()
    except NotFound:  # a node of an older version knows no such call
        shown = await cluster.call(Rosters, node).show()
        return HeldRoster(
            epoch=shown.epoch,
            serial=shown.serial,
            candidates=shown.candidates,
            following=shown.following,
            revoked=RevokedKeys(shown.revoked).held,
        )


async def _bad_disks(cluster: Cluster, node: Node) -> dict[DiskId, str]:
    """Ask a node about the images of its instances; it reads those that nobody uses."""
    config, disks = cluster.config, cluster.call(Disks, node)
    told = {}
    for instance in config.instances_on(node.uuid):
        kind = kind_of(instance.disk_template)
        for disk in config.disks_of(instance):
            if kind.can_be_bad(disk.backing) and not instance.forthcoming:
                spec = disk_spec(config, instance, disk)
                try:
                    (told[disk.uuid],) = await disks.problems(disks=(spec,))
                except (InvalidRequest, NodeFailure) as error:  # all else that it says is of use
                    told[disk.uuid] = str(error).removeprefix(f"{node.name}: ")
    return {disk: problem for disk, problem in told.items() if problem}


async def _programs(cluster: Cluster, node: Node) -> dict[str, str]:
    """Ask a candidate, which may become the master, for the programs that switch nodes."""
    config = cluster.config
    paths = {program_of(config, each) for each in config.sorted_nodes()} - {""}
    if not paths or not node.master_candidate:
        return {}
    ordered = tuple(sorted(paths))
    told = await cluster.call(Programs, node).problems(programs=ordered)
    return dict(zip(ordered, told, strict=True))


async def _providers(cluster: Cluster, node: Node) -> tuple[ProviderReport, ...]:
    """Return the providers of external storage, where disks can be theirs."""
    templates = cluster.config.cluster.enabled_disk_templates
    is_used = any(TRAITS[template].has_providers for template in templates)
    return await cluster.call(Providers, node).providers() if is_used else ()


async def _master_device(cluster: Cluster, node: Node) -> str:
    """Return which device of a node has the master's address, if there is one."""
    ip = cluster.config.cluster.master_ip
    return await cluster.call(MasterAddresses, node).holds(ip=ip) if ip else ""


async def _files(cluster: Cluster, node: Node) -> dict[str, str]:
    """Return the digests of the files that are to be the same on all nodes."""
    paths = cluster.config.cluster.distributed_files
    told = await cluster.call(Remote, node).digests(paths=paths) if paths else ()
    return {path: each.digest for path, each in zip(paths, told, strict=True)}


def _links(config: Config, name: NodeName) -> set[str]:
    """Return the bridges and switches that instances of this node are plugged into."""
    node = config.node(name)
    return {
        parameters.link
        for instance in config.instances_on(node.uuid)
        for nic in config.nics_of(instance)
        for parameters in [settled(NicParameters, *config.nic_layers(nic, node.uuid))]
        if parameters.mode != "routed"
    }
