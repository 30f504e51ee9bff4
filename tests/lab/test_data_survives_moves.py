"""A guest that moves while it writes is on one node afterwards, with its data, whatever happens."""

import pytest

from deploy.uml.node import Node
from tests.lab.mirrored import NAME, Ledger
from tests.lab.order import Order
from tests.lab.stage import Stage, on_request, said

MOVE = f"migrate --force {NAME}"
TRANSFER = f"move {NAME}"


def test_a_move_that_is_cancelled_half_way_leaves_it_where_it_was(
    ledger: Ledger, stage: Stage
) -> None:
    home, _ = ledger.homes
    before, process = ledger.goes_on(home), ledger.process(home)
    order = Order(stage, MOVE)
    order.reaches(TRANSFER)
    order.cancel()
    assert order.ends() in ("canceled", "error")
    assert (check(ledger, stage, before), ledger.process(home)) == (home, process)


@on_request
def test_it_moves_though_the_coordinator_is_killed_at_every_step(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    before = ledger.goes_on(home)
    order = Order(stage, MOVE)
    assert order.kill_coordinator_at_every_step() > 1  # of the steps that one sees in time
    assert order.ends() == "success"
    assert check(ledger, stage, before) == second


@on_request
@pytest.mark.parametrize("side", [0, 1])
def test_it_is_on_one_node_when_a_node_daemon_is_killed_while_it_moves(
    ledger: Ledger, stage: Stage, side: int
) -> None:
    homes = ledger.homes
    before = ledger.goes_on(homes[0])
    order = Order(stage, MOVE)
    order.reaches(TRANSFER)
    homes[side].run("systemctl kill --kill-whom=main --signal=KILL gantry-noded")
    order.ends()
    check(ledger, stage, before)


@on_request
def test_it_stays_when_the_target_loses_power_while_it_moves(ledger: Ledger, stage: Stage) -> None:
    home, second = ledger.homes
    before = ledger.goes_on(home)
    order = Order(stage, MOVE)
    order.reaches(TRANSFER)
    second.power_off()
    assert order.ends() == "error"
    ledger.goes_on(home)
    stage.power_on()
    said(stage.alpha, f"gnt-instance migrate --force --cleanup {NAME}")
    assert check(ledger, stage, before) == home


@on_request
def test_its_data_is_on_the_target_when_the_source_loses_power_while_it_moves(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    with ledger.witness(home) as told:
        order = Order(stage, MOVE)
        order.reaches(TRANSFER)
        home.power_off()
    order.ends()
    said(stage.alpha, f"gnt-node modify --offline=yes --force {home.name}")
    said(stage.alpha, f"gnt-instance failover --force {NAME}")
    ledger.goes_on(second)
    assert ledger.on_disk(second).whole_to >= told.last
    stage.power_on()
    back = f"gnt-node modify --offline=no {home.name}"
    said(stage.alpha, f"{back} && gnt-node modify --master-candidate=yes {home.name}")


def check(ledger: Ledger, stage: Stage, before: int) -> Node:
    """Return the only node where it is, which is the one recorded; nothing it wrote is lost."""
    home, _ = ledger.homes
    ledger.goes_on(home)
    line = f"pgrep --full '^/usr/bin/qemu.*{ledger.uuid}' || true"
    assert [node for node in stage.nodes if node.run(line)] == [home]
    found = ledger.on_disk(home)
    assert found.whole_to >= before
    return home
