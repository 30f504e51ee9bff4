from itertools import combinations

from common.names import NodeName
from coordinator.quorum.majority import is_durable, is_majority, needed

NAMES = tuple(NodeName(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon"))


def test_half_is_no_majority() -> None:
    assert [needed(of) for of in range(1, 8)] == [1, 2, 2, 3, 3, 4, 4]
    assert not is_majority(0, 0)
    assert not is_majority(2, 4)
    assert is_majority(2, 3)
    assert all(is_majority(needed(n), n) and not is_majority(needed(n) - 1, n) for n in range(99))


def test_only_candidates_make_a_commit_durable() -> None:
    alpha, beta, gamma, delta, epsilon = NAMES
    assert is_durable({alpha, beta}, {alpha, beta, gamma})
    assert not is_durable({alpha, delta, epsilon}, {alpha, beta, gamma})
    assert not is_durable(set(), set())


def test_majorities_of_lists_that_differ_by_one_node_meet() -> None:
    """Why the list of candidates changes by one node at a time."""
    for size in range(len(NAMES)):
        old, new = set(NAMES[:size]), set(NAMES[: size + 1])
        for one in _subsets(old):
            for other in _subsets(new):
                if is_durable(one, old) and is_durable(other, new):
                    assert one & other


def test_a_change_of_the_list_needs_both_lists() -> None:
    alpha, beta, gamma, *_ = NAMES
    assert not is_durable({alpha}, {alpha}, {alpha, beta})
    assert not is_durable({beta, gamma}, {alpha}, {alpha, beta, gamma})
    assert is_durable({alpha, beta}, {alpha}, {alpha, beta})


def _subsets(names: set[NodeName]) -> list[set[NodeName]]:
    ordered = sorted(names)
    return [set(each) for size in range(len(ordered) + 1) for each in combinations(ordered, size)]
