"""What an instance policy allows."""

from typing import Any

import pytest

from common.model.template import DiskTemplate
from common.names import MiB
from common.record import replace
from coordinator.allocator.policy import Bounds, Spec, check_policy
from coordinator.allocator.refusal import Reason
from tests.unit.allocator.clusters import OURS
from tests.unit.allocator.small import demand


def spec(memory: int, cpus: int = 4, disk: int = 1000, disks: int = 2, spindles: int = 2) -> Spec:
    return Spec(
        memory_size=MiB(memory),
        cpu_count=cpus,
        disk_size=MiB(disk),
        disk_count=disks,
        nic_count=1,
        spindle_use=spindles,
    )


SMALL = Bounds(min=spec(100, 1, 1, 0, 0), max=spec(1000))
LARGE = Bounds(min=spec(4000, 1, 1, 0, 0), max=spec(8000))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, Reason.NONE),
        ({"memory": MiB(99)}, Reason.POLICY_MEMORY),
        ({"memory": MiB(1001)}, Reason.POLICY_MEMORY),
        ({"disks": (MiB(64), MiB(1001))}, Reason.POLICY_DISK),
        ({"vcpus": 5}, Reason.POLICY_CPU),
        ({"spindle_use": 3}, Reason.POLICY_SPINDLES),
        ({"disks": (MiB(64),) * 3}, Reason.POLICY_DISK_COUNT),
        ({"disks": (MiB(64),) * 3, "template": DiskTemplate.DISKLESS}, Reason.NONE),
    ],
)
def test_each_bound(change: dict[str, Any], reason: Reason) -> None:
    assert check_policy(replace(OURS, minmax=(SMALL,)), demand(**change)) == reason


def test_one_alternative_is_enough_and_the_first_gives_the_reason() -> None:
    policy = replace(OURS, minmax=(SMALL, LARGE))
    assert check_policy(policy, demand(memory=MiB(5000))) == Reason.NONE
    assert check_policy(policy, demand(memory=MiB(512), vcpus=5)) == Reason.POLICY_CPU
    assert check_policy(policy, demand(memory=MiB(2000))) == Reason.POLICY_MEMORY


def test_no_alternatives_allow_every_size_but_not_every_template() -> None:
    policy = replace(OURS, minmax=(), disk_templates=("plain",))
    assert check_policy(policy, demand(memory=MiB(10**6))) == Reason.POLICY_TEMPLATE


def test_space_that_disks_take() -> None:
    sizes = (MiB(1000), MiB(500))
    assert DiskTemplate.PLAIN.traits.disk_space(sizes) == 1500
    assert DiskTemplate.DRBD.traits.disk_space(sizes) == 1756
    assert DiskTemplate.BLOCKDEV.traits.disk_space(sizes) == 0
