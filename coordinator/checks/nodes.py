"""Nodes: whether they answer, are of one version, agree on the time, and obey this master."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from common.errors import GntError
from common.model.master_address import wanted_address
from coordinator.checks.finding import Finding, Seen, Severity
from coordinator.disks.kinds import KINDS

DAY_S = 86_400.0
CERTIFICATE_WARNING_S, CERTIFICATE_ERROR_S = 30 * DAY_S, 7 * DAY_S  # before its end; Ganeti's
CLOCK_SKEW_S = 150.0  # Ganeti's limit; certificates and logs get confusing beyond it


def check_answers(seen: Seen) -> Iterator[Finding]:
    """Name nodes that cannot be asked, or do not know who they are."""
    for node in seen.config.sorted_nodes():
        answer = seen.nodes.get(node.uuid)
        if isinstance(answer, GntError):
            is_stranger = answer.detail.get("stranger") is True
            code = "ECLUSTERCLIENTCERT" if is_stranger else "ENODERPC"
            yield Finding(code, "node", node.name, answer.message)
    for node, report in seen.answered():
        if report.facts.name != node.name:
            message = f"says that it is {report.facts.name}; what else it says may be wrong, too"
            yield Finding("ENODERPC", "node", node.name, message)


def check_versions(seen: Seen) -> Iterator[Finding]:
    """Name nodes whose software differs from the master's."""
    for node, report in seen.answered():
        if report.facts.version != seen.version:
            message = f"runs version {report.facts.version}, the master {seen.version}"
            yield Finding("ENODEVERSION", "node", node.name, message, Severity.WARNING)


def check_clocks(seen: Seen) -> Iterator[Finding]:
    """Name nodes whose clock is off."""
    for node, report in seen.answered():
        skew_s = report.facts.clock - report.asked_at
        if abs(skew_s) > CLOCK_SKEW_S:
            which = "ahead of" if skew_s > 0 else "behind"
            message = f"its clock is {abs(skew_s):.0f} s {which} the master's"
            yield Finding("ENODETIME", "node", node.name, message)


def check_certificates(seen: Seen) -> Iterator[Finding]:
    """Name nodes whose certificate ends soon, or has a key that nobody has taken down."""
    for node, report in seen.answered():
        if not node.key:
            message = (
                "the key of its certificate is not known yet, so whoever has its name is believed; "
                "it is learnt as soon as the node answers"
            )
            yield Finding("ECLUSTERCLIENTCERT", "node", node.name, message, Severity.WARNING)
        if node.next_key:
            message = (
                "is about to have another key, and both count until “gnt-cluster renew-crypto "
                f"--new-node-keys --nodes {node.name}” has been through"
            )
            yield Finding("ECLUSTERCLIENTCERT", "node", node.name, message, Severity.WARNING)
        end = report.facts.certificate_end
        left_s = CERTIFICATE_WARNING_S if end is None else end - report.asked_at
        if left_s < CERTIFICATE_WARNING_S:
            day = datetime.fromtimestamp(report.asked_at + left_s, UTC)
            message = (
                f"its certificate ends on {day:%Y-%m-%d}; “gnt-cluster renew-crypto "
                "--new-node-certificates” gives all nodes new ones"
            )
            is_urgent = left_s < CERTIFICATE_ERROR_S
            severity = Severity.ERROR if is_urgent else Severity.WARNING
            yield Finding("ECLUSTERCERT", "node", node.name, message, severity)


def check_obedience(seen: Seen) -> Iterator[Finding]:
    """Name nodes that obey another master, or whose copy of the state is behind."""
    master = seen.config.master()
    for node, report in seen.answered():
        ballot = report.ballot
        if ballot.master != master.name or ballot.epoch != seen.stamp.epoch:
            message = (
                f"obeys {ballot.master or 'nobody'} (epoch {ballot.epoch}), not {master.name} "
                f"(epoch {seen.stamp.epoch})"
            )
            yield Finding("ECLUSTERCFG", "node", node.name, message)
        if not node.master_candidate:
            if ballot.stamp is not None:
                message = (
                    "has an old copy of the state, though it is no master candidate; “gnt-node "
                    f"modify --offline=yes {node.name}” and then “--offline=no” erase it"
                )
                yield Finding("ECLUSTERCFG", "node", node.name, message, Severity.WARNING)
            continue
        if ballot.stamp is None:
            yield Finding("ECLUSTERCFG", "node", node.name, "has no copy of the state")
        elif ballot.stamp.age < seen.stamp.age:
            behind = seen.stamp.serial - ballot.stamp.serial
            trouble = seen.troubles.get(node.name)
            message = f"its copy of the state is {behind} commits behind" + (
                f": {trouble.message}" if trouble else ""
            )
            yield Finding("ECLUSTERCFG", "node", node.name, message)


def check_rosters(seen: Seen) -> Iterator[Finding]:
    """Name nodes that take orders of others than the candidates, or open to who is out."""
    candidates, revoked = seen.config.obeyed(), seen.config.revoked
    following = seen.config.obeyed_too()
    for node, report in seen.answered():
        is_newer = report.roster.age > seen.stamp.age
        if report.roster.revoked != revoked.held and not is_newer:
            message = (
                f"does not know which {len(revoked.keys)} certificate(s) are revoked; “gnt-cluster "
                "redist-conf” tells it"
            )
            yield Finding("ENODESETUP", "node", node.name, message)
        listed, also = report.roster.candidates, report.roster.following
        wrong = {name for name, _ in candidates.items() ^ listed.items()}
        wrong |= {name for name, _ in following.items() ^ also.items()}
        if not wrong:
            continue
        message = f"its list of who may give orders is wrong about {', '.join(sorted(wrong))}"
        yield Finding("ECLUSTERCFG", "node", node.name, message)


def check_files(seen: Seen) -> Iterator[Finding]:
    """Name ssconf files that are not what they should be."""
    for node, report in seen.answered():
        wrong = [
            name
            for name, digest in seen.ssconf.items()
            if name not in report.ssconf or report.ssconf[name].digest != digest
        ]
        if wrong:
            message = f"outdated or missing ssconf files: {', '.join(wrong)}"
            yield Finding("ENODEFILECHECK", "node", node.name, message)


def check_distributed_files(seen: Seen) -> Iterator[Finding]:
    """Name files that are to be the same on all nodes, and are not as on most of them."""
    answered = seen.answered()
    for path in seen.config.cluster.distributed_files:
        digests = Counter(report.files.get(path, "") for _, report in answered)
        digests.pop("", None)
        usual = max(digests, key=lambda each: (digests[each], each), default=None)
        for node, report in answered:
            digest = report.files.get(path, "")
            if digest and digest == usual:
                continue
            what = "is another one than on other nodes" if digest else "is missing, or not allowed"
            message = f"{path} {what}; “gnt-cluster redist-conf” copies that of the master"
            yield Finding("ECLUSTERFILECHECK", "node", node.name, message)


def check_setup(seen: Seen) -> Iterator[Finding]:
    """Name nodes that lack what instances need."""
    for node, report in seen.answered():
        if not node.vm_capable:
            continue
        for hypervisor in seen.config.cluster.enabled_hypervisors:
            if not report.facts.hypervisors.get(hypervisor):
                message = f"the hypervisor {hypervisor} does not work here"
                yield Finding("ENODEHV", "node", node.name, message)
        unusable = {each.pool: each for each in report.facts.storage if not each.usable}
        for kind in KINDS.values():
            pool = kind.pool(seen.config.cluster)
            if pool in unusable:
                message = f"{pool} is not usable: {unusable[pool].problem}"
                yield Finding(kind.unusable, "node", node.name, message)
        for link, present in report.links.items():
            if not present:
                message = f"has no bridge {link}, which its instances are plugged into"
                yield Finding("ENODENET", "node", node.name, message)
        if reason := report.facts.unguarded:
            message = f"its guests can send with the addresses of others: {reason}"
            yield Finding("ENODENET", "node", node.name, message, Severity.NOTICE)
        if not report.facts.memory_locked:
            message = "noded's memory is not locked; it may not answer when the disk is dead"
            yield Finding("ENODESETUP", "node", node.name, message, Severity.NOTICE)


def check_master_address(seen: Seen) -> Iterator[Finding]:
    """Name who has the address that goes with the mastership and is not to, or the other way."""
    cluster, master = seen.config.cluster, seen.config.master()
    wanted = wanted_address(cluster)
    for node, report in seen.answered():
        is_holder = wanted is not None and node.uuid == master.uuid
        if is_holder and not report.master_device:
            message = f"is the master, and does not have the master's address {cluster.master_ip}"
            yield Finding("ENODENET", "node", node.name, message)
        elif report.master_device and not is_holder:
            whose = f"{master.name} alone is to have" if wanted else "nobody is to have"
            message = f"has the address {cluster.master_ip}, which {whose} now"
            yield Finding("ENODENET", "node", node.name, message)


def check_programs(seen: Seen) -> Iterator[Finding]:
    """Name programs that switch nodes, and would not be run if a candidate were the master."""
    for node, report in seen.answered():
        for problem in filter(None, report.programs.values()):
            yield Finding("ENODEOOBPATH", "node", node.name, problem)
