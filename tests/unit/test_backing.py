"""What a disk is made of, as it is stored, sent and shown."""

import pytest
from msgspec.structs import replace

from common.messages import from_json, to_builtins, to_json
from common.model.backing import (
    META_SIZE,
    Backing,
    BlockBacking,
    DrbdBacking,
    DumpBacking,
    ExtBacking,
    FileBacking,
    LvmBacking,
    Qcow2Backing,
    RbdBacking,
)
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import DiskSpec

LUN = "/dev/disk/by-id/lun7"
SECRET = "5ec7e75ec7e75ec7e75ec7e75ec7e75e"
MIRROR = DrbdBacking(
    data=LvmBacking(group="fast", name="d.data"),
    meta=LvmBacking(group="slow", name="d.meta"),
    port=11000,
    minors={NodeId("a"): 0, NodeId("b"): 3},
    secret=SECRET,
)


def group(name: str) -> Pool:
    return Pool(kind=PoolKind.VOLUME_GROUP, name=name)


def test_mirrored_disk_takes_of_the_group_of_each_of_its_volumes() -> None:
    assert MIRROR.takes(MiB(1024), group("fast")) == 1024
    assert MIRROR.takes(MiB(1024), group("slow")) == META_SIZE
    assert MIRROR.takes(MiB(1024), group("other")) == 0
    assert MIRROR.paths == ("fast/d.data", "slow/d.meta")


def test_mirrored_disk_is_made_of_its_two_volumes() -> None:
    assert MIRROR.children(MiB(1024)) == ((MIRROR.data, 1024), (MIRROR.meta, META_SIZE))
    assert MIRROR.data.children(MiB(1024)) == ()


def test_mirrored_disk_around_a_thin_volume_is_in_its_pool() -> None:
    thin = replace(MIRROR, data=replace(MIRROR.data, thin_pool="thin"))
    assert (MIRROR.thin_pool, thin.thin_pool) == ("", "thin")


def test_what_a_backing_answers_and_has_no_field_for_is_not_stored() -> None:
    plain = FileBacking(path="/srv/disks/d.raw", shared=False)
    assert (plain.thin_pool, plain.minors, plain.provider, plain.has_own_format) == (
        "", {}, "", False,
    )  # fmt: skip
    assert to_builtins(plain) == {"type": "file", "path": "/srv/disks/d.raw", "shared": False}


def test_backings_are_told_apart_when_they_are_read() -> None:
    for backing in (MIRROR, MIRROR.data):
        assert from_json(to_json(backing), Backing, what="a backing") == backing  # type: ignore[arg-type]


def test_secret_is_sent_and_never_shown() -> None:
    spec = DiskSpec(id=DiskId("d"), instance=InstanceId("i"), size=MiB(1), backing=MIRROR)
    assert SECRET in to_json(spec).decode()
    assert SECRET not in f"{MIRROR} {MIRROR!r} {spec} {spec!r} {[spec]}"


@pytest.mark.parametrize(
    ("backing", "where", "path", "logical_id"),
    [
        (
            FileBacking(path="/srv/disks/d.raw", shared=False),
            "/srv/disks/d.raw", "/srv/disks/d.raw", ["loop", "/srv/disks/d.raw"],
        ),
        (
            Qcow2Backing(path="/srv/disks/d.qcow2", shared=True, snapshot="s"),
            "/srv/disks/d.qcow2@s", "/srv/disks/d.qcow2", ["loop", "/srv/disks/d.qcow2"],
        ),
        (
            LvmBacking(group="xenvg", name="d.disk"),
            "xenvg/d.disk", "/dev/xenvg/d.disk", ["xenvg", "d.disk"],
        ),
        (MIRROR, "fast/d.data", "/dev/drbd3", ["b", "a", 11000, 3, 0, None]),
        (
            RbdBacking(pool="guests", image="d.rbd"),
            "guests/d.rbd", "/dev/rbd/guests/d.rbd", ["rbd", "d.rbd"],
        ),
        (
            ExtBacking(provider="shelf", name="d.ext"),
            "shelf/d.ext", "d.ext", ["shelf", "d.ext"],
        ),
        (BlockBacking(device=LUN), LUN, LUN, ["manual", LUN]),
        (DumpBacking(export="web1", name="d"), "web1/d", "d", ["web1", "d"]),
    ],
)  # fmt: skip
def test_a_disk_has_a_name_for_messages_and_one_for_nodes_and_one_of_ganeti(
    backing: Backing, where: str, path: str, logical_id: list[object]
) -> None:
    assert backing.where == where
    assert backing.device_path(NodeId("b")) == path
    assert backing.logical_id((NodeId("b"), NodeId("a"))) == logical_id
