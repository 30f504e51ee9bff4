"""Numbers that no counting can have led to: whose they are, and what is left without them.

One node that answers with an absurd epoch would otherwise have all others promise to obey nothing
below it, and epochs would soon be used up. Whoever claims more than ``REACH`` above what at least
half of the answers say is set aside, as if he were silent; he is named in the log.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from common.names import Epoch, JobId, NodeName
from common.noderpc.mastership import REACH, Ballot


@dataclass(frozen=True, slots=True)
class Astray:
    """A node is out of all proportion to the others."""

    node: NodeName
    epoch: Epoch
    usual: Epoch  # at least half of the answers claim no more

    def __str__(self) -> str:
        return (
            f"{self.node} claims epoch {self.epoch}, out of all proportion to the others' "
            f"{self.usual}; its answer does not count. If its epoch is indeed a mistake, the "
            "operators' guide says how to have it forgotten."
        )


def sort_out(
    ballots: Mapping[NodeName, Ballot], candidates: Collection[NodeName]
) -> tuple[dict[NodeName, Ballot], tuple[Astray, ...]]:
    """Return the ballots that count, and who is astray."""
    claims = {node: claimed(ballot, node in candidates) for node, ballot in ballots.items()}
    if not claims:
        return {}, ()
    # The lower one of two in the middle: of two nodes the liar must not be the measure.
    usual = sorted(claims.values())[(len(claims) - 1) // 2]
    astray = {node: epoch for node, epoch in claims.items() if epoch > usual + REACH}
    kept = {node: ballot for node, ballot in ballots.items() if node not in astray}
    return kept, tuple(Astray(node, astray[node], usual) for node in sorted(astray))


def claimed(ballot: Ballot, is_candidate: bool) -> Epoch:
    """Return the highest epoch a node says it knows; only candidates have a say about states."""
    stamp = ballot.stamp if is_candidate else None
    return max(ballot.epoch, stamp.epoch) if stamp else ballot.epoch


def newest_job(ballots: Collection[Ballot]) -> JobId:
    """Return the highest job id that candidates have seen, absurd ones left out."""
    seen = sorted(ballot.newest_job or JobId(0) for ballot in ballots)
    usual = seen[(len(seen) - 1) // 2]
    return max(job for job in seen if job <= usual + REACH)
