"""Where disks may be that are files: below the directories for them, and nowhere else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.noderpc.disks import Access
from noded.storage.directories import Directories, names_below, path_of
from tests.support.disks import directory
from tests.support.file_rigs import DISK_B, FakeRig, FileRig, GlusterRig, at, disk, mounted, run


@pytest.fixture(params=[FakeRig, FileRig], ids=["fake", "file"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FakeRig | FileRig:
    """What keeps files, or pretends to."""
    kind: Callable[[Path], FakeRig | FileRig] = request.param
    return kind(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> FileRig:
    return FileRig(tmp_path)


def test_place_outside_is_refused(files: FakeRig | FileRig, tmp_path: Path) -> None:
    local = files.directories.local
    for path in (
        f"{tmp_path}/elsewhere/disk0", f"{local}/../elsewhere/disk0", f"{local}/a/../../x",
        f"{local}", f"{local}/", f"{local}//disk0", f"{local}-more/disk0", "disk0", "",
        f"{local}/.hidden", f"{local}/a\0b", f"{local}/a\nb", "/etc/passwd",
    ):  # fmt: skip
        storage = files.storage
        for call in (
            storage.ensure_present, storage.ensure_absent, storage.grow, storage.find,
            storage.detach,
        ):  # fmt: skip
            with pytest.raises(InvalidRequest, match="is not below"):
                run(call(at(path)))
        with pytest.raises(InvalidRequest, match="is not below"):
            run(storage.attach(at(path), Access.SOLE))
        with pytest.raises(InvalidRequest, match="is not below"):
            storage.open(at(path))
        with pytest.raises(InvalidRequest, match="is not below"):
            files.storage.check_place(at(path))
    with pytest.raises(InvalidRequest, match="no directory for disks"):
        run(files.storage.inventory(directory("/etc")))


def test_a_directory_for_several_instances_stays_when_one_of_them_goes(real: FileRig) -> None:
    """Another may be about to make its own there."""
    top = Path(real.directories.local)
    spec = at(f"{top}/fast/web1/disk0")
    run(real.storage.ensure_present(spec))
    run(real.storage.ensure_present(spec))
    assert run(real.storage.inventory(directory(str(top)))) == (path_of(spec),)
    run(real.storage.ensure_absent(spec))
    assert [*top.rglob("*")] == [top / "fast"]
    run(real.storage.ensure_absent(spec))
    run(real.storage.ensure_present(at(f"{top}/web1/disk0")))
    run(real.storage.ensure_absent(at(f"{top}/web1/disk0")))
    assert [*top.rglob("*")] == [top / "fast"]


def test_shared_disks_have_a_directory_of_their_own(files: FakeRig | FileRig) -> None:
    with pytest.raises(InvalidRequest, match="shared file storage"):
        run(files.storage.ensure_present(at(path_of(disk(files)), shared=True)))
    path = f"{files.directories.shared}/disk0"
    files.storage.check_place(at(path, shared=True))
    run(files.storage.ensure_present(at(path, shared=True)))
    assert run(files.storage.inventory(directory(files.directories.shared))) == (path,)
    assert run(files.storage.inventory(directory(files.directories.local))) == ()


def test_storage_without_a_directory_is_refused(files: FakeRig | FileRig) -> None:
    spec = disk(files)
    files.directories = Directories()
    with pytest.raises(InvalidRequest, match="no directory for file storage"):
        run(files.storage.ensure_present(spec))
    with pytest.raises(InvalidRequest):
        run(files.storage.inventory(directory("")))


def test_a_directory_without_the_volume_is_no_place_for_its_disks(tmp_path: Path) -> None:
    rig = GlusterRig(tmp_path)
    run(rig.storage.ensure_present(disk(rig)))
    rig.mounts = mounted("/elsewhere", "127.0.0.1:/gv0")
    how = r"mount -t glusterfs -o server-port=24007 127.0.0.1:/gv0 /.*a volume”"
    for call in (rig.storage.ensure_present, rig.storage.ensure_absent, rig.storage.find):
        with pytest.raises(NodeFailure, match=f"No Gluster volume is mounted at .*{how}"):
            run(call(disk(rig)))
    with pytest.raises(NodeFailure, match="No Gluster volume is mounted"):
        rig.storage.open(disk(rig))
    space = run(rig.storage.space(rig.pool))
    assert (space.usable, "No Gluster volume" in space.problem) == (False, True)
    assert run(rig.storage.inventory(rig.pool)) == ()


@pytest.mark.parametrize("source", ["127.0.0.1:/gv1", "127.0.0.1:gv1", "server:24007:/gv1"])
def test_another_volume_is_no_place_for_gluster_disks(tmp_path: Path, source: str) -> None:
    rig = GlusterRig(tmp_path)
    rig.mounts = mounted(rig.directories.gluster, source)
    with pytest.raises(NodeFailure, match=r"volume “gv1” is mounted at .*, and not “gv0”"):
        run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.ensure_present(replace(disk(rig), parameters={"volume": "gv1"})))
    rig.mounts += mounted(rig.directories.gluster, "tmpfs", "tmpfs")  # and hides the volume
    with pytest.raises(NodeFailure, match="No Gluster volume is mounted"):
        run(rig.storage.find(replace(disk(rig), parameters={"volume": "gv1"})))


def test_paths_below_a_root() -> None:
    assert names_below("/srv/x", "/srv/x/a/b") == ("a", "b")
    assert names_below("/srv/x/", "/srv/x/a") == ("a",)
    for root in ("", "/", "//", "srv/x", "."):
        assert names_below(root, "/srv/x/a") == ()


def test_directories_come_and_go_with_their_disks(real: FileRig) -> None:
    first, second = disk(real), disk(real, "web1/disk1", id=DISK_B)
    run(real.storage.ensure_present(first))
    run(real.storage.ensure_present(second))
    run(real.storage.ensure_absent(first))
    run(real.storage.ensure_absent(second))
    assert list(Path(real.directories.local).iterdir()) == []


def test_symbolic_links_lead_nowhere(real: FileRig, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "disk0").write_bytes(b"precious")
    (Path(real.directories.local) / "web1").symlink_to(outside)
    for call in (real.storage.ensure_present, real.storage.ensure_absent, real.storage.find):
        with pytest.raises(InvalidRequest, match="symbolic link"):
            run(call(disk(real)))
    (Path(real.directories.local) / "direct").symlink_to(outside / "disk0")
    with pytest.raises(Conflict, match="no regular file"):
        run(real.storage.ensure_present(disk(real, "direct")))
    run(real.storage.ensure_absent(disk(real, "direct")))
    assert [path.read_bytes() for path in outside.iterdir()] == [b"precious"]


def test_allowed_directory_may_be_a_link(real: FileRig, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    Path(real.directories.local).rmdir()
    Path(real.directories.local).symlink_to(tmp_path / "large")
    run(real.storage.ensure_present(disk(real)))
    assert (tmp_path / "large/web1/disk0").exists()
