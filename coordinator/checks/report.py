"""Findings, told in a job's log and counted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from common.errors import InvalidRequest
from common.messages import Order
from coordinator.checks.every import Check
from coordinator.checks.finding import Finding, Seen, Severity

CODES = frozenset({
    "ECLUSTERCERT", "ECLUSTERCFG", "ECLUSTERCLIENTCERT", "ECLUSTERDANGLINGINST",
    "ECLUSTERDANGLINGNODES", "ECLUSTERFILECHECK", "EEXTAGS", "EGROUPDIFFERENTPVSIZE",
    "EINSTANCEBADNODE", "EINSTANCEBADPARAMETER", "EINSTANCEDOWN", "EINSTANCEFAULTYDISK",
    "EINSTANCELAYOUT", "EINSTANCEMISSINGCFGPARAMETER", "EINSTANCEMISSINGDISK", "EINSTANCEPOLICY",
    "EINSTANCESPLITGROUPS", "EINSTANCEUNSUITABLENODE", "EINSTANCEWRONGNODE", "ENODEDRBD",
    "ENODEDRBDHELPER", "ENODEDRBDVERSION", "ENODEFILECHECK", "ENODEFILESTORAGEPATHS",
    "ENODEFILESTORAGEPATHUNUSABLE", "ENODEGLUSTERSTORAGEPATHUNUSABLE", "ENODEHOOKS", "ENODEHV",
    "ENODELVM", "ENODEN1", "ENODENET", "ENODEOOBPATH", "ENODEORPHANINSTANCE", "ENODEORPHANLV",
    "ENODEOS", "ENODERPC", "ENODESETUP", "ENODESHAREDFILESTORAGEPATHUNUSABLE", "ENODESSH",
    "ENODETIME", "ENODEUSERSCRIPTS", "ENODEVERSION",
})  # fmt: skip
"""All of Ganeti's, also those that nothing here finds: scripts name them; and one of ours."""


class VerifyPlan(Order):
    """What was found; there is nothing to do about it."""

    findings: tuple[dict[str, str], ...] = ()

    def told(self, *, findings: bool) -> Any:
        """Return the result: what was found, or whether there is no error."""
        if findings:
            return list(self.findings)
        return all(finding["severity"] != Severity.ERROR for finding in self.findings)


def check_codes(codes: Sequence[str]) -> None:
    """Refuse to ignore what cannot be found.

    Raises:
        InvalidRequest: names the code.
    """
    unknown = [code for code in codes if code not in CODES]
    if unknown:
        raise InvalidRequest(
            f"No finding has the code {', '.join(unknown)}; “gnt-cluster verify --error-codes” "
            "shows the codes of those there are."
        )


def report(
    checks: Mapping[str, Sequence[Check]],
    seen: Seen,
    log: Callable[[str], None],
    *,
    codes: bool,
    ignored: Sequence[str],
    simulated: bool = False,
) -> VerifyPlan:
    """Run checks and tell what they find.

    Args:
        checks: by the title that is told before them.
        seen: what they look at.
        log: takes one line.
        codes: tell codes, too.
        ignored: codes whose errors are warnings.
        simulated: tell an error of each code, too.
    """
    found: list[dict[str, str]] = []
    if simulated:
        checks = {**checks, "Simulating errors": (_simulate,)}
    for title, several in checks.items():
        findings = (each for check in several for each in check(seen))
        found += tell(title, findings, log, codes=codes, ignored=ignored)
    return VerifyPlan(findings=tuple(found))


def tell(
    title: str,
    findings: Iterable[Finding],
    log: Callable[[str], None],
    *,
    codes: bool,
    ignored: Sequence[str],
) -> Iterator[dict[str, str]]:
    """Tell findings in the job's log, and yield each as the result has it; as in ``report``."""
    log(f"* {title}")
    for each in findings:
        is_excused = each.severity is Severity.ERROR and each.code in ignored
        finding = each._replace(severity=Severity.WARNING) if is_excused else each
        log(f"  - {f'{finding.code}: ' if codes else ''}{finding}")
        yield {
            "severity": str(finding.severity),
            "code": finding.code,
            "kind": finding.kind,
            "name": finding.name,
            "message": finding.message,
        }


def _simulate(seen: Seen) -> Iterator[Finding]:
    """Yield an error of each code; codes of the cluster's where no node was looked at."""
    for code in sorted(CODES):
        if code.startswith("ECLUSTER") == (seen.members is None):
            yield Finding(code, "cluster", seen.config.cluster.name, "this error is simulated")
