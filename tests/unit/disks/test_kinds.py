"""What the coordinator decides about disks of each template."""

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.model.backing import BlockBacking, ExtBacking, FileBacking, LvmBacking, RbdBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.node import NodeRef
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.stamp import Stamp
from common.model.template import DiskTemplate
from common.names import ClusterId, ClusterName, DiskId, InstanceId, MiB, NodeId, NodeName
from common.noderpc.disks import Access
from coordinator.disks.devices import Devices
from coordinator.disks.holding import Hold
from coordinator.disks.kind import DiskKind, NewDisk
from coordinator.disks.kinds import KINDS, enabled_kinds, kind_of, pools_of, shared_pools
from coordinator.disks.space import taken_by
from coordinator.disks.wish import DiskWish
from coordinator.state.config import Config
from coordinator.state.state import state_of
from tests.support.disks import directory

CLUSTER = Cluster(
    uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
    shared_file_storage_dir="/srv/shared",
)  # fmt: skip
ALL_SET_UP = replace(
    CLUSTER, file_storage_dir="/srv/files", gluster_storage_dir="/srv/gluster",
    volume_group_name="gantry",
)  # fmt: skip
INSTANCE, DISK = InstanceId("instance"), DiskId("disk")
NEW = NewDisk(INSTANCE, DISK, (), Devices((), lambda: "secret"))
ALPHA, BETA = (NodeRef(uuid=NodeId(name), name=NodeName(name)) for name in ("alpha", "beta"))


def config(*items: Cluster | Disk) -> Config:
    return state_of(items, Stamp()).config


kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.template)


def test_a_disk_is_below_the_directory_of_its_template() -> None:
    backing = kind_of(DiskTemplate.SHAREDFILE).new_backing(CLUSTER, NEW)
    assert backing == FileBacking(path="/srv/shared/instance/disk.raw", shared=True)
    with pytest.raises(InvalidRequest, match=r"no directory for file disks.*--file-storage-dir"):
        kind_of(DiskTemplate.FILE).new_backing(CLUSTER, NEW)
    with pytest.raises(InvalidRequest, match="has no disks"):
        kind_of(DiskTemplate.DISKLESS).new_backing(CLUSTER, NEW)


def test_a_file_is_in_the_directory_that_is_asked_for_and_says_so_itself() -> None:
    kind = kind_of(DiskTemplate.SHAREDFILE)
    for asked, told in (("fast", "fast"), ("fast/web/", "fast/web"), ("", "")):
        kind.check_wish(DiskWish(directory=asked))
        backing = kind.new_backing(CLUSTER, NEW._replace(wish=DiskWish(directory=asked)))
        assert backing.where == "/".join(filter(None, ("/srv/shared", told, "instance/disk.raw")))
        assert kind.wish_of(CLUSTER, backing) == DiskWish(directory=told, format="raw")
        moved = replace(CLUSTER, shared_file_storage_dir="/srv/share")
        assert kind.wish_of(moved, backing).directory == ""


@pytest.mark.parametrize(
    "asked",
    ["/srv/shared/fast", "..", "fast/../..", "fast/.hidden", "./fast", "fast//web", "/", "a b",
     "fast\n", "a\0b", "é", "x" * 101, "/".join("abcdefghi")],
)  # fmt: skip
def test_no_directory_leads_elsewhere(asked: str) -> None:
    for template in (DiskTemplate.FILE, DiskTemplate.SHAREDFILE):
        with pytest.raises(InvalidRequest, match="is no directory below the cluster's"):
            kind_of(template).check_wish(DiskWish(directory=asked))


@kinds
def test_a_kind_keeps_to_its_traits(kind: DiskKind) -> None:
    assert KINDS[kind.template] is kind
    holders = kind.holders([ALPHA.uuid, BETA.uuid])
    assert len(holders) == kind.traits.holders
    assert (kind.may_move_to([ALPHA.uuid, BETA.uuid]) is None) == kind.traits.is_external
    with pytest.raises(InvalidRequest):
        kind.check_number(() if kind.traits.has_disks else ("a disk",))
    kind.check_number(("a disk",) if kind.traits.has_disks else ())


@kinds
def test_wishes_that_mean_nothing_to_a_kind_are_refused(kind: DiskKind) -> None:
    for wish in (
        DiskWish(vg="x"),
        DiskWish(metavg="x"),
        DiskWish(adopt="x"),
        DiskWish(provider="x"),
        DiskWish(directory="x"),
    ):
        (name,) = wish.given()
        if name not in kind.heeds:
            with pytest.raises(InvalidRequest, match=f"template {kind.template} take no “{name}”"):
                kind.check_wish(wish)
    if not kind.heeds:
        kind.check_wish(DiskWish())


@pytest.mark.parametrize(
    ("template", "wish"),
    [
        (DiskTemplate.PLAIN, DiskWish(vg="fast")),
        (DiskTemplate.DRBD, DiskWish(vg="fast", metavg="faster")),
        (DiskTemplate.EXT, DiskWish(provider="shelf", provider_parameters={"row": "2"})),
    ],
)
def test_what_was_wished_of_a_disk_is_wished_again_elsewhere(
    template: DiskTemplate, wish: DiskWish
) -> None:
    kind = kind_of(template)
    backing = kind.new_backing(ALL_SET_UP, NEW._replace(wish=wish))
    assert kind.wish_of(ALL_SET_UP, backing) == wish


def test_an_image_of_ceph_is_in_the_pool_that_its_group_or_else_the_cluster_names() -> None:
    rbd = kind_of(DiskTemplate.RBD)
    cluster = replace(CLUSTER, diskparams={"rbd": {"pool": "fast", "user-id": "gantry"}})
    backing = rbd.new_backing(cluster, NEW)
    assert backing == RbdBacking(pool="fast", image="disk.rbd", user="gantry")
    slow = rbd.new_backing(cluster, NEW._replace(parameters={"pool": "slow"}))
    assert slow == RbdBacking(pool="slow", image="disk.rbd", user="gantry")
    assert rbd.new_backing(CLUSTER, NEW) == RbdBacking(pool="rbd", image="disk.rbd")


def test_every_template_of_ganeti_can_be_made() -> None:
    assert set(KINDS) == set(DiskTemplate)


def test_a_device_is_adopted_by_a_name_of_its_own_and_once() -> None:
    block = kind_of(DiskTemplate.BLOCKDEV)
    for given in ("", "/dev/sda", "lun7"):
        with pytest.raises(InvalidRequest, match=r"which device becomes .*adopt=/dev/disk/by-id"):
            block.check_wish(DiskWish(adopt=given))
    wish = DiskWish(adopt="/dev/disk/by-id/lun7")
    block.check_wish(wish)
    devices = Devices((), lambda: "secret")
    new = NEW._replace(wish=wish, devices=devices)
    backing = block.new_backing(CLUSTER, new)
    assert backing == BlockBacking(device=wish.adopt)
    with pytest.raises(Conflict, match="lun7 is a disk already"):
        block.new_backing(CLUSTER, new)
    stored = Disk(uuid=DISK, size=MiB(8), backing=backing)
    with pytest.raises(Conflict, match="lun7 is a disk already"):
        Devices((stored,), lambda: "secret").adopted(wish.adopt)


def test_external_storage_wants_a_provider_and_words_that_can_be_told_to_it() -> None:
    ext = kind_of(DiskTemplate.EXT)
    with pytest.raises(InvalidRequest, match=r"which provider .*provider=NAME"):
        ext.check_wish(DiskWish())
    for told in ({"a=b": "x"}, {"": "x"}, {"7": "x"}, {"x": "\0"}, {"x": "y" * 1025}):
        with pytest.raises(InvalidRequest, match="cannot be told to a provider"):
            ext.check_wish(DiskWish(provider="shelf", provider_parameters=told))
    wish = DiskWish(provider="shelf", provider_parameters={"row": "7"})
    ext.check_wish(wish)
    backing = ext.new_backing(CLUSTER, NEW._replace(wish=wish))
    assert backing == ExtBacking(provider="shelf", name="disk.ext", parameters={"row": "7"})


@kinds
def test_a_pool_is_of_the_sort_that_the_traits_name(kind: DiskKind) -> None:
    pool = kind.pool(ALL_SET_UP)
    assert (pool.kind if pool else None) is kind.traits.space
    assert pool is None or kind.unusable, "verify has to have a word for it"


def test_pools_are_told_in_the_order_in_which_templates_are_preferred() -> None:
    cluster = Cluster(
        uuid=ClusterId("c"), name=ClusterName("test"), master=NodeId("alpha"),
        file_storage_dir="/srv/files", shared_file_storage_dir="/srv/shared",
        enabled_disk_templates=("file", "sharedfile", "diskless"),
    )  # fmt: skip
    assert [kind.template for kind in enabled_kinds(cluster)] == ["file", "sharedfile", "diskless"]
    assert pools_of(config(cluster)) == (directory("/srv/files"), directory("/srv/shared"))
    assert shared_pools(cluster) == {directory("/srv/shared")}
    assert pools_of(config(CLUSTER)) == (directory("/srv/shared"),)


def test_pools_that_only_disks_name_are_told_as_well() -> None:
    backing = LvmBacking(group="fast", name="disk.disk")
    disk = Disk(uuid=DISK, size=MiB(8), backing=backing)
    fast = Pool(kind=PoolKind.VOLUME_GROUP, name="fast")
    assert pools_of(config(CLUSTER, disk)) == (directory("/srv/shared"), fast)


def test_disks_take_space_of_the_pool_that_they_are_in() -> None:
    def disk(path: str, size: int) -> Disk:
        return Disk(uuid=DISK, size=MiB(size), backing=FileBacking(path=path, shared=True))

    disks = (disk("/srv/shared/a", 8), disk("/srv/shared-no-more/b", 16))
    assert taken_by(disks, directory("/srv/shared")) == 8
    assert taken_by(disks, Pool(kind=PoolKind.VOLUME_GROUP, name="/srv/shared")) == 0


@kinds
def test_handovers_lead_from_rest_to_running_and_to_the_other_node(
    kind: DiskKind,
) -> None:
    homes = (ALPHA, BETA) if kind.traits.is_mirrored else (ALPHA,)
    start, stop = kind.before_start(homes), kind.after_stop(homes, was_running=True)
    share, leave = kind.before_move(ALPHA, BETA), kind.after_move(BETA, [ALPHA])
    follows = Access.STANDBY if kind.traits.is_mirrored else None
    running = {"alpha": Access.SOLE} | ({"beta": follows} if follows else {})
    at_rest = dict.fromkeys(running)
    assert _after(start.do) == _after(stop.undo) == running
    assert _after(stop.do) == _after(start.undo) == at_rest
    assert _after(share.do) == {"alpha": Access.SHARED, "beta": Access.SHARED}
    assert _after((*share.do, *share.undo)) == {"alpha": Access.SOLE, "beta": follows}
    assert _after((*share.do, *leave.do)) == {"alpha": follows, "beta": Access.SOLE}
    assert not leave.undo


@kinds
def test_nobody_has_disks_alone_while_another_has_them(kind: DiskKind) -> None:
    share, leave = kind.before_move(ALPHA, BETA), kind.after_move(BETA, [ALPHA])
    fail = kind.before_failover((ALPHA, BETA), was_running=True)
    start = kind.after_failover((BETA, ALPHA) if kind.traits.is_mirrored else (BETA,))
    for path in (
        (*share.do, *share.undo),
        (*share.do, *leave.do),
        (*fail.do, *fail.undo),
        (*fail.do, *start.do),
    ):
        has: dict[str, Access | None] = {"alpha": Access.SOLE}
        for each in path:
            has[each.node.name] = each.access
            holders = [access for access in has.values() if access not in (None, Access.STANDBY)]
            assert len(holders) == 1 or Access.SOLE not in holders


def _after(holds: tuple[Hold, ...]) -> dict[str, Access | None]:
    return {each.node.name: each.access for each in holds}
