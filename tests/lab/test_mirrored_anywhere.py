"""A mirrored guest goes to a node that has no copy, and its copies are given up and made again."""

from deploy.uml import faults, network
from tests.lab.leftovers import leftovers
from tests.lab.mirrored import NAME, make, part, remove
from tests.lab.stage import Stage, on_request, said


def test_a_mirrored_guest_moves_to_any_node_and_loses_nothing(stage: Stage) -> None:
    try:
        ledger = make(stage)
        alpha, beta, gamma = stage.nodes
        with ledger.witness(beta) as before:
            ledger.order("migrate --force -n alpha")
            ledger.goes_on(alpha)
        ledger.becomes("whole")
        assert ledger.homes == (alpha, beta)
        assert not gamma.run("ls /sys/block | grep ^drbd; true").strip()
        ledger.order("migrate --force --non-live")
        ledger.goes_on(beta)
        assert ledger.on_disk(beta).whole_to >= before.last > 0
    finally:
        remove(stage)


@on_request
def test_it_is_not_failed_over_to_any_node_from_a_copy_that_has_failed(stage: Stage) -> None:
    try:
        ledger = make(stage)
        alpha, beta, gamma = stage.nodes
        with ledger.witness(beta) as told:
            try:
                faults.break_disk(gamma)
                ledger.becomes("degraded")
                ledger.goes_on(beta)
                beta.power_off()
                assert "exit 0" in said(alpha, "gnt-node modify --offline=yes --force beta")
                refused = said(alpha, f"gnt-instance failover --force -n alpha {NAME}")
                assert "exit 0" not in refused
                assert "gamma" in refused
            finally:
                faults.mend_disk(gamma)
        stage.power_on()
        assert not leftovers(stage)
        again = "gnt-node modify --offline=no beta && gnt-node modify --master-candidate=yes beta"
        assert "exit 0" in said(alpha, again)
        ledger.order("startup")
        ledger.goes_on(beta)
        assert ledger.on_disk(beta).whole_to >= told.last > 0
        ledger.order("replace-disks --auto")
        ledger.becomes("whole")
    finally:
        remove(stage)
    assert not leftovers(stage)


@on_request
def test_a_failover_to_a_node_that_does_not_reach_the_good_copy_goes_back(stage: Stage) -> None:
    try:
        ledger = make(stage)
        alpha, beta, gamma = stage.nodes
        ledger.order("migrate --force -n alpha")
        with ledger.witness(alpha) as told:
            ledger.goes_on(alpha)
            ledger.becomes("whole")
            part(stage, beta, gamma)
            there = f"failover --force --shutdown-timeout 0 -n gamma {NAME}"
            refused = said(alpha, f"gnt-instance {there}", seconds=240.0)
            assert "exit 0" not in refused
            assert "beta does not reach the other node" in refused
            network.heal(stage.lab.place)
        ledger.goes_on(alpha)
        assert ledger.homes == (alpha, beta)
        ledger.becomes("whole")
        assert not gamma.run("lvs --noheadings gantry").strip()
        ledger.order("failover --force --shutdown-timeout 0 -n gamma")
        assert ledger.homes == (gamma, beta)
        ledger.goes_on(gamma)
        assert ledger.on_disk(gamma).whole_to >= told.last > 0
    finally:
        network.heal(stage.lab.place)
        remove(stage)
    assert not leftovers(stage)


@on_request
def test_a_guest_whose_start_was_postponed_needs_no_other_copy(stage: Stage) -> None:
    try:
        ledger = make(stage)
        alpha, beta, gamma = stage.nodes
        with ledger.witness(beta) as told:
            ledger.goes_on(beta)
            words = ledger.order("failover --force --shutdown-timeout 0 --wait-for-sync -n alpha")
        copied, started = (
            words.index(f"copy the disks of {NAME} from gamma"),
            words.index(f"start {NAME} on alpha"),
        )
        assert copied < started
        assert ledger.homes == (alpha, gamma)
        assert not beta.run("ls /sys/block | grep ^drbd; true").strip()
        gamma.power_off()
        ledger.goes_on(alpha)
        assert ledger.on_disk(alpha).whole_to >= told.last > 0
    finally:
        stage.power_on()
        remove(stage)
    assert not leftovers(stage)


@on_request
def test_a_second_copy_is_given_up_and_made_again_around_the_data(stage: Stage) -> None:
    try:
        ledger = make(stage)
        _, beta, gamma = stage.nodes
        with ledger.witness(beta) as told:
            ledger.goes_on(beta)
            ledger.order("shutdown --timeout 0")
        ledger.order("modify -t plain")
        assert not gamma.run("lvs --noheadings gantry").strip()
        ledger.order("modify -t drbd -n gamma")
        ledger.order("startup")
        ledger.goes_on(beta)
        ledger.becomes("whole")
        ledger.order("failover --force --shutdown-timeout 0")
        ledger.goes_on(gamma)
        assert ledger.on_disk(gamma).whole_to >= told.last > 0
    finally:
        remove(stage)
