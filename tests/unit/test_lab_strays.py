"""What nodes have and their configuration does not know of is named, and so is what they lack."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from common.messages import to_json
from common.model.backing import DrbdBacking, FileBacking, LvmBacking
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import Node
from common.model.template import DiskTemplate
from common.names import (
    DiskId,
    GroupId,
    InstanceId,
    InstanceName,
    MiB,
    NicId,
    NodeId,
    NodeName,
    Port,
)
from noded.network.naming import tap_name
from tests.lab.strays import Found, Known, read, strays

A, B = (
    NodeId("aaaaaaaa-0000-4000-8000-000000000001"),
    NodeId("aaaaaaaa-0000-4000-8000-000000000002"),
)
WEB, DISK = (
    InstanceId("bbbbbbbb-0000-4000-8000-000000000001"),
    DiskId("dddddddd-0000-4000-8000-000000000001"),
)
NIC = NicId("cccccccc-0000-4000-8000-000000000001")
ALPHA, BETA = NodeName("alpha"), NodeName("beta")
DATA, META = f"gantry/{DISK}.data", f"gantry/{DISK}.meta"


def known() -> Known:
    """Return a cluster with a mirrored instance, read of a replica's rows."""
    nodes = [
        Node(uuid=uuid, name=name, primary_ip="192.0.2.1", group=GroupId("g"))
        for name, uuid in ((ALPHA, A), (BETA, B))
    ]
    disk = Disk(
        uuid=DISK, size=MiB(8), nodes=(A, B),
        backing=DrbdBacking(
            data=LvmBacking(group="gantry", name=f"{DISK}.data"),
            meta=LvmBacking(group="gantry", name=f"{DISK}.meta"),
            port=Port(11000), minors={A: 0, B: 3}, secret="secret",
        ),
    )  # fmt: skip
    instance = Instance(
        uuid=WEB, name=InstanceName("web"), primary_node=A, admin_state=AdminState.UP,
        hypervisor="kvm", disk_template=DiskTemplate.DRBD, disks=(DISK,), nics=(NIC,),
    )  # fmt: skip
    rows: dict[str, Sequence[object]] = {
        "node": nodes, "instance": [instance], "disk": [disk],
        "nic": [Nic(uuid=NIC, mac="aa:00:00:00:00:01")], "job": [],
    }  # fmt: skip
    return read({kind: tuple(to_json(row).decode() for row in of) for kind, of in rows.items()})


def found() -> dict[NodeName, Found]:
    """Return what the two nodes have when all is as it should be."""
    mirror = (0, "Connected", "Primary/Secondary", "UpToDate/UpToDate")
    nothing = Found(
        volumes=(DATA, META, "system/root"), mirrors=((3, *mirror[1:]),), ports=(11000,), taps=(),
        running=(), homes=(), copies=(), exports=(), files=(), rows={},
    )  # fmt: skip
    tap = tap_name(NIC)
    here = replace(nothing, mirrors=(mirror,), taps=(tap,), running=(WEB,), homes=(WEB,))
    return {ALPHA: here, BETA: nothing}


def test_nothing_is_said_of_what_is_as_it_should_be() -> None:
    assert strays(known(), found()) == []


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("volumes", "gantry/left"), ("mirrors", (7, "StandAlone", "Secondary/Unknown", "UpToDate")),
        ("ports", 11001), ("taps", "gnt123"), ("homes", "other"), ("running", "other"),
        ("files", "/srv/disks/other/disk.raw"), ("copies", "12"),
    ],
)  # fmt: skip
def test_whatever_is_left_over_is_named_with_its_node(field: str, more: object) -> None:
    nodes = found()
    there = (*getattr(nodes[BETA], field), more)
    lines = strays(known(), {**nodes, BETA: replace(nodes[BETA], **{field: there})})
    name = more[0] if isinstance(more, tuple) else more
    assert any(line.startswith("beta has the ") and f" {name}, " in line for line in lines)


def test_a_volume_that_is_gone_is_named() -> None:
    nodes = found()
    nodes[BETA] = replace(nodes[BETA], volumes=(DATA,))
    assert strays(known(), nodes) == [
        f"beta lacks the volume {META}, which the configuration has there."
    ]


def test_a_guest_that_runs_twice_or_not_at_all_is_named() -> None:
    nodes = found()
    twice = {**nodes, BETA: replace(nodes[BETA], running=(WEB,))}
    assert "web runs on alpha and beta, and should on alpha." in strays(known(), twice)
    never = {**nodes, ALPHA: replace(nodes[ALPHA], running=())}
    assert strays(known(), never) == ["web runs on no node, and should on alpha."]


def test_a_disk_that_is_a_file_is_known_by_its_path() -> None:
    config = known()
    path = f"/srv/disks/{WEB}/disk.raw"
    disk = replace(config.disks[DISK], backing=FileBacking(path=path, shared=False), nodes=(A,))
    nodes = {
        name: replace(
            each, volumes=(), mirrors=(), ports=(), files=(path,) if name == ALPHA else ()
        )
        for name, each in found().items()
    }
    assert strays(replace(config, disks={DISK: disk}), nodes) == []
