"""A device of a node dies: what is left is put right by Debian's gnt-* commands, and by ours."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.diff.debian_ganeti import Said, Served, needs_ganeti, served_cluster
from tests.support.image import GROUP

pytestmark = needs_ganeti

BEFORE = ["gnt-instance add -t plain -s 1G -o noop --no-install --no-start -n gamma store"]
REPAIR = "gnt-node repair-storage --ignore-consistency gamma lvm-vg gantry"
AFTER = """
gnt-instance recreate-disks store
gnt-instance startup store
gnt-cluster verify
""".strip().splitlines()


@pytest.mark.parametrize(
    ("all_of", "repair"),
    [(Served.gnt_all, REPAIR), (Served.ours_all, f"{REPAIR} --force")],  # ours asks, else
    ids=["Debian's", "ours"],
)
def test_a_group_of_volumes_is_repaired_and_disks_are_made_anew(
    tmp_path: Path, all_of: Callable[[Served, list[str]], list[Said]], repair: str
) -> None:
    with served_cluster(tmp_path) as served:
        gamma = served.cluster.machines["gamma"]
        said = all_of(served, BEFORE)
        (lost,) = gamma.volumes.groups[GROUP].volumes
        gamma.physical.lose(f"/dev/{GROUP}")
        said += all_of(served, [repair, *AFTER])
        for line, each in zip([*BEFORE, repair, *AFTER], said, strict=True):
            assert each.code == 0, (line, each.text)
        assert list(gamma.volumes.groups[GROUP].volumes) == [lost]
        found = served.ask("Query", "instance", ["name", "status", "pnode"], None)["data"]
        assert found == [[(0, "store"), (0, "running"), (0, "gamma")]]
