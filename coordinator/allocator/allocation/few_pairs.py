"""All pairs of a small cluster for one mirrored instance, one after the other, without NumPy.

Importing NumPy takes as long as scoring 40,000 pairs in a plain loop, so below some 200 nodes the
loop has the answer first. It is for clusters that are simple as well: every instance is mirrored
and there, no tags rule, no storage is exclusive, every node has some of everything. Then few terms
of the score differ between pairs, and whether every node can still be emptied is a comparison.

The sums are those of ``score`` and ``pair`` in the same order, so the scores are the same to the
last bit; the tests compare the two.
"""

from __future__ import annotations

from collections import Counter
from math import inf

from coordinator.allocator.allocation.few_scores import Scores
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.allocator.allocation.few_nodes import FewNodes, Wanted


class Found:
    """What came of one group.

    Attributes:
        pair: node indices, primary first; None when nothing fits.
        score: of the scored nodes with the instance there.
        failures: pairs refused, by reason.
    """

    __slots__ = ("failures", "pair", "score", "successes")

    def __init__(
        self, pair: tuple[int, int] | None, score: float, successes: int, failures: Counter[Reason]
    ) -> None:
        self.pair, self.score, self.successes, self.failures = pair, score, successes, failures


class FewPairs:
    """The pairs of some candidates, and what they would do to the score of some nodes."""

    def __init__(
        self,
        resources: FewNodes,
        scored: Sequence[int],
        candidates: Sequence[int],
        new: Wanted,
        forbidden: Reason,
        *,
        force: bool = False,
    ) -> None:
        """Look at each candidate by itself.

        Args:
            resources: of all nodes.
            scored: nodes whose score counts, rising; no total of theirs may be 0.
            candidates: some of them that are online, rising.
            new: the instance.
            forbidden: why the group's policy does not allow it, if so.
            force: whether soft limits of the primary do not count.
        """
        self._resources, self._scored, self._nodes, self._new = resources, scored, candidates, new
        self._first = {
            node: forbidden or resources.primary_code(node, new, force=force) for node in candidates
        }
        self._second = {node: resources.secondary_code(node, new, 0) for node in candidates}
        self._primaries = [node for node, code in self._first.items() if not code]
        self._secondaries = [node for node, code in self._second.items() if not code]
        # Pairs that have instances in common already, where the secondary promised something.
        among = set(candidates)
        self._special = {
            primary: {
                secondary: resources.secondary_code(secondary, new, held)
                for secondary, held in resources.promised[primary].items()
                if secondary in among
            }
            for primary in self._primaries
        }

    def find(self, *, redundant: bool) -> Found:
        """The best pair; with ``redundant``, of those that leave every node evacuable."""
        failures, size = self._failures(), len(self._nodes)
        left = size * (size - 1) - failures.total()
        if redundant and not self._resources.is_evacuable(self._scored):
            failures[Reason.REDUNDANCY] += left
            return Found(None, inf, 0, +failures)
        best, pair = inf, None
        most = self._resources.most_arriving(self._scored) if redundant else None
        for primary, scores in self._rows() if left else ():
            if most is not None:
                failures[Reason.REDUNDANCY] += self._drop_unsafe(primary, scores, most[primary])
            lowest = min(scores, default=inf)
            if lowest <= best and lowest < inf:
                last = len(scores) - 1 - scores[::-1].index(lowest)
                best, pair = lowest, (primary, self._secondaries[last])
        return Found(pair, best, size * (size - 1) - failures.total(), +failures)

    def _failures(self) -> Counter[Reason]:
        failures: Counter[Reason] = Counter()
        for code in self._first.values():
            failures[code] += len(self._nodes) - 1
        count = len(self._primaries)
        for node, code in self._second.items():
            failures[code] += count - (not self._first[node])
        for codes in self._special.values():
            for node, code in codes.items():
                failures[self._second[node]] -= 1
                failures[code] += 1
        failures[Reason.NONE] = 0
        return +failures

    def _drop_unsafe(self, primary: int, scores: list[float], arriving: int) -> int:
        """Leave out pairs after which a node could not be emptied.

        Returns how many are better than the best that stays, all if none does: those that hail
        tries in vain.
        """
        resources, new = self._resources, self._new
        memory, used, held = resources.memory, new.memory, resources.arriving[primary]
        is_lost = memory[primary] - used <= arriving
        unsafe = [
            at
            for at, node in enumerate(self._secondaries)
            if scores[at] < inf and (is_lost or memory[node] <= used + held.get(node, 0))
        ]
        tried = [(scores[at], -at) for at in unsafe]
        for at in unsafe:
            scores[at] = inf
        lowest = min(scores, default=inf)
        if lowest == inf:
            return len(tried)
        stays = (lowest, 1 + scores[::-1].index(lowest) - len(scores))
        return sum(one < stays for one in tried)

    def _rows(self) -> Iterable[tuple[int, list[float]]]:
        """Yield each primary with the scores of its secondaries; infinite if it cannot be."""
        scores = Scores(self._resources, self._scored, self._new)
        usual = [scores.secondary(node, 0) for node in self._secondaries]
        columns = list(zip(*usual, strict=True))
        position = {node: at for at, node in enumerate(self._secondaries)}
        for node in self._primaries:
            scores.put_primary(node)
            row = scores.with_secondaries(columns) if columns else []
            if node in position:
                row[position[node]] = inf
            for other, code in self._special[node].items():
                if other not in position:
                    continue
                own = scores.secondary(other, self._resources.promised[node][other])
                at = position[other]
                row[at] = inf if code else scores.with_secondaries([(part,) for part in own])[0]
            yield node, row
