"""The master is cut off from the others: it answers, refuses changes, and nobody is harmed."""

from deploy.uml import network
from tests.lab.stage import Stage, said, until

CHANGE = "timeout 40 gnt-node modify --vm-capable {} gamma"


def test_a_master_in_the_minority_answers_but_changes_nothing(stage: Stage) -> None:
    isolate(stage)
    assert "beta" in said(stage.alpha, "gnt-node list --no-headers -o name")
    assert "exit 0" not in said(stage.alpha, CHANGE.format("no"))
    network.heal(stage.lab.place)
    stage.restore()
    # What was refused for the time being is done by now, so that it can be undone.
    until(lambda: "exit 0" in said(stage.alpha, CHANGE.format("yes")), "the change")


def test_a_master_deposed_behind_its_back_is_fenced(stage: Stage) -> None:
    isolate(stage)
    assert "exit 0" in said(stage.beta, "gnt-cluster master-failover")
    assert "exit 0" not in said(stage.alpha, CHANGE.format("no"))
    network.heal(stage.lab.place)
    assert "exit 0" not in said(stage.alpha, CHANGE.format("no"))
    for capable in ("no", "yes"):
        assert "exit 0" in said(stage.beta, CHANGE.format(capable))


def isolate(stage: Stage) -> None:
    alpha, beta, gamma = (node.spot for node in stage.nodes)
    for other in (beta, gamma):
        network.cut(stage.lab.place, alpha, other)
        network.cut(stage.lab.place, other, alpha)
