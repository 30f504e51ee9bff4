"""What was kept of a volume while its guest wrote can be gone back to, and leaves nothing."""

from tests.lab.guests import guest
from tests.lab.leftovers import leftovers
from tests.lab.stage import Stage, on_request, said

TAKE = "gnt-instance snapshot kept before"
GO_BACK = "gnt-instance rollback --force kept before"
KEPT = "gnt-instance list-snapshots --no-headers kept"


@on_request
def test_a_guest_goes_back_to_what_it_had_written_when_a_snapshot_was_taken(stage: Stage) -> None:
    with guest(stage, "kept", "plain", "-n gamma") as kept:
        process, before = kept.process(stage.gamma), kept.goes_on(stage.gamma)
        assert "exit 0" in said(stage.alpha, TAKE)
        after = kept.goes_on(stage.gamma)
        assert kept.process(stage.gamma) == process
        assert kept.written(stage.gamma).starts == 1
        assert "stop" in said(stage.alpha, GO_BACK)  # as its guest would not notice
        assert "exit 0" in said(stage.alpha, "gnt-instance shutdown --timeout 0 kept")
        for _ in range(2):  # it stays, to be gone back to again
            assert "exit 0" in said(stage.alpha, f"{GO_BACK} && gnt-instance startup kept")
            kept.goes_on(stage.gamma)
            # One may have been on the disk and not told yet when the snapshot was taken.
            assert before < kept.told(stage.gamma)[0] <= after + 2
            assert kept.written(stage.gamma).starts == 2
            assert "exit 0" in said(stage.alpha, "gnt-instance shutdown --timeout 0 kept")
        assert "before" in stage.alpha.run(KEPT)
        assert "exit 0" in said(stage.alpha, "gnt-instance remove-snapshot --force kept before")
        assert not stage.alpha.run(KEPT).strip()
        assert len(stage.gamma.run("lvs --noheadings gantry").splitlines()) == 1
    assert not leftovers(stage)
