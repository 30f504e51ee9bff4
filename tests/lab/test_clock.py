"""A clock that goes wrong is named by verify."""

from deploy.uml import faults
from tests.lab.stage import Stage


def test_verify_names_the_node_with_the_wrong_clock(stage: Stage) -> None:
    faults.shift_clock(stage.beta, 300)
    try:
        found = stage.verify()
    finally:
        faults.shift_clock(stage.beta, -300)
    assert "node beta: its clock is" in found
    assert "gamma: its clock" not in found
