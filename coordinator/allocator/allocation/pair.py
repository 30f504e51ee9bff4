"""All pairs of nodes for one mirrored instance: why not, and the best."""

from __future__ import annotations

from collections import Counter

from coordinator.allocator.allocation.pair_scores import PairScores
from coordinator.allocator.allocation.two_nodes import AllowedPairs, TwoNodes
from coordinator.allocator.model.trials import as_primary, as_secondary
from coordinator.allocator.refusal import REASONS, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from coordinator.allocator.model.state import Scope, State
    from coordinator.allocator.snapshot import Instance


class Pairs:
    """Every two candidates as primary and secondary.

    Attributes:
        nodes: the candidates' indices, rising.
        primary_codes: ``Reason`` per candidate as primary.
        secondary_codes: the same as secondary of a node it has no instances with.

    With ``force`` the soft limits of the primary do not count, as in hail; those of the
    secondary do.
    """

    def __init__(
        self,
        state: State,
        scope: Scope,
        candidates: Sequence[int],
        demand: Instance,
        *,
        force: bool = False,
    ) -> None:
        self.nodes = candidates
        self._position = {node: at for at, node in enumerate(candidates)}
        first = as_primary(state, scope, candidates, demand, force=force)
        first.refuse(state.model.forbidden(demand, candidates))
        second = as_secondary(state, scope, candidates, demand)
        self.primary_codes, self.secondary_codes = first.codes, second.codes
        pairs = TwoNodes(state, scope, demand, first, second)
        self._special_codes, self._scores = pairs.special, PairScores(scope.standing, pairs)

    def count(self) -> tuple[int, Counter[Reason]]:
        """How many pairs there are, and how many are refused for what."""
        size = len(self.nodes)
        usable = [not code for code in self.primary_codes]
        times, count = [0] * len(REASONS), sum(usable)
        for first, second, is_usable in zip(
            self.primary_codes, self.secondary_codes, usable, strict=True
        ):
            times[first] += size - 1
            # How many usable primaries the candidate can be the secondary of.
            times[second] += count - is_usable
        for (first, second), code in self._special_codes.items():
            if usable[first]:
                times[self.secondary_codes[second]] -= 1
                times[code] += 1
        refused = {
            reason: many for reason, many in zip(REASONS, times, strict=True) if reason and many
        }
        return size * (size - 1), Counter(refused)

    def count_of(self, primary: int) -> Counter[Reason]:
        """How many pairs with this primary are refused for what."""
        row = self._position[primary]
        if self.primary_codes[row]:
            return Counter({REASONS[self.primary_codes[row]]: len(self.nodes) - 1})
        codes = [
            self._special_codes.get((row, at), code)
            for at, code in enumerate(self.secondary_codes)
            if at != row
        ]
        return Counter(REASONS[code] for code in codes if code)

    def allowed(
        self,
        firsts: Collection[int],
        seconds: Collection[int],
        forbidden: Collection[tuple[int, int]] = (),
    ) -> AllowedPairs:
        """Some of the pairs, given by nodes."""
        here = self._position
        rows = [here[node] for node in firsts if node in here]
        columns = [here[node] for node in seconds if node in here]
        pairs = [(here[one], here[two]) for one, two in forbidden if one in here and two in here]
        return AllowedPairs(len(here), rows, columns, pairs)

    def from_best(self, allowed: AllowedPairs | None) -> Iterator[tuple[tuple[int, int], float]]:
        """Yield ((primary, secondary), score), the best first.

        Among equals the last primary comes first, then the last secondary. Of ``allowed`` None
        all pairs are looked at.
        """
        for first, second, score in self._scores.from_best(allowed):
            yield (self.nodes[first], self.nodes[second]), score

    def count_rejected(self, allowed: AllowedPairs) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        return self._scores.count_rejected(allowed)
