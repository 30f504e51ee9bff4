"""The system disk of a candidate is full: changes go on with the others, and verify says so."""

from deploy.uml import faults
from tests.lab.stage import Stage, said

STATE = "/var/lib/gantry"


def test_a_full_candidate_holds_nobody_up(stage: Stage) -> None:
    # What it wrote before is put in order, so that the next write needs room at once.
    stage.gamma.run("systemctl restart gantry-noded")
    faults.fill(stage.gamma, STATE)
    try:
        assert "exit 0" in said(stage.alpha, "gnt-node modify --vm-capable no beta")
        assert "gamma: its copy of the state is" in stage.verify()
    finally:
        faults.empty(stage.gamma, STATE)
        capable = said(stage.alpha, "gnt-node modify --vm-capable yes beta")
    assert "exit 0" in capable
