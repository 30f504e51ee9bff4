"""The master is powered off; another takes over; the old one comes back and knows its place."""

from tests.lab.stage import Stage, master_of, said, until


def test_another_candidate_takes_over_from_a_dead_master(stage: Stage) -> None:
    stage.alpha.power_off()
    assert "exit 0" in said(stage.beta, "gnt-cluster master-failover")
    assert master_of(stage.beta) == "beta"
    for capable in ("no", "yes"):  # a change needs both that are left
        assert "exit 0" in said(stage.beta, f"gnt-node modify --vm-capable {capable} gamma")

    stage.power_on()
    until(lambda: master_of(stage.alpha) == "beta", "alpha to learn who is master")
    said(stage.alpha, "systemctl start gantry-coordinator")
    assert "beta" in said(stage.alpha, "gnt-cluster getmaster")
    assert "inactive" in said(stage.alpha, "systemctl is-active gantry-coordinator")
    until(lambda: "ERROR" not in said(stage.beta, "gnt-cluster verify"), "beta to be content")
