"""A copy of a mirrored disk counts as good only if its node has told so."""

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from common.errors import GntError, Unreachable
from common.model.backing import DrbdBacking, LvmBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import Instance
from common.model.node import Node
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    DiskId,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    MiB,
    NodeId,
    NodeName,
)
from common.noderpc.mirrors import CopyState, Link, MirrorReport
from common.noderpc.physical_volumes import VolumeGroupReport
from coordinator.operations.node.repair_storage import losses
from coordinator.state.config import Config
from coordinator.state.rows import Put

BETA, GAMMA = (
    Node(uuid=NodeId(name), name=NodeName(name), primary_ip="192.0.2.1", group=GroupId("g"))
    for name in ("beta", "gamma")
)
DISK = Disk(
    uuid=DiskId("d"), size=MiB(8), nodes=(BETA.uuid, GAMMA.uuid),
    backing=DrbdBacking(
        data=LvmBacking(group="vg", name="d.data"), meta=LvmBacking(group="vg", name="d.meta"),
        port=11000, minors={BETA.uuid: 0, GAMMA.uuid: 0}, secret="s",
    ),
)  # fmt: skip
WEB1 = Instance(
    uuid=InstanceId("i"), name=InstanceName("web1"), primary_node=BETA.uuid, hypervisor="kvm",
    disk_template=DiskTemplate.DRBD, disks=(DISK.uuid,),
)  # fmt: skip
CONFIG = Config().apply(
    [
        Put(Cluster(uuid=ClusterId("c"), name=ClusterName("test"), master=BETA.uuid)),
        Put(Group(uuid=GroupId("g"), name=GroupName("default"))),
        *map(Put, (BETA, GAMMA, DISK, WEB1)),
    ]
)
BROKEN = VolumeGroupReport(name="vg", size=MiB(8), free=MiB(0), missing=1, broken=("d.meta",))
GOOD = MirrorReport(
    primary=True, peer_primary=False, own=CopyState.UP_TO_DATE, peer=CopyState.NONE,
    link=Link.CONNECTED,
)  # fmt: skip


class Asked:
    """A cluster whose nodes all tell the same of their copies."""

    def __init__(self, told: MirrorReport | GntError | None, config: Config = CONFIG) -> None:
        self.config = config
        self.told = told
        self.nodes: list[str] = []

    def call(self, _: object, node: Node) -> "Asked":
        self.nodes.append(node.name)
        return self

    async def status(self, *, disks: tuple[Any, ...]) -> tuple[MirrorReport | None, ...]:
        assert len(disks) == 1
        if isinstance(self.told, GntError):
            raise self.told
        return (self.told,)


def told(asked: Asked, group: VolumeGroupReport = BROKEN) -> list[str]:
    return asyncio.run(losses(cast("Any", asked), GAMMA, group))


def test_a_copy_that_its_node_calls_up_to_date_is_good() -> None:
    asked = Asked(GOOD)
    assert told(asked) == []
    assert asked.nodes == ["beta"], "the other node, not the one that is repaired"


def test_whole_disks_are_nobodys_concern() -> None:
    asked = Asked(None)
    for group in (
        VolumeGroupReport(name="vg", size=MiB(8), free=MiB(0), missing=1, broken=("e.meta",)),
        VolumeGroupReport(name="other", size=MiB(8), free=MiB(0), missing=1, broken=("d.meta",)),
    ):
        assert told(asked, group) == []
    assert asked.nodes == []


@pytest.mark.parametrize("state", [each for each in CopyState if each is not CopyState.UP_TO_DATE])
def test_any_lesser_copy_is_a_loss(state: CopyState) -> None:
    (loss,) = told(Asked(replace(GOOD, own=state)))
    assert loss == f"No other node has a good copy of disk 0 of web1: that on beta is {state}."


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(None), "that on beta is not attached"),
        (Asked(Unreachable("no route to beta")), "does not tell how it is (no route to beta)"),
        (
            Asked(GOOD, CONFIG.apply([Put(replace(DISK, behind=(BETA.uuid,)))])),
            "that on beta is known to be behind",
        ),
        (Asked(GOOD, CONFIG.apply([Put(replace(BETA, offline=True))])), "beta, which has one, is"),
        (
            Asked(GOOD, CONFIG.apply([Put(replace(DISK, nodes=(GAMMA.uuid,))),
                                      Put(replace(WEB1, primary_node=GAMMA.uuid))])),
            "there is this one only",
        ),
    ],
)  # fmt: skip
def test_a_copy_of_which_nothing_is_known_is_a_loss(asked: Asked, says: str) -> None:
    (loss,) = told(asked)
    assert says in loss
