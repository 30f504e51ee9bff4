"""A node that has lost all it had comes back under its name, and has its copies made anew."""

import logging

from deploy.uml.node import Node
from tests.lab.mirrored import Ledger
from tests.lab.stage import Stage, answers, on_request, said, until

log = logging.getLogger(__name__)


@on_request
def test_a_node_that_was_wiped_comes_back_and_is_rebuilt_while_the_guest_goes_on(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    with ledger.witness(home) as told:
        until(lambda: told.look() > 20, "the guest to be heard")
        home.power_off()
    ordered(stage, f"gnt-node modify --offline=yes --force {home.name}")
    ledger.order("failover --force")
    ledger.goes_on(second)
    assert ledger.on_disk(second).whole_to >= told.last

    wipe(home)
    stage.start(home)
    until(lambda: answers(home, "systemctl is-active gantry-noded"), "the daemon of a new machine")
    readd = f"gnt-node add --readd --address {home.spot.address} --token-file - {home.name}"
    log.info("%s", stage.alpha.run(readd, stdin=home.run("gantry join-token")))
    said_of_it = said(stage.alpha, "gnt-cluster verify")
    assert ledger.name in said_of_it
    assert "replace-disks" in said_of_it

    before = ledger.goes_on(second)
    ledger.order("replace-disks --on-secondary")
    assert ledger.state == "whole"
    ledger.order("migrate --force")
    ledger.goes_on(home)
    assert ledger.on_disk(home).whole_to >= before


@on_request
def test_what_was_on_a_wiped_node_is_rebuilt_on_another_one(ledger: Ledger, stage: Stage) -> None:
    home, second = ledger.homes
    other = next(node for node in stage.nodes if node not in (home, second))
    second.power_off()
    wipe(second)
    ordered(stage, f"gnt-node modify --offline=yes --force {second.name}")
    before = ledger.goes_on(home)
    ordered(stage, f"gnt-node evacuate --force --secondary -n {other.name} {second.name}")
    assert ledger.homes == (home, other)
    assert ledger.state == "whole"
    assert ledger.on_disk(home).whole_to >= before

    stage.start(second)
    until(lambda: answers(second, "systemctl is-active gantry-noded"), "a new machine's daemon")
    readd = f"gnt-node add --readd --address {second.spot.address} --token-file - {second.name}"
    log.info("%s", stage.alpha.run(readd, stdin=second.run("gantry join-token")))
    ledger.order(f"replace-disks -n {second.name}")
    assert ledger.homes == (home, second)


def wipe(node: Node) -> None:
    """Let a node that is off be a new machine: with no volumes, and in no cluster."""
    node.spot.system.unlink()
    node.spot.disk.unlink()


def ordered(stage: Stage, command: str) -> None:
    assert "exit 0" in said(stage.alpha, command, seconds=400)
