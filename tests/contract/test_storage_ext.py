"""What external storage promises, kept by a real provider and by the fake."""

import fcntl
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import ExtBacking, FileBacking
from common.model.disk import Mode
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.storage.attached import AttachedDevices
from noded.storage.ext.driver import ExtStorage
from noded.storage.ext.provider import providers
from noded.storage.fake import FakeFiles
from noded.storage.fake_elsewhere import FakeElsewhere
from noded.storage.interface import Storage
from noded.system.execute import CommandFailed
from noded.system.roots_scripts import parse_parameters
from tests.support.file_rigs import DISK_A, DISK_B, WEB1, run
from tests.support.shelf import Shelf

Call = Callable[[DiskSpec], object]


class Rig(Protocol):
    """External storage, and ways to change the world behind its back."""

    @property
    def storage(self) -> Storage: ...
    def use(self, disk: DiskSpec) -> None: ...


class FakeRig:
    def __init__(self, root: Path) -> None:
        self.files = FakeFiles()
        self.storage = FakeElsewhere(self.files)

    def use(self, disk: DiskSpec) -> None:
        self.files.in_use.add(f"shelf/{disk.id}.ext")


class ShelfRig:
    def __init__(self, root: Path) -> None:
        self.place = root / "providers"
        self.shelf = Shelf(self.place)
        self.root = root
        self.opened: list[int] = []
        self.storage = self.started_anew()

    def started_anew(self) -> ExtStorage:
        """Return the driver of a noded that was started again; files stand for devices here."""
        attached = AttachedDevices(self.root / "attached")
        return ExtStorage((self.root / "none", self.place), attached, is_device=stat.S_ISREG)

    def use(self, disk: DiskSpec) -> None:
        """Lock the volume as QEMU locks its images."""
        volume = self.shelf.directory / f"volumes/{disk.id}.ext"
        self.opened.append(os.open(volume, os.O_RDONLY))
        lock = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)
        fcntl.fcntl(self.opened[-1], fcntl.F_OFD_SETLK, lock)


@pytest.fixture(params=[FakeRig, ShelfRig], ids=["fake", "provider"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    kind: Callable[[Path], Rig] = request.param
    return kind(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> ShelfRig:
    return ShelfRig(tmp_path)


def disk(*, id: DiskId = DISK_A, size: int = 8, **told: str) -> DiskSpec:
    backing = ExtBacking(provider="shelf", name=f"{id}.ext", parameters=told)
    return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)


def test_created_volume_is_found_grown_and_removed_however_often_it_is_asked(rig: Rig) -> None:
    assert run(rig.storage.find(disk())) is None
    run(rig.storage.ensure_absent(disk()))
    for _ in range(2):
        run(rig.storage.ensure_present(disk()))
    run(rig.storage.ensure_present(disk(size=4)))
    assert run(rig.storage.find(disk())) == DiskReport(id=DISK_A, instance=WEB1, size=MiB(8))
    for size in (12, 12, 4):
        run(rig.storage.grow(disk(size=size)))
    found = run(rig.storage.find(disk()))
    assert found is not None
    assert found.size == 12
    for _ in range(2):
        run(rig.storage.ensure_absent(disk()))
    assert run(rig.storage.find(disk())) is None


def test_volume_is_opened_only_while_it_is_attached(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk()))
    with pytest.raises(NodeFailure, match="cannot be opened: it is not attached"):
        rig.storage.open(disk())
    for access in (Access.SOLE, Access.SHARED, Access.SHARED, Access.SOLE):
        assert run(rig.storage.attach(disk(), access))
    if (opened := rig.storage.open(disk())) >= 0:
        os.close(opened)
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(rig.storage.ensure_absent(disk()))
    for _ in range(2):
        run(rig.storage.detach(disk()))
    with pytest.raises(NodeFailure, match="cannot be opened: it is not attached"):
        rig.storage.open(disk())


def test_volume_in_use_is_neither_detached_nor_removed(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk()))
    run(rig.storage.attach(disk(), Access.SOLE))
    rig.use(disk())
    for call in (rig.storage.detach, rig.storage.ensure_absent):
        with pytest.raises(NodeFailure, match="in use by a running guest"):
            run(call(disk()))
    assert run(rig.storage.find(disk())) is not None


def test_what_is_not_there_is_neither_attached_nor_grown(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="cannot be attached"):
        run(rig.storage.attach(disk(), Access.SOLE))
    with pytest.raises(NodeFailure, match="cannot be grown: it is not there"):
        run(rig.storage.grow(disk(size=12)))
    run(rig.storage.detach(disk()))


def test_another_kind_of_disk_is_refused(rig: Rig) -> None:
    file = replace(disk(), backing=FileBacking(path="/srv/x", shared=True))
    for call in (rig.storage.ensure_present, rig.storage.ensure_absent, rig.storage.find):
        with pytest.raises(InvalidRequest, match="is kept by no provider"):
            run(call(file))
    with pytest.raises(InvalidRequest, match="is kept by no provider"):
        rig.storage.check_place(file)


def test_a_snapshot_is_a_volume_of_its_own(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk()))
    kept = disk(id=DISK_B)
    run(rig.storage.take_snapshots([SnapshotSpec(of=disk(), kept=kept, room=MiB(0))]))
    found = run(rig.storage.find(kept))
    assert found is not None
    assert found.size == 8
    run(rig.storage.attach(kept, Access.SOLE))
    run(rig.storage.detach(kept))
    run(rig.storage.ensure_absent(kept))
    assert run(rig.storage.find(disk())) is not None


# From here on: what only a real provider can be seen to do.


def test_scripts_are_told_what_ganeti_tells_them(real: ShelfRig) -> None:
    wanted = disk(row="7")
    common = f"EXTP_ROW=7 {{}}VOL_NAME={DISK_A}.ext "
    about, sized = f"VOL_UUID={DISK_A}", f"VOL_SIZE=8 VOL_UUID={DISK_A}"
    run(real.storage.ensure_present(wanted))
    assert real.shelf.calls() == [
        "attach " + common.format("") + about,
        "create " + common.format("") + sized,
        "setinfo " + common.format(f"VOL_METADATA=originstname+{WEB1} ") + about,
    ]
    run(real.storage.grow(replace(wanted, size=MiB(12))))
    assert real.shelf.calls()[-1] == (
        f"grow EXTP_ROW=7 VOL_NAME={DISK_A}.ext VOL_NEW_SIZE=12 VOL_SIZE=8 VOL_UUID={DISK_A}"
    )
    run(real.storage.attach(wanted, Access.SHARED))
    run(real.storage.attach(wanted, Access.SOLE))
    told = real.shelf.calls()
    opened = [line for line in told if line.startswith("open ")]
    assert ["VOL_OPEN_EXCLUSIVE=False" in line for line in opened] == [True, False]
    assert ["VOL_OPEN_EXCLUSIVE=True" in line for line in opened] == [False, True]
    run(real.storage.detach(wanted))
    run(real.storage.ensure_absent(wanted))
    told = [line.partition(" ")[0] for line in real.shelf.calls()]
    assert told == ["close", "detach", "attach", "detach", "remove"]
    assert real.shelf.volumes == []


def test_a_restarted_noded_knows_what_is_attached(real: ShelfRig) -> None:
    run(real.storage.ensure_present(disk()))
    run(real.storage.attach(disk(), Access.SOLE))
    again = real.started_anew()
    os.close(again.open(disk()))
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(again.ensure_absent(disk()))
    run(again.detach(disk()))
    run(again.ensure_absent(disk()))


def test_looking_for_what_is_attached_leaves_it_attached(real: ShelfRig) -> None:
    run(real.storage.ensure_present(disk()))
    run(real.storage.attach(disk(), Access.SOLE))
    real.shelf.calls()
    run(real.storage.find(disk()))
    run(real.storage.grow(disk(size=8)))
    assert real.shelf.calls() == []


def test_guest_gets_its_volume_as_it_is_to_have_it(real: ShelfRig) -> None:
    run(real.storage.ensure_present(disk()))
    run(real.storage.attach(disk(), Access.SOLE))
    for mode, access in ((Mode.READ_WRITE, os.O_RDWR), (Mode.READ_ONLY, os.O_RDONLY)):
        opened = real.storage.open(replace(disk(), mode=mode))
        assert fcntl.fcntl(opened, fcntl.F_GETFL) & os.O_ACCMODE == access
        os.close(opened)


def test_what_a_script_complains_of_is_passed_on(real: ShelfRig) -> None:
    real.shelf.write("create", "echo the shelf is full >&2; exit 7")
    with pytest.raises(CommandFailed, match=r"status 7. It said: the shelf is full"):
        run(real.storage.ensure_present(disk()))
    real.shelf.write("remove", "echo nobody may >&2; exit 1")
    run(real.storage.ensure_absent(disk()))  # the undo: it is not there
    (real.shelf.directory / f"volumes/{DISK_A}.ext").write_bytes(b"\0" * (8 << 20))
    with pytest.raises(CommandFailed, match="nobody may"):
        run(real.storage.ensure_absent(disk()))


def test_a_parameter_that_the_provider_does_not_have_is_refused(real: ShelfRig) -> None:
    with pytest.raises(InvalidRequest, match="no parameter “colour”; it has label, row"):
        run(real.storage.ensure_present(disk(colour="red")))
    assert real.shelf.volumes == []


@pytest.mark.parametrize(
    ("prints", "says"),
    [
        ("echo", "attached no block device"),
        ("echo; echo kvm:rbd:pool/x", "attached no block device"),
        ("echo volumes", "attached no block device"),
        ("echo /nowhere/at/all", "cannot be opened: No such file"),
        ("echo /", "it is no block device"),
    ],
)
def test_what_is_no_device_is_not_taken_for_one(real: ShelfRig, prints: str, says: str) -> None:
    run(real.storage.ensure_present(disk()))
    real.shelf.write("attach", prints)
    with pytest.raises(NodeFailure, match=says):
        run(real.storage.find(disk()))
    with pytest.raises(NodeFailure, match=says):
        run(real.storage.attach(disk(), Access.SOLE))
    with pytest.raises(NodeFailure, match="it is not attached"):
        real.storage.open(disk())


@pytest.mark.parametrize("name", ["../shelf", "", ".", "..", "a/b", "-x", "a b"])
def test_no_name_leads_out_of_where_providers_are(real: ShelfRig, name: str) -> None:
    outside = replace(disk(), backing=ExtBacking(provider=name, name=f"{DISK_A}.ext"))
    with pytest.raises(InvalidRequest, match="is no name of a provider"):
        run(real.storage.find(outside))


def test_another_disks_volume_is_refused(real: ShelfRig) -> None:
    other = replace(disk(), backing=ExtBacking(provider="shelf", name=f"{DISK_B}.ext"))
    with pytest.raises(InvalidRequest, match="is not this disk's"):
        run(real.storage.ensure_absent(other))


def test_an_unknown_provider_is_told_with_where_it_was_looked_for(real: ShelfRig) -> None:
    wanted = replace(disk(), backing=ExtBacking(provider="rack", name=f"{DISK_A}.ext"))
    with pytest.raises(NodeFailure, match=r"no provider “rack”.*looked for in .*/none, .*provid"):
        run(real.storage.ensure_present(wanted))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: (path / "grow").unlink(), "has no script “grow”"),
        (lambda path: (path / "attach").chmod(0o644), "is no program that can be run"),
        (lambda path: (path / "create").chmod(0o777), "writable by nobody else"),
        (lambda path: path.chmod(0o777), "writable by nobody else"),
        (lambda path: (path / "parameters.list").unlink(), "Cannot read .*parameters.list"),
    ],
)
def test_a_provider_that_is_not_whole_or_not_roots_is_not_run(
    real: ShelfRig, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(real.shelf.directory)
    with pytest.raises(NodeFailure, match=says):
        run(real.storage.ensure_present(disk()))
    assert real.shelf.volumes == []


def test_scripts_that_may_be_missing_are_left_out(real: ShelfRig) -> None:
    (real.shelf.directory / "open").unlink()
    (real.shelf.directory / "close").unlink()
    run(real.storage.ensure_present(disk()))
    run(real.storage.attach(disk(), Access.SOLE))
    run(real.storage.detach(disk()))
    told = [line.partition(" ")[0] for line in real.shelf.calls()]
    assert told == ["attach", "create", "setinfo", "attach", "detach"]


def test_parameters_have_a_name_and_perhaps_a_description() -> None:
    assert parse_parameters("row\tin which row \n\nlabel\n  nas_ip The IP of the NAS\n") == (
        ("row", "in which row"), ("label", ""), ("nas_ip", "The IP of the NAS"),
    )  # fmt: skip


def test_the_first_provider_of_a_name_is_the_one(real: ShelfRig, tmp_path: Path) -> None:
    first = tmp_path / "first"
    Shelf(first)
    Shelf(first / "x")  # a directory below is no provider of its own
    found = list(providers((first, real.place, tmp_path / "none")))
    assert found == [first / "shelf", first / "x"]


def test_a_provider_is_told_of_snapshots_as_ganeti_tells_it(real: ShelfRig) -> None:
    run(real.storage.ensure_present(disk(row="7")))
    real.shelf.calls()
    kept = disk(id=DISK_B, row="7")
    run(real.storage.take_snapshots([SnapshotSpec(of=disk(row="7"), kept=kept, room=MiB(0))]))
    assert real.shelf.calls() == [
        f"snapshot EXTP_ROW=7 VOL_NAME={DISK_A}.ext VOL_SNAPSHOT_NAME={DISK_B}.ext "
        f"VOL_SNAPSHOT_SIZE=8 VOL_UUID={DISK_A}"
    ]


def test_a_provider_without_the_script_takes_no_snapshots(real: ShelfRig) -> None:
    run(real.storage.ensure_present(disk()))
    (real.shelf.directory / "snapshot").unlink()
    wanted = SnapshotSpec(of=disk(), kept=disk(id=DISK_B), room=MiB(0))
    assert "it has no script “snapshot”" in run(real.storage.snapshot_problem(disk()))
    with pytest.raises(NodeFailure, match="takes no snapshots on this node"):
        run(real.storage.take_snapshots([wanted]))
