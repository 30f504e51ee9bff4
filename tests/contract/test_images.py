"""Putting images onto disks: those that QEMU's own program makes, and bad ones."""

import os
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noded.images.contents import Bytes
from noded.images.qcow2 import HEADER, BadImage, Qcow2
from noded.images.writing import open_image, write_image
from noded.system.execute import execute
from tests.support.https_node import run
from tests.support.programs import needs
from tests.support.raw_image import MIB, SIZE, raw_image


def converted(raw: Path, *options: str) -> Path:
    target = raw.with_suffix(".qcow2")
    argv = ("qemu-img", "convert", "-f", "raw", "-O", "qcow2", *options, str(raw), str(target))
    run(execute(*argv, timeout_s=60))
    return target


@contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def written(image: Path, disk: Path, *, is_zeros: bool) -> list[str]:
    said: list[str] = []
    with opened(image) as source, opened(disk, os.O_RDWR) as target:
        write_image(open_image(source), Bytes(target), is_zeros=is_zeros, tell=said.append)
    return said


@needs("qemu-img")
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-c",),
        ("-o", "compat=0.10"),
        ("-o", "cluster_size=512"),
        ("-c", "-o", "cluster_size=2M"),
    ],
    ids=["usual", "packed", "old", "small-clusters", "large-clusters"],
)
def test_what_qemu_writes_is_read(tmp_path: Path, options: tuple[str, ...]) -> None:
    content = raw_image(raw := tmp_path / "image.raw")
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(16 * MIB))
    written(converted(raw, *options), disk, is_zeros=True)
    assert disk.read_bytes() == content + bytes(16 * MIB - SIZE)


def test_a_raw_image_is_written_and_how_far_it_is_told(tmp_path: Path) -> None:
    content = raw_image(raw := tmp_path / "image.raw")
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(SIZE))
    said = written(raw, disk, is_zeros=True)
    assert disk.read_bytes() == content
    assert said[-1] == "100 % of 12 MiB"


@needs("qemu-img")
@pytest.mark.parametrize("kind", ["raw", "qcow2"])
def test_nothing_of_what_was_on_a_disk_before_stays(tmp_path: Path, kind: str) -> None:
    content = raw_image(raw := tmp_path / "image.raw")
    disk = tmp_path / "disk"
    disk.write_bytes(b"secret of before " * (16 * MIB // 17) + bytes(16 * MIB % 17))
    written(raw if kind == "raw" else converted(raw, "-c"), disk, is_zeros=False)
    assert disk.read_bytes() == content + bytes(16 * MIB - SIZE)


def test_an_image_that_is_larger_than_the_disk_is_refused(tmp_path: Path) -> None:
    raw_image(raw := tmp_path / "image.raw")
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(8 * MIB))
    with pytest.raises(BadImage, match="it takes 12 MiB, and the disk has 8; make it larger"):
        written(raw, disk, is_zeros=True)
    assert not any(disk.read_bytes())


@needs("qemu-img")
def test_an_image_that_depends_on_another_file_is_refused(tmp_path: Path) -> None:
    raw_image(raw := tmp_path / "image.raw")
    based = tmp_path / "based.qcow2"
    create = ("qemu-img", "create", "-f", "qcow2")
    run(execute(*create, "-F", "raw", "-b", str(raw), str(based), timeout_s=30))
    apart = tmp_path / "apart.qcow2"
    data = f"data_file={tmp_path}/data"
    run(execute(*create, "-o", data, str(apart), "12M", timeout_s=30))
    for path, why in ((based, "based on another image"), (apart, "its data is in another file")):
        with opened(path) as descriptor, pytest.raises(BadImage, match=why):
            Qcow2(descriptor)


def test_garbage_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    chance = random.Random(11)
    path = tmp_path / "bad.qcow2"
    for _ in range(300):
        fields = [chance.choice((0, 1, 16, 1 << 16, 1 << 40, (1 << 32) - 1)) for _ in range(12)]
        words = [each & 0xFFFFFFFF for each in fields]
        header = struct.pack(
            ">4sIQIIQIIQQIIQ", b"QFI\xfb", chance.choice((2, 3)), 0, 0, chance.choice((9, 16, 31)),
            fields[0], 0, words[1] % 4096, fields[2], fields[3], words[4], words[5], fields[6],
        )  # fmt: skip
        assert len(header) == HEADER.size
        path.write_bytes(header + chance.randbytes(4096))
        with opened(path) as descriptor:
            try:
                for _ in zip(range(50), Qcow2(descriptor).clusters(), strict=False):
                    pass
            except BadImage:
                continue


@pytest.mark.parametrize("at", [1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("what", ["table", "snapshots"])
def test_places_that_no_file_has_are_refused(tmp_path: Path, what: str, at: int) -> None:
    path = tmp_path / "bad.qcow2"
    table, kept = (at, 0) if what == "table" else (HEADER.size, at)
    path.write_bytes(
        HEADER.pack(b"QFI\xfb", 2, 0, 0, 16, 0, 0, 1, table, 0, 0, int(bool(kept)), kept) + bytes(8)
    )
    with (
        opened(path) as descriptor,
        pytest.raises(BadImage, match="its header makes no sense"),
    ):
        list(Qcow2(descriptor).snapshots())
