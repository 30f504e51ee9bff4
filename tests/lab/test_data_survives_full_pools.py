"""A guest on a thin volume outlives the day on which its pool is full."""

from collections.abc import Iterator

import pytest

from tests.lab.guests import guest
from tests.lab.leftovers import leftovers
from tests.lab.stage import Stage, on_request, said, until

# By default LVM has writes wait for a minute before they fail.
MAKE = """set -e
lvcreate --yes --type thin-pool --size 8M --name thin gantry
lvchange --errorwhenfull y gantry/thin
lvcreate --yes --virtualsize 64M --thinpool thin --name filler gantry"""
FILL = "dd if=/dev/zero of=/dev/gantry/filler bs=64k oflag=direct 2>/dev/null; true"
USE = "gnt-cluster modify -D plain:thin-pool="


@pytest.fixture
def pool(stage: Stage) -> Iterator[Stage]:
    """Have new volumes be in a thin pool, which gamma has."""
    try:
        stage.gamma.run(MAKE)
        stage.alpha.run(f"{USE}thin")
        yield stage
    finally:
        said(stage.alpha, f"{USE}default")
        said(stage.gamma, "lvremove --yes gantry/filler gantry/thin")
    assert not leftovers(stage)


@on_request
def test_a_guest_in_a_full_pool_stands_still_and_goes_on_when_the_pool_has_grown(
    pool: Stage,
) -> None:
    with guest(pool, "thin", "plain", "-n gamma") as thin:
        process = thin.process(pool.gamma)
        pool.gamma.run(FILL)
        state = "gnt-instance list --no-headers -o guest_state thin"
        until(lambda: "found no room" in pool.alpha.run(state), "the guest to stand still")
        told = max(thin.told(pool.gamma))
        assert "“gnt-instance startup thin” has it go on" in pool.verify()
        pool.gamma.run("lvextend --size +8M gantry/thin")
        assert "exit 0" in said(pool.alpha, "gnt-instance startup thin")
        assert thin.goes_on(pool.gamma) >= told
        assert (thin.process(pool.gamma), thin.written(pool.gamma).starts) == (process, 1)
