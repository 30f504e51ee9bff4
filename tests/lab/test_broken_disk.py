"""The disk of a node's volume group fails: node and daemon live on, and it can be mended."""

from deploy.uml import faults
from tests.lab.stage import Stage, answers, main_pid, said

READ = "dd if=/dev/mapper/lab-disk of=/dev/null bs=4096 count=1 iflag=direct"


def test_a_node_outlives_the_disk_of_its_volume_group(stage: Stage) -> None:
    before = main_pid(stage.gamma, "gantry-noded")
    faults.break_disk(stage.gamma)
    try:
        assert "Input/output error" in said(stage.gamma, READ)
        assert not stage.gamma.run("vgs --noheadings -o vg_name 2>/dev/null || true").strip()
        assert "gamma" in stage.alpha.run("gnt-node list --no-headers -o name,mfree")
        assert "exit 0" in said(stage.alpha, "gnt-node modify --vm-capable no gamma")
        assert "exit 0" in said(stage.alpha, "gnt-node modify --vm-capable yes gamma")
    finally:
        faults.mend_disk(stage.gamma)
    assert answers(stage.gamma, READ)
    assert stage.gamma.run("vgs --noheadings -o vg_name").split() == ["gantry"]
    assert main_pid(stage.gamma, "gantry-noded") == before
