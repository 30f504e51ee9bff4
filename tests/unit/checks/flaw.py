"""A cluster with one flaw, and what the checks find there."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from common.errors import GntError, NodeFailure
from common.names import InstanceName, NodeName
from coordinator.checks.every import OF_CONFIGURATION, OF_GROUP
from coordinator.checks.finding import Finding, Seen, Severity
from coordinator.state.rows import Update
from tests.unit.checks.healthy import HEALTHY, SSCONF, STAMP, VERSION, listening, report_of

FULL = NodeFailure("No space left on device.")


class Flaw(NamedTuple):
    """What is different from the healthy cluster, and what is to be found for that."""

    code: str
    says: str
    updates: tuple[Update, ...] = ()
    alpha: dict[str, Any] | GntError = {}
    beta: dict[str, Any] | GntError = {}
    severity: Severity = Severity.ERROR
    outside: dict[InstanceName, str] = {}


def facts(**fields: Any) -> dict[str, Any]:
    """Return what is different about beta's facts."""
    return {"facts": replace(report_of("beta").facts, **fields)}


def ballot(**fields: Any) -> dict[str, Any]:
    """Return what is different about beta's ballot."""
    return {"ballot": replace(report_of("beta").ballot, **fields)}


def findings_of(flaw: Flaw) -> list[Finding]:
    """Look at the cluster with a flaw, with every check there is."""
    state = HEALTHY.apply(flaw.updates)
    roster = listening(
        candidates={node.name: node.key for node in state.config.candidates()},
        following=state.config.obeyed_too(),
        revoked=state.config.revoked.held,
    )
    given = {"alpha": flaw.alpha, "beta": flaw.beta, "gamma": {}, "delta": {}}
    nodes = {
        node.uuid: change
        if isinstance(change, GntError)
        else report_of(node.name, **{"roster": roster, **change})
        for node in state.config.sorted_nodes()
        if not node.offline and (change := given.get(node.name)) is not None
    }
    seen = Seen(
        state.config,
        nodes,
        STAMP,
        SSCONF,
        VERSION,
        troubles={NodeName("beta"): FULL},
        outside_policy=flaw.outside,
    )
    every: list[Callable[[Seen], Any]] = [
        check for checks in (OF_CONFIGURATION | OF_GROUP).values() for check in checks
    ]
    return [finding for check in every for finding in check(seen)]
