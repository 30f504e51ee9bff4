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
        errors = [line for line in stage.verify().splitlines() if "ERROR: node gamma" in line]
        # It is behind, or cannot even look how far it is, going by where the room ended.
        said_so = ("its copy of the state is", "state.sqlite cannot be written")
        assert any(word in line for line in errors for word in said_so), errors
    finally:
        faults.empty(stage.gamma, STATE)
        capable = said(stage.alpha, "gnt-node modify --vm-capable yes beta")
    assert "exit 0" in capable
