"""A guest whose disk two nodes mirror goes on while the disks below it fail, and is mended live."""

from deploy.uml import faults
from deploy.uml.node import Node
from tests.lab.mirrored import NAME, Ledger
from tests.lab.order import Order
from tests.lab.stage import Stage, on_request, said, until

SLOW = "-D drbd:resync-rate=512,dynamic-resync=no"
USUAL = "-D drbd:resync-rate=default,dynamic-resync=default"


def test_it_goes_on_with_the_other_copy_when_its_disk_fails_and_gets_new_volumes_live(
    ledger: Ledger, stage: Stage
) -> None:
    home, _ = ledger.homes
    before = ledger.goes_on(home)
    process = ledger.process(home)
    faults.break_disk(home)
    try:
        ledger.goes_on(home)
        assert ledger.state == "degraded"
        told = said(stage.alpha, "gnt-cluster verify-disks")
        assert f"gnt-instance replace-disks --auto {NAME}" in told
    finally:
        faults.mend_disk(home)
    ledger.order("replace-disks --auto")
    ledger.goes_on(home)
    assert (ledger.state, ledger.process(home)) == ("whole", process)
    assert ledger.on_disk(home).whole_to >= before


def test_new_copies_are_made_though_the_coordinator_is_killed_at_every_step(
    ledger: Ledger, stage: Stage
) -> None:
    home, _ = ledger.homes
    order = Order(stage, f"replace-disks -s {NAME}")
    killed = order.kill_coordinator_at_every_step()
    assert (order.ends(), killed > 1) == ("success", True)
    ledger.goes_on(home)
    assert ledger.state == "whole"


@on_request
def test_a_new_secondary_node_that_dies_while_it_is_copied_to_costs_no_copy(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    ledger.order(f"replace-disks -n {stage.alpha.name}")
    stage.alpha.run(f"gnt-cluster modify {SLOW}")
    try:
        order = Order(stage, f"replace-disks -n {second.name} {NAME}")
        until(lambda: is_copied_from(home), "the copying to begin")
        second.power_off()
        assert order.ends() == "error"
    finally:
        stage.alpha.run(f"gnt-cluster modify {USUAL}")
        stage.power_on()
    ledger.goes_on(home)
    assert ledger.homes == (home, stage.alpha)
    ledger.order("activate-disks --wait-for-sync")
    stage.alpha.run(f"gnt-node remove-leftovers --force {second.name}")
    ledger.order(f"replace-disks -n {second.name}")
    assert ledger.homes == (home, second)


def is_copied_from(home: Node) -> bool:
    return "cs:SyncSource" in home.run("cat /proc/drbd")
