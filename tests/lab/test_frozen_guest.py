"""A guest whose agent freezes its file systems is kept as if it had unmounted them."""

from deploy.uml.node import Node
from tests.lab.agent_guest import PARAMETERS, put_files
from tests.lab.guests import VOLUME
from tests.lab.leftovers import leftovers
from tests.lab.stage import Stage, on_request, said, until

NAME = "cold"
ADD = (
    f"gnt-instance add -t plain -n gamma --disk 0:size=32M --no-nics --no-start -B memory=192 "
    f"-H kvm:{PARAMETERS} {NAME}"
)
FORMAT = f"mke2fs -q -t ext4 {VOLUME}"
TORN = "needs_recovery"  # as ext4 says of what was in use until the power was lost


@on_request
def test_a_snapshot_of_a_frozen_guest_needs_no_recovery_and_the_guest_goes_on(stage: Stage) -> None:
    put_files(stage.lab)
    alpha, gamma = stage.alpha, stage.gamma
    try:
        assert "exit 0" in said(alpha, f"{ADD} && gnt-instance activate-disks {NAME}")
        gamma.run(FORMAT)
        made = said(alpha, f"gnt-instance deactivate-disks {NAME} && gnt-instance startup {NAME}")
        assert "exit 0" in made
        until(lambda: _counted(gamma) > 2, "Linux to boot, and write")
        assert TORN in _kept(stage, "torn")
        assert TORN not in _kept(stage, "whole", "--freeze")
        before = _counted(gamma)
        until(lambda: _counted(gamma) > before, "the guest to write again")
    finally:
        said(alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
    assert not leftovers(stage)


def _counted(node: Node) -> int:
    return int(node.run("cat /run/gantry/instances/*/serial.log | grep --count ^count; true"))


def _kept(stage: Stage, name: str, *options: str) -> str:
    """Take a snapshot; return what its file system is said to be."""
    before = _volumes(stage.gamma)
    order = " ".join(("gnt-instance snapshot", *options, NAME, name))
    assert "exit 0" in said(stage.alpha, order)
    (made,) = _volumes(stage.gamma) - before
    return stage.gamma.run(f"dumpe2fs -h /dev/gantry/{made} 2>/dev/null | grep features:")


def _volumes(node: Node) -> set[str]:
    return set(node.run("lvs --noheadings -o lv_name gantry").split())
