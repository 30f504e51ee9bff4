"""What every storage promises, kept by the real one and by the fake."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.names import MiB
from common.noderpc.disks import Access, DiskReport
from tests.support.file_rigs import (
    DISK_A,
    DISK_B,
    WEB1,
    FakeGlusterRig,
    FakeImageRig,
    FakeRig,
    FileRig,
    GlusterRig,
    ImageRig,
    Rig,
    disk,
    run,
)
from tests.support.volumes import ANOTHER, FakePlainRig, LvmRig

PETABYTE = MiB(1 << 30)
RIGS = {
    "fake": FakeRig, "file": FileRig, "fake gluster": FakeGlusterRig, "gluster": GlusterRig,
    "fake plain": FakePlainRig, "plain": LvmRig,
    "fake qcow2": FakeImageRig, "qcow2": ImageRig,
}  # fmt: skip


@pytest.fixture(params=list(RIGS.values()), ids=list(RIGS))
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    kind: Callable[[Path], Rig] = request.param
    made = kind(tmp_path)
    yield made
    if isinstance(made, LvmRig):
        made.close()


def test_created_disk_is_found(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig)))
    found = run(rig.storage.find(disk(rig)))
    assert found is not None
    assert replace(found, allocated=None, spindles=None) == DiskReport(
        id=DISK_A, instance=WEB1, size=MiB(8)
    )


def test_creation_may_be_repeated(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.ensure_present(disk(rig)))
    assert run(rig.storage.inventory(rig.pool)) == (disk(rig).backing.paths[0],)


def test_larger_disk_of_the_same_identity_stays_as_it_is(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig, size=8)))
    run(rig.storage.ensure_present(disk(rig, size=4)))
    found = run(rig.storage.find(disk(rig, size=4)))
    assert found is not None
    assert found.size == 8


def test_disk_grows_and_never_shrinks(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig, size=8)))
    for size in (12, 12, 4):
        run(rig.storage.grow(disk(rig, size=size)))
        found = run(rig.storage.find(disk(rig, size=12)))
        assert found is not None
        assert replace(found, allocated=None, spindles=None) == DiskReport(
            id=DISK_A, instance=WEB1, size=MiB(12)
        )


def test_attached_disk_grows(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.attach(disk(rig), Access.SOLE))
    run(rig.storage.grow(disk(rig, size=12)))
    found = run(rig.storage.find(disk(rig)))
    assert found is not None
    assert found.size == 12


def test_growth_beyond_the_space_leaves_the_disk_as_it_is(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig)))
    with pytest.raises(NodeFailure, match=r"no space to grow the disk .* are free") as caught:
        run(rig.storage.grow(disk(rig, size=PETABYTE)))
    assert caught.value.detail["free_mib"] < PETABYTE
    found = run(rig.storage.find(disk(rig)))
    assert found is not None
    assert found.size == 8


def test_what_is_not_there_does_not_grow(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="cannot be grown"):
        run(rig.storage.grow(disk(rig)))
    assert run(rig.storage.inventory(rig.pool)) == ()
    run(rig.storage.ensure_present(disk(rig, id=DISK_A)))
    with pytest.raises(NodeFailure, match="cannot be grown"):
        run(rig.storage.grow(disk(rig, id=DISK_B, size=12)))
    found = run(rig.storage.find(disk(rig, id=DISK_A)))
    assert found is not None
    assert found.size == 8


def test_absent_disk_is_not_found(rig: Rig) -> None:
    assert run(rig.storage.find(disk(rig))) is None


def test_deletion_may_be_repeated(rig: Rig) -> None:
    run(rig.storage.ensure_absent(disk(rig)))
    run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.ensure_absent(disk(rig)))
    run(rig.storage.ensure_absent(disk(rig)))
    assert run(rig.storage.find(disk(rig))) is None
    assert run(rig.storage.inventory(rig.pool)) == ()


def test_another_disk_in_the_place_is_a_conflict_and_survives(rig: Rig) -> None:
    is_there = rig.occupy(disk(rig))
    with pytest.raises(Conflict, match=ANOTHER):
        run(rig.storage.ensure_present(disk(rig)))
    assert run(rig.storage.find(disk(rig))) is None
    run(rig.storage.ensure_absent(disk(rig)))  # the undo of the failed creation
    assert is_there()


def test_disk_in_use_is_not_deleted(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig)))
    rig.use(disk(rig).backing.paths[0])
    with pytest.raises(NodeFailure, match="in use"):
        run(rig.storage.ensure_absent(disk(rig)))
    assert run(rig.storage.find(disk(rig))) is not None


def test_attached_disk_has_a_path_and_may_be_attached_again_for_others_too(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk(rig)))
    ways = (Access.SOLE, Access.SHARED, Access.SHARED, Access.SOLE)
    paths = {run(rig.storage.attach(disk(rig), access)) for access in ways}
    assert len(paths) == 1
    assert all(paths)
    run(rig.storage.detach(disk(rig)))
    run(rig.storage.ensure_absent(disk(rig)))


def test_what_is_not_there_is_not_attached(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match=r"cannot be (opened|attached)"):
        run(rig.storage.attach(disk(rig), Access.SOLE))
    run(rig.storage.ensure_present(disk(rig, id=DISK_A)))
    with pytest.raises(NodeFailure, match=r"cannot be (used|attached|opened)"):
        run(rig.storage.attach(disk(rig, id=DISK_B), Access.SOLE))


def test_detaching_may_be_repeated(rig: Rig) -> None:
    run(rig.storage.detach(disk(rig)))
    run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.detach(disk(rig)))
    run(rig.storage.attach(disk(rig), Access.SOLE))
    run(rig.storage.detach(disk(rig)))
    run(rig.storage.detach(disk(rig)))
    assert run(rig.storage.find(disk(rig))) is not None


def test_too_large_a_disk_leaves_nothing(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match=r"no space for a disk of .* are free") as caught:
        run(rig.storage.ensure_present(disk(rig, size=PETABYTE)))
    assert caught.value.detail["free_mib"] < PETABYTE
    assert run(rig.storage.inventory(rig.pool)) == ()


def test_space_is_told(rig: Rig) -> None:
    space = run(rig.storage.space(rig.pool))
    assert space.usable
    assert 0 < space.free <= space.total


def test_fake_disks_take_space(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path)
    run(rig.storage.ensure_present(disk(rig, size=512)))
    space = run(rig.storage.space(rig.pool))
    assert space.total - space.free == 512


def test_missing_directory_is_told_and_not_made(rig: Rig) -> None:
    rig.unmount()
    with pytest.raises(NodeFailure, match=r"does not exist on this node; (create|make)"):
        run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.ensure_absent(disk(rig)))  # the undo
    assert run(rig.storage.find(disk(rig))) is None
    assert run(rig.storage.inventory(rig.pool)) == ()
    space = run(rig.storage.space(rig.pool))
    assert not space.usable
    assert space.problem
