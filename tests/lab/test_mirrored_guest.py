"""A guest whose disk two nodes mirror moves between them while it writes."""

from tests.lab.guests import PROGRAM, Guest
from tests.lab.stage import Stage, said
from tests.support.tiny_guest import kernel

NAME = "mirrored"


def test_a_mirrored_guest_moves_to_its_secondary_node_and_back(stage: Stage) -> None:
    (stage.lab.place.shared / PROGRAM.rpartition("/")[2]).write_bytes(kernel())
    alpha, beta, gamma = stage.nodes
    added = said(
        alpha,
        f"gnt-instance add -t drbd -n beta:gamma --disk 0:size=8M -B memory=128,vcpus=1 "
        f"--no-nics -H kvm:kernel_path={PROGRAM} {NAME}",
    )
    try:
        assert "exit 0" in added
        guest = Guest(stage, NAME, "drbd")
        guest.goes_on(beta)
        for node in (gamma, beta):
            assert "exit 0" in said(alpha, f"gnt-instance migrate --force {NAME}")
            guest.goes_on(node)
        state = f"gnt-instance list --no-headers -o mirror_state {NAME}"
        assert alpha.run(state).strip() == "whole"
    finally:
        assert "exit 0" in said(alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
