"""A node far away, on a line that loses some: the cluster works as before, only slower."""

from deploy.uml import faults
from tests.lab.stage import Stage, said

DELAY_MS = 200
PING = "for _ in 1 2 3 4 5; do ping -nc 1 beta && break; done"  # it may be one that is lost


def test_a_cluster_works_with_latency_and_loss(stage: Stage) -> None:
    try:
        for node in (stage.beta, stage.gamma):  # either is needed for a majority
            faults.slow(node, delay_ms=DELAY_MS, loss_percent=2)
        (took_ms,) = stage.alpha.run(
            "ping -nqc 10 -i 0.2 beta | sed -n 's,.*= [^/]*/\\([^.]*\\).*,\\1,p'"
        ).split()
        assert int(took_ms) >= DELAY_MS
        for capable in ("no", "yes"):
            line = f"gnt-node modify --vm-capable {capable} gamma"
            assert "exit 0" in said(stage.alpha, line)
        assert "ERROR" not in stage.verify()
    finally:
        for node in (stage.beta, stage.gamma):
            faults.slow(node, delay_ms=0, loss_percent=0)
