"""A guest's move is broken off at each of its steps, on either side: it is on one node, and whole.

What is done while it is sent is told in ``test_data_survives_moves``.
"""

from collections.abc import Callable

import pytest

from deploy.uml.node import Node
from tests.lab.mirrored import NAME, Ledger
from tests.lab.order import Order
from tests.lab.stage import Stage, on_request, said, until
from tests.lab.test_data_survives_moves import MOVE, check

STEPS = {
    "record": f"record that {NAME} may be on",
    "prepare": "prepare ",
    "clear": f"clear {NAME} away from",
    "leave": f"leave the disks of {NAME}",
}
Blow = Callable[[Node], object]


def kill_daemon(node: Node) -> None:
    node.run("systemctl kill --kill-whom=main --signal=KILL gantry-noded")


@on_request
@pytest.mark.parametrize("blow", [kill_daemon, Node.power_off], ids=["daemon", "power"])
@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
@pytest.mark.parametrize("step", STEPS)
def test_it_is_on_one_node_with_its_data_wherever_its_move_is_broken_off(
    ledger: Ledger, stage: Stage, step: str, side: int, blow: Blow
) -> None:
    homes = ledger.homes
    before = ledger.goes_on(homes[0])
    with ledger.witness(homes[0]) as told:
        until(lambda: told.look() >= before, "the guest to be heard")
        order = Order(stage, MOVE)
        order.reaches(STEPS[step])
        blow(homes[side])
        order.ends()
    stage.power_on()
    assert "exit 0" in said(stage.alpha, f"gnt-instance migrate --force --cleanup {NAME}")
    assert "exit 0" in said(stage.alpha, f"gnt-instance startup {NAME}")
    check(ledger, stage, max(before, told.last))
