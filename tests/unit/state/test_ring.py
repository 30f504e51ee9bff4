"""The commits kept in memory."""

from random import Random

import pytest

from common.model.commit import next_commit
from common.model.stamp import Stamp
from common.names import Epoch
from coordinator.state import ring
from coordinator.state.ring import Ring
from tests.support.replicas import history, put


def test_commits_are_given_from_the_one_asked_for_on() -> None:
    commits = history(20, Random(1))
    kept = Ring(commits[9].stamp, commits[4:10])
    for commit in commits[10:]:
        kept.add(commit)
    assert kept.after(3) is None
    assert kept.after(4) == commits[4:]
    assert kept.after(19) == commits[19:]
    assert kept.after(20) is None
    assert kept.newest == commits[19].stamp


def test_the_oldest_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "KEPT_BYTES", 3000)
    monkeypatch.setattr(ring, "SENT_BYTES", 1500)
    kept, at = Ring(Stamp()), Stamp()
    for number in range(50):
        commit = next_commit(at, Epoch(1), (put("job", str(number), "x" * 500),))
        kept.add(commit)
        at = commit.stamp
    assert kept.after(10) is None
    assert [commit.serial for commit in kept.after(46) or ()] == [47, 48]
    huge = next_commit(at, Epoch(1), (put("job", "1", "x" * 9000),))
    kept.add(huge)
    assert kept.after(49) is None
    assert kept.after(50) == (huge,)


def test_what_is_held_stays_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "KEPT_BYTES", 3000)
    monkeypatch.setattr(ring, "HELD_BYTES", 9000)
    kept, at = Ring(Stamp()), Stamp()

    def write(count: int) -> None:
        nonlocal at
        for _ in range(count):
            commit = next_commit(at, Epoch(1), (put("job", "1", "x" * 500),))
            kept.add(commit)
            at = commit.stamp

    write(5)
    kept.hold("a copy", 5)
    write(8)
    assert kept.after(5) is not None
    kept.reached("a copy", 9)
    kept.reached("somebody else", 13)
    assert kept.after(9) is not None
    write(50)
    assert kept.after(9) is None  # it is too slow for what is written
    kept.hold("a copy", 63)
    write(6)
    kept.reached("a copy", 69)
    write(6)
    assert kept.after(63) is None
