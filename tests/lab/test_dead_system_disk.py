"""The system disk of a node dies: noded still answers, and can still reboot it."""

import subprocess

from deploy.uml import faults
from tests.lab.stage import Stage, said, until


def test_a_node_without_its_system_disk_is_powercycled(stage: Stage) -> None:
    before = stage.gamma.run("cat /proc/sys/kernel/random/boot_id")
    faults.break_system(stage.gamma)
    assert not can_start_programs(stage)
    assert "ERROR: node gamma" not in said(stage.alpha, "gnt-node list")

    assert "exit 0" in said(stage.alpha, "gnt-node powercycle --force gamma")
    until(lambda: can_start_programs(stage), "gamma to boot")
    assert stage.gamma.run("cat /proc/sys/kernel/random/boot_id") != before


def can_start_programs(stage: Stage) -> bool:
    words = (*stage.gamma.ssh(), "ls /var/lib/gantry")
    return subprocess.run(words, capture_output=True, timeout=60, check=False).returncode == 0  # noqa: TID251 -- there is no loop to block here
