"""A guest on shared files moves to another node, running and stopped; nothing it wrote is lost."""

from tests.lab.guests import guest
from tests.lab.stage import Stage, said


def test_a_guest_moves_and_loses_nothing(stage: Stage) -> None:
    with guest(stage, "mover", "sharedfile", "-n beta") as mover:
        reached = mover.goes_on(stage.beta)
        assert "exit 0" in said(stage.alpha, "gnt-instance migrate --force -n gamma mover")
        mover.goes_on(stage.gamma)
        told = mover.told(stage.gamma)
        assert told == list(range(told[0], told[-1] + 1))
        assert told[0] > reached
        assert mover.written(stage.gamma).starts == 1  # it never noticed

        assert "exit 0" in said(stage.alpha, "gnt-instance failover --force -n alpha mover")
        mover.goes_on(stage.alpha)
        assert mover.told(stage.alpha)[0] > told[-1]
        assert mover.written(stage.alpha).starts == 2
