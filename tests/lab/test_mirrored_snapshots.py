"""Going back to a snapshot gives up a copy: never the only good one, and for good."""

from tests.lab.leftovers import leftovers
from tests.lab.mirrored import NAME, make, remove
from tests.lab.stage import Stage, on_request, said

GO_BACK = f"gnt-instance rollback --force --no-wait-for-sync {NAME} before"
FAIL_OVER = f"gnt-instance failover --force {NAME}"


@on_request
def test_a_copy_is_given_up_for_a_snapshot_only_beside_a_good_one(stage: Stage) -> None:
    alpha, beta, gamma = stage.nodes
    try:
        ledger = make(stage)
        before = ledger.goes_on(beta)
        assert "exit 0" in said(alpha, f"gnt-instance snapshot {NAME} before")
        after = ledger.goes_on(beta)
        with ledger.witness(beta) as told:
            ledger.goes_on(beta)
            gamma.power_off()
            ledger.order("shutdown --timeout 0")
        assert "exit 0" not in said(alpha, GO_BACK)  # gamma is silent
        assert "exit 0" in said(alpha, "gnt-node modify --offline=yes --force gamma")
        refused = said(alpha, GO_BACK)
        assert "exit 0" not in refused
        assert "gamma is marked offline" in refused
        ledger.order("startup")
        ledger.goes_on(beta)
        assert ledger.told(beta)[0] >= told.last > after  # nothing was given up
        ledger.order("shutdown --timeout 0")
        _bring_back(stage, "gamma")
        assert "exit 0" in said(alpha, GO_BACK)
        beta.power_off()  # which alone has what is good now
        assert "exit 0" in said(alpha, "gnt-node modify --offline=yes --force beta")
        refused = said(alpha, FAIL_OVER)
        assert "exit 0" not in refused
        assert "behind" in refused
        _bring_back(stage, "beta")
        ledger.order("startup")
        ledger.goes_on(beta)
        # One may have been on the disk and not told yet when the snapshot was taken.
        assert before <= ledger.told(beta)[0] <= after + 2
        ledger.order("activate-disks --wait-for-sync")
        with ledger.witness(beta) as told:
            ledger.order("failover --force --shutdown-timeout 0")
        ledger.goes_on(gamma)
        assert ledger.on_disk(gamma).whole_to >= told.last > 0
    finally:
        remove(stage)
    assert not leftovers(stage)


def _bring_back(stage: Stage, name: str) -> None:
    stage.power_on()
    again = f"gnt-node modify --offline=no {name} && gnt-node modify --master-candidate=yes {name}"
    assert "exit 0" in said(stage.alpha, again)
