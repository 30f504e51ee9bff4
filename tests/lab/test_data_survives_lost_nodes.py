"""What a guest was told to be written is there, whichever of its two nodes is lost, and when.

One guest tells all these stories; each finds both its copies good and leaves them so.
"""

import logging
import time

from deploy.uml import network
from tests.lab.mirrored import Ledger, part, sync_kib
from tests.lab.stage import Stage, on_request, said, until

log = logging.getLogger(__name__)


def test_all_that_was_acknowledged_is_there_after_the_primary_node_lost_power(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    with ledger.witness(home) as told:
        until(lambda: told.look() > 20, "the guest to be heard")
        home.power_off()
    lost_at = time.monotonic()
    assert "exit 0" in said(stage.alpha, f"gnt-node modify --offline=yes --force {home.name}")
    ledger.order("failover --force")
    ledger.goes_on(second)
    log.info("running again %.1f s after the power was lost", time.monotonic() - lost_at)
    assert ledger.on_disk(second).whole_to >= told.last
    assert ledger.state == "degraded"
    stage.power_on()
    back = f"gnt-node modify --offline=no {home.name}"
    again = f"gnt-node modify --master-candidate=yes {home.name}"
    assert "exit 0" in said(stage.alpha, f"{back} && {again}")


def test_only_what_was_written_meanwhile_is_copied_to_a_secondary_node_that_was_off(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    before = ledger.goes_on(home)
    second.power_off()
    ledger.goes_on(home)
    stage.power_on()
    words = ledger.order("activate-disks --wait-for-sync")
    assert "KiB" in words
    assert 0 < sync_kib(second) < 4096
    ledger.order("failover --force")
    ledger.goes_on(second)
    assert ledger.on_disk(second).whole_to >= before


def test_nothing_is_split_by_a_link_that_was_cut_and_healed(ledger: Ledger, stage: Stage) -> None:
    home, second = ledger.homes
    part(stage, home, second)
    try:
        until(lambda: ledger.state == "parted", "the cut to be noticed")
        before = ledger.goes_on(home)
        refused = said(stage.alpha, f"gnt-instance failover --force {ledger.name}")
        assert "may lack what was written last" in refused
        ledger.goes_on(home)
    finally:
        network.heal(stage.lab.place)
    ledger.becomes("whole")
    assert ledger.on_disk(home).whole_to >= before


def test_a_split_that_was_forced_is_found_and_ends_as_the_operator_says(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    part(stage, home, second)
    try:
        until(lambda: ledger.state == "parted", "the cut to be noticed")
        ledger.goes_on(home)
        ledger.order("failover --force --ignore-consistency")
        ledger.goes_on(second)
    finally:
        network.heal(stage.lab.place)
    ledger.order("activate-disks")
    ledger.becomes("split")
    told = said(stage.alpha, "gnt-cluster verify")
    for node in (home, second):
        assert f"{node.name} has generation" in told
    assert f"discard-copy --node NODE {ledger.name}" in told
    before = ledger.goes_on(second)
    ledger.order(f"discard-copy --force --node {home.name}")
    ledger.becomes("whole")
    assert ledger.on_disk(second).whole_to >= before


@on_request
def test_both_nodes_lose_power_at_once_and_come_back_in_either_order(
    ledger: Ledger, stage: Stage
) -> None:
    home, second = ledger.homes
    for first, other in ((home, second), (second, home)):
        with ledger.witness(home) as told:
            until(lambda: told.look() > 0, "the guest to be heard")
            second.power_off()
            home.power_off()
        stage.start(first)
        said(stage.alpha, f"gnt-instance startup {ledger.name}")
        stage.start(other)
        ledger.order("startup")
        ledger.goes_on(home)
        assert ledger.on_disk(home).whole_to >= told.last
        ledger.order("activate-disks --wait-for-sync")
