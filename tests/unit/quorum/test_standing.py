"""When a master that has not heard of the others for long may go on."""

from itertools import product

import pytest

from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from coordinator.quorum.standing import Standing, judge_standing, named_most

ME, RIVAL = NodeName("me"), NodeName("rival")
MINE = Ballot(master=ME, epoch=Epoch(4))
BEFORE = Ballot(master=ME, epoch=Epoch(3))
GRANTED = Ballot(master=ME, epoch=Epoch(5), granted_to=RIVAL)
LOST = Ballot(master=RIVAL, epoch=Epoch(5))
SAID = (None, MINE, BEFORE, GRANTED, LOST)


@pytest.mark.parametrize("nodes", range(1, 6))
def test_every_case(nodes: int) -> None:
    names = [NodeName(f"n{number}") for number in range(nodes)]
    for candidates, said in product(range(1, nodes + 1), product(SAID, repeat=nodes)):
        pool = names[:candidates]
        ballots = {n: ballot for n, ballot in zip(names, said, strict=True) if ballot}
        standing = judge_standing(ME, Epoch(4), ballots, names, pool)
        later = {n for n, ballot in ballots.items() if ballot.epoch == 5}
        silent = set(names) - ballots.keys()
        may_be_won = 2 * len(later | silent) > nodes and (
            2 * len((later | silent) & set(pool)) > candidates
        )
        if standing is Standing.CONFIRMED:
            assert not may_be_won, "silent nodes may have granted it"
        if not later and len(ballots) == nodes and BEFORE not in said:
            assert standing is Standing.CONFIRMED
        if 2 * len(later) > nodes and 2 * len(later & set(pool)) > candidates:
            assert standing is Standing.IN_DOUBT
        if standing is Standing.IN_DOUBT:
            assert later


def test_one_node_is_no_reason_for_doubt() -> None:
    names = [NodeName(name) for name in "abc"]
    ballots = dict(zip(names, (MINE, MINE, LOST), strict=True))
    assert judge_standing(ME, Epoch(4), ballots, names, names) is Standing.CONFIRMED


def test_who_is_listened_to_by_few_is_in_doubt() -> None:
    names = [NodeName(name) for name in "abc"]
    for deaf, standing in ((names[1:], Standing.IN_DOUBT), (names[2:], Standing.CONFIRMED)):
        ballots = {name: MINE for name in names if name not in deaf}
        assert judge_standing(ME, Epoch(4), ballots, names, names, deaf=deaf) is standing


def test_most_name_the_master() -> None:
    other = Ballot(master=NodeName("other"), epoch=Epoch(6))
    assert named_most((MINE, GRANTED, LOST, other), Epoch(4)) == RIVAL
    assert named_most((MINE, BEFORE), Epoch(4)) is None
