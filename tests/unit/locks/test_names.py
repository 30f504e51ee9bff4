import subprocess
import sys

from coordinator.locks.names import ALL, BGL, Level, LockName

ALPHA = LockName(Level.NODE, "alpha")


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


def test_importing_the_names_is_cheap() -> None:
    """Operations import them, and the command line imports operations."""
    code = "import sys, coordinator.locks.names; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: TID251  # nothing else runs
