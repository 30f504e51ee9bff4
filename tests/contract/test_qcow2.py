"""What disks in images of QEMU's format promise, and what keeps others from being misled by one."""

import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import FileBacking, Qcow2Backing
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskSpec
from noded.images.contents import Bytes, Layout, contents_of
from noded.storage.directories import path_of
from noded.storage.fake import FakeStorage
from noded.storage.interface import Storage
from noded.storage.qcow2 import commands
from noded.system.execute import Finished, execute
from tests.support.file_rigs import DISK_B, FakeImageRig, ImageRig, disk, run
from tests.support.images import Opened, kept_in

KIB = 1024


@pytest.fixture
def real(tmp_path: Path) -> ImageRig:
    return ImageRig(tmp_path)


class Words:
    """A word at the beginning of a disk."""

    def __init__(self, rig: FakeImageRig | ImageRig) -> None:
        self.storage: Storage = rig.storage

    def write(self, disk: DiskSpec, word: str) -> None:
        if isinstance(self.storage, FakeStorage):
            return self.storage.write(disk, word)
        command = f"write -q -P {len(word)} 0 64k"
        return qemu_io(disk, command)

    def read(self, disk: DiskSpec) -> str:
        if isinstance(self.storage, FakeStorage):
            return self.storage.read(disk)
        with closing(Opened(self.storage, disk)) as opened:
            return "x" * opened.contents.read(1, 0)[0]


def qemu(*argv: str) -> None:
    run(execute(*argv, timeout_s=60))


def qemu_io(disk: DiskSpec, command: str) -> None:
    qemu("qemu-io", "-f", "qcow2", "-c", command, path_of(disk))


@pytest.fixture(params=[FakeImageRig, ImageRig], ids=["fake", "qcow2"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> FakeImageRig | ImageRig:
    kind: Callable[[Path], FakeImageRig | ImageRig] = request.param
    return kind(tmp_path)


def test_one_goes_back_to_what_is_kept_inside_as_often_as_one_likes(
    rig: FakeImageRig | ImageRig,
) -> None:
    storage, words, snapshot = rig.storage, Words(rig), kept_in(disk(rig))
    run(storage.ensure_present(snapshot.of))
    words.write(snapshot.of, "x")
    assert run(storage.snapshot_problem(snapshot.of)) == ""
    for _ in range(2):
        run(storage.take_snapshots([snapshot]))
    for word in ("xx", "xxx"):
        words.write(snapshot.of, word)
        assert (words.read(snapshot.of), words.read(snapshot.kept)) == (word, "x")
        run(storage.roll_back(snapshot))
        assert (words.read(snapshot.of), words.read(snapshot.kept)) == ("x", "x")
    found = run(storage.find(snapshot.kept))
    assert found is not None
    assert (found.id, found.size) == (DISK_B, 8)
    assert run(storage.inventory(rig.pool)) == (path_of(snapshot.of),)


def test_what_was_kept_is_deleted_by_itself_and_with_its_disk(rig: FakeImageRig | ImageRig) -> None:
    storage, snapshot = rig.storage, kept_in(disk(rig))
    with pytest.raises(NodeFailure):
        run(storage.take_snapshots([snapshot]))
    for _ in range(2):
        run(storage.ensure_absent(snapshot.kept))
    for _ in range(2):
        run(storage.ensure_present(snapshot.of))
        with pytest.raises(NodeFailure):
            run(storage.roll_back(snapshot))
        run(storage.take_snapshots([snapshot]))
        for _ in range(2):
            run(storage.ensure_absent(snapshot.kept))
        assert run(storage.find(snapshot.kept)) is None
        run(storage.take_snapshots([snapshot]))
        run(storage.ensure_absent(snapshot.of))
        assert run(storage.find(snapshot.kept)) is None
        assert run(storage.inventory(rig.pool)) == ()


def test_an_image_takes_space_as_it_is_written_to(real: ImageRig) -> None:
    of = disk(real, size=64)
    run(real.storage.ensure_present(of))
    before = run(real.storage.find(of))
    qemu_io(of, "write -q 0 8M")
    after = run(real.storage.find(of))
    assert before is not None
    assert after is not None
    assert (before.size, after.size) == (64, 64)
    assert before.allocated is not None
    assert after.allocated is not None
    assert before.allocated < 2
    assert 8 <= after.allocated < 10


def test_what_a_guest_has_open_is_changed_by_nobody_else(real: ImageRig) -> None:
    snapshot = kept_in(disk(real))
    run(real.storage.ensure_present(snapshot.of))
    run(real.storage.take_snapshots([snapshot]))
    real.use(path_of(snapshot.of))
    for work in (
        real.storage.roll_back(snapshot),
        real.storage.ensure_absent(snapshot.kept),
        real.storage.take_snapshots([kept_in(snapshot.of, DiskId(str(DISK_B)[:-1] + "c"))]),
    ):
        with pytest.raises(NodeFailure, match="in use by a running guest"):
            run(work)
    with pytest.raises(NodeFailure, match="cannot be grown: it is in use"):
        run(real.storage.grow(replace(snapshot.of, size=MiB(16))))
    found = run(real.storage.find(snapshot.of))
    assert found is not None
    assert found.size == 8


@pytest.mark.parametrize(
    "make",
    [
        ["-b", "{secret}", "-F", "raw"],
        ["-o", "data_file={secret},data_file_raw=on"],
        [],
    ],
    ids=["backing file", "data file", "encrypted"],
)
def test_an_image_that_leads_to_another_file_is_used_by_nobody(
    real: ImageRig, tmp_path: Path, make: list[str]
) -> None:
    of, secret = disk(real), tmp_path / "secret"
    run(real.storage.ensure_present(of))
    secret.write_bytes(b"the node's own" * 1000)
    bad = tmp_path / "bad"
    options = [each.format(secret=secret) for each in make]
    qemu("qemu-img", "create", "-q", "-f", "qcow2", *options, str(bad), "8M")
    header = bytearray(bad.read_bytes())
    if not make:
        header[32:36] = (2).to_bytes(4, "big")
    Path(path_of(of)).write_bytes(header)  # as who else writes to the directory can
    with pytest.raises(NodeFailure, match="cannot be used"):
        real.storage.open(of)
    with pytest.raises(NodeFailure, match="cannot be used"):
        run(real.storage.attach(of, Access.SOLE))
    with pytest.raises(NodeFailure):
        run(real.storage.take_snapshots([kept_in(of)]))
    with pytest.raises(NodeFailure, match="cannot be used"):
        run(real.storage.roll_back(kept_in(of)))
    with pytest.raises(NodeFailure, match="cannot be used"):
        run(real.storage.ensure_absent(kept_in(of).kept))
    with pytest.raises(NodeFailure, match="image is bad"):
        run(real.storage.grow(replace(of, size=MiB(16))))
    assert "image is bad" in run(real.storage.problem(of))
    found = run(real.storage.find(of))
    assert found is not None
    assert found.problem


def test_another_name_is_no_image_of_a_disk(real: ImageRig) -> None:
    of = disk(real)
    other = replace(of, backing=Qcow2Backing(path=f"{real.directories.local}/a", shared=False))
    raw = replace(of, backing=FileBacking(path=path_of(of), shared=False))
    for wrong in (other, raw):
        with pytest.raises(InvalidRequest):
            run(real.storage.ensure_present(wrong))


def test_a_damaged_image_is_found(real: ImageRig) -> None:
    of = disk(real)
    run(real.storage.ensure_present(of))
    assert run(real.storage.problem(of)) == ""
    with Path(path_of(of)).open("r+b") as file:
        file.seek(2 * 65536)  # counts of references
        file.write(bytes(4096))
    assert "Its image is bad" in run(real.storage.problem(of))


def lock_to_write(path: str) -> int:
    """Lock an image as a guest does that writes to it; return what holds the lock."""
    descriptor = os.open(path, os.O_RDONLY)
    lock = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 101, 1, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    return descriptor


def test_a_check_goes_together_with_a_guest_that_starts(real: ImageRig) -> None:
    of = disk(real)
    run(real.storage.ensure_present(of))
    real.opened.append(lock_to_write(path_of(of)))
    qemu(*commands.check(path_of(of)))


@pytest.mark.parametrize("ended", [False, True], ids=["it runs", "it has written and ended"])
def test_an_image_that_a_guest_took_while_it_was_read_is_not_called_bad(
    real: ImageRig, *, ended: bool
) -> None:
    of = disk(real)
    run(real.storage.ensure_present(of))

    async def check(*argv: str, timeout_s: float) -> Finished:
        if ended:
            os.utime(path_of(of), ns=(0, 0))
        else:
            real.opened.append(lock_to_write(path_of(of)))
        return await execute("false", timeout_s=timeout_s)

    real.images._run = check
    assert run(real.storage.problem(of)) == ""


def model(seed: int, size: int) -> Iterator[tuple[str, int, int]]:
    """Yield what is done to a disk: what, where, how much."""
    random = Random(seed)
    for _ in range(40):
        begin = random.randrange(size)
        length = random.randrange(1, min(300 * KIB, size - begin) + 1)
        yield random.choice(["write", "zeros", "erase"]), begin, length


@pytest.mark.parametrize("seed", range(3))
def test_what_is_filled_from_outside_is_what_qemu_reads(
    real: ImageRig, tmp_path: Path, seed: int
) -> None:
    of, size = disk(real, size=4), 4 << 20
    run(real.storage.ensure_present(of))
    expected, random = bytearray(size), Random(seed)
    with closing(Opened(real.storage, of)) as opened:
        for what, begin, length in model(seed, size):
            data = random.randbytes(length) if what == "write" else bytes(length)
            match what:
                case "write":
                    opened.contents.write(data, begin)
                case "zeros":
                    opened.contents.write_zeros(length, begin)
                case _:
                    opened.contents.erase(length, begin)
            expected[begin : begin + length] = data
        opened.contents.sync()
        read = b"".join(opened.contents.read(64 * KIB + 7, at) for at in range(0, 1 << 20, 65543))
        assert read == bytes(expected[: len(read)])
    raw = tmp_path / "raw"
    qemu("qemu-img", "convert", "-f", "qcow2", "-O", "raw", path_of(of), str(raw))
    assert raw.read_bytes() == bytes(expected)
    assert run(real.storage.problem(of)) == ""


def test_what_qemu_has_written_is_read_from_outside_holes_and_all(real: ImageRig) -> None:
    of = disk(real, size=8)
    run(real.storage.ensure_present(of))
    for command in ("write -q -P 7 1M 100k", "write -q -z -u 1M 32k", "discard -q 4M 1M"):
        qemu_io(of, command)
    with closing(Opened(real.storage, of)) as opened:
        contents = opened.contents
        assert contents.next_data(0, contents.size) in range(1 << 20, (1 << 20) + 64 * KIB + 1)
        assert contents.next_data(2 << 20, contents.size) == contents.size
        assert contents.read(100 * KIB, 1 << 20) == bytes(32 * KIB) + b"\7" * (68 * KIB)
        with pytest.raises(OSError, match="ends before its end"):
            contents.read(2, contents.size - 1)


def test_what_snapshots_refer_to_is_not_written_from_outside(real: ImageRig) -> None:
    snapshot = kept_in(disk(real))
    run(real.storage.ensure_present(snapshot.of))
    words = Words(real)
    words.write(snapshot.of, "x")
    run(real.storage.take_snapshots([snapshot]))
    with closing(Opened(real.storage, snapshot.of)) as opened:
        with pytest.raises(OSError, match="or it keeps snapshots"):
            opened.contents.write(b"y", 0)
        for work in (opened.contents.write_zeros, opened.contents.erase):
            with pytest.raises(OSError, match="or it keeps snapshots"):
                work(1, 0)
    assert words.read(snapshot.kept) == "x"


def test_a_raw_disk_is_never_taken_for_an_image(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    qemu("qemu-img", "create", "-q", "-f", "qcow2", str(path), "8M")
    with path.open("rb") as file:
        contents = contents_of(file.fileno(), Layout())
        assert isinstance(contents, Bytes)
        assert contents.read(4, 0) == b"QFI\xfb"


def test_a_node_without_qemu_img_says_what_to_install(
    real: ImageRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(NodeFailure, match="install the package qemu-utils"):
        run(real.storage.ensure_present(disk(real)))
    assert run(real.storage.inventory(real.pool)) == ()
