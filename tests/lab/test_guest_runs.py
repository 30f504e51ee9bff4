"""A guest is placed by the allocator, counts on its console, is stopped and started."""

from tests.lab.guests import guest
from tests.lab.stage import Stage, said, until
from tests.support.tiny_guest import numbers


def test_a_guest_runs_on_the_node_that_was_chosen(stage: Stage) -> None:
    with guest(stage, "counter", "file") as counter:
        node = counter.node
        seen = said(stage.alpha, "gnt-instance console --seconds 1 counter </dev/null")
        assert len(numbers(seen.encode())) > 5
        assert counter.written(node).starts == 1

        # It obeys its power button, long before it would be killed.
        shutdown = "gnt-instance shutdown --timeout 300 counter"
        assert "exit 0" in said(stage.alpha, shutdown)
        assert "ADMIN_down" in said(stage.alpha, "gnt-instance list -o status counter")
        reached = counter.written(node).last

        stage.alpha.run("gnt-instance startup counter")
        until(lambda: max(counter.told(node), default=0) > reached, "the guest to go on")
        assert counter.written(node).starts == 2

        text = said(stage.alpha, "gnt-instance failover --force counter")
        assert "file disks, which are on its node only" in text
        assert "exit 0" not in text
