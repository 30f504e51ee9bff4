import subprocess
import sys

import pytest

from common.errors import Bug, NoCapacity
from coordinator.locks.names import ALL, BGL, Level, LockName, Mode, Some, Wanted, lock_names

ALPHA, BETA = lock_names(Level.NODE, ["alpha", "beta"])


def test_names_read_as_in_gnt_debug_locks() -> None:
    assert str(ALPHA) == "node/alpha"
    assert str(BGL) == "cluster/BGL"
    assert str(LockName(Level.NODE_RES, "alpha")) == "node-res/alpha"
    assert str(ALPHA.whole_level) == "node/[lockset]"
    assert LockName(Level.NODE, ALL).is_all
    assert not ALPHA.is_all


def test_levels_are_ordered() -> None:
    assert [level.label for level in Level] == [
        "cluster",
        "instance",
        "nodegroup",
        "node",
        "node-res",
        "network",
    ]
    assert sorted([ALPHA, BGL, LockName(Level.INSTANCE, "web1")])[0] == BGL


def test_modes() -> None:
    assert Mode.EXCLUSIVE.covers(Mode.SHARED)
    assert not Mode.SHARED.covers(Mode.EXCLUSIVE)
    assert not Mode.SHARED.conflicts_with(Mode.SHARED)
    assert Mode.SHARED.conflicts_with(Mode.EXCLUSIVE)


def test_what_is_wanted_both_ways_is_wanted_exclusively() -> None:
    wanted = Wanted.of(exclusive=[ALPHA], shared=[ALPHA, BETA])
    assert wanted.locks == {ALPHA: Mode.EXCLUSIVE, BETA: Mode.SHARED}


def test_joining_takes_the_stronger_mode() -> None:
    one, other = Wanted.of(shared=[ALPHA, BGL]), Wanted.of(exclusive=[ALPHA], shared=[BETA])
    expected = {ALPHA: Mode.EXCLUSIVE, BETA: Mode.SHARED, BGL: Mode.SHARED}
    assert (one | other).locks == (other | one).locks == expected


def test_a_choice_that_can_never_be_met() -> None:
    with pytest.raises(NoCapacity, match="2 locks are needed, but there are only 1"):
        Some(frozenset({ALPHA}), at_least=2)


def test_a_lock_is_either_certain_or_left_to_choice() -> None:
    some = Some(frozenset({ALPHA, BETA}))
    with pytest.raises(Bug):
        Wanted.of(shared=[ALPHA], some=some)
    with pytest.raises(Bug):
        Wanted.of(some=some) | Wanted.of(some=some)
    assert (Wanted.of(some=some) | Wanted.of(shared=[BGL])).some == some


def test_importing_the_names_is_cheap() -> None:
    """Operations import them, and the command line imports operations."""
    code = "import sys, coordinator.locks.names; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: TID251  # nothing else runs
