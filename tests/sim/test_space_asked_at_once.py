"""Of two that ask at once for space that is there for one, one is given it, and the other none."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.base import Operation
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.replace_disks import ReplaceDisks
from tests.sim.settings import create, disk, mirrored
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.image import GROUP

PLAIN = DiskTemplate.PLAIN
BOTH = (InstanceName("db1"), InstanceName("db2"))


def on_gamma(name: InstanceName) -> CreateInstance:
    return create(name, "gamma", template=PLAIN, start=False)


class Case(NamedTuple):
    """What two instances are, what is asked for both, and how much space it takes on which node."""

    order: Callable[[InstanceName], CreateInstance]
    change: Callable[[InstanceName], Operation[Any, Any]]
    node: str
    takes: MiB
    reserved: bool = False


CASES = {
    "files become volumes": Case(
        lambda name: create(name, "gamma", template=DiskTemplate.FILE, start=False),
        lambda name: ModifyInstance(instance_name=name, disk_template=PLAIN),
        "gamma", MiB(64),
    ),
    "files become mirrored volumes": Case(
        lambda name: create(name, "gamma", template=DiskTemplate.FILE, start=False),
        lambda name: ModifyInstance(
            instance_name=name, disk_template=DiskTemplate.DRBD, remote_node="beta"
        ),
        "beta", MiB(64 + 128),
    ),
    "volumes are mirrored": Case(
        on_gamma,
        lambda name: ModifyInstance(
            instance_name=name, disk_template=DiskTemplate.DRBD, remote_node="beta"
        ),
        "beta", MiB(64 + 128),
    ),
    "disks are added": Case(
        on_gamma,
        lambda name: ModifyInstance(instance_name=name, disks=(disk("add", size=64),)),
        "gamma", MiB(64),
    ),
    "disks are added to what is reserved": Case(
        on_gamma,
        lambda name: ModifyInstance(instance_name=name, disks=(disk("add", size=64),)),
        "gamma", MiB(64), reserved=True,
    ),
    "disks grow": Case(
        on_gamma,
        lambda name: GrowDisk(instance_name=name, disk=0, amount=MiB(64)),
        "gamma", MiB(64),
    ),
    "second copies go elsewhere": Case(
        lambda name: mirrored(name, "gamma", "alpha", start=False),
        lambda name: ReplaceDisks(instance_name=name, remote_node="beta"),
        "beta", MiB(64 + 128),
    ),
    "disks are made anew where they were": Case(
        on_gamma, lambda name: RecreateDisks(instance_name=name), "gamma", MiB(64)
    ),
    "disks are made anew elsewhere": Case(
        on_gamma,
        lambda name: RecreateDisks(instance_name=name, nodes=("beta",)),
        "beta", MiB(64),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_of_two_is_given_what_space_there_is(case: Case) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for name in BOTH:
                order = case.order(name)
                await cluster.run(reserved(order) if case.reserved else order)
            group = cluster.machines[case.node].volumes.groups[GROUP]
            there = sum(volume.size for volume in group.volumes.values())
            if case.reserved:
                there = MiB(len(BOTH) * 64)
            if isinstance(case.change(BOTH[0]), RecreateDisks):
                there = MiB(0)
                cluster.machines["gamma"].volumes.groups[GROUP].volumes.clear()
            group.capacity = MiB(there + 2 * case.takes - 1)
            numbers = [await cluster.submit(case.change(name)) for name in BOTH]
            jobs = [await cluster.finished(number) for number in numbers]
            failures = [job.ops[0].failure for job in jobs if job.ops[0].failure]
            assert [failure.code for failure in failures] == ["no-capacity"], failures

    simulate(scenario())
