"""What a disk is made of, as it is stored, sent and shown."""

from common.messages import from_json, to_json
from common.model.disk import META_SIZE, Backing, DrbdBacking, LvmBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import DiskSpec

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


def test_backings_are_told_apart_when_they_are_read() -> None:
    for backing in (MIRROR, MIRROR.data):
        assert from_json(to_json(backing), Backing, what="a backing") == backing  # type: ignore[arg-type]


def test_secret_is_sent_and_never_shown() -> None:
    spec = DiskSpec(id=DiskId("d"), instance=InstanceId("i"), size=MiB(1), backing=MIRROR)
    assert SECRET in to_json(spec).decode()
    assert SECRET not in f"{MIRROR} {MIRROR!r} {spec} {spec!r} {[spec]}"
