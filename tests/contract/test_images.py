"""Putting images onto disks: made by QEMU's own program, fetched over HTTP, written by a script."""

import hashlib
import os
import random
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.disk import Qcow2Backing
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.operating_systems import Script, ScriptOrder, ScriptReport
from noded.images.contents import Bytes
from noded.images.definition import image_definition
from noded.images.qcow2 import HEADER, BadImage, Qcow2
from noded.images.writing import open_image, write_image
from noded.operating_systems.driver import Places, ProcessOsDriver
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from noded.storage.interface import Storage
from noded.storage.qcow2.driver import Qcow2Storage
from noded.storage.qcow2.guests import NobodyHasThem
from noded.system.execute import execute
from tests.support.disks import file_disk
from tests.support.https_node import run
from tests.support.programs import needs
from tests.support.script_rigs import DISK, RUN, ended, order_for

MIB = 1 << 20
SIZE = 12 * MIB
SEED_DISK = "dddddddd-0000-4000-8000-00000000000b"


def raw_image(path: Path) -> bytes:
    """Make an image with zeros, text and noise at odd places; return what is in it."""
    content = bytearray(SIZE)
    noise = random.Random(7).randbytes(3 * MIB + 4711)
    content[5 * MIB + 17 : 5 * MIB + 17 + len(noise)] = noise
    text = b"all work and no play " * 60_000
    content[MIB : MIB + len(text)] = text
    content[-100:] = b"the end".ljust(100)
    path.write_bytes(content)
    return bytes(content)


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


# As a script of the operating system “image”


def in_image(disk: DiskSpec) -> DiskSpec:
    """Return the same disk in a file of QEMU's format."""
    path = Path(disk.backing.where).parent / f"{disk.id}.qcow2"
    return replace(disk, backing=Qcow2Backing(path=str(path), shared=False))


class Node:
    def __init__(self, root: Path, *, is_qcow2: bool = False) -> None:
        self.root, self.images, self.cache = root, root / "images", root / "cache"
        self.images.mkdir()
        self.rules = root / "guests"
        self.rules.write_text(f"image {self.images}\n")
        directories = Directories(local=str(root / "disks"))
        (root / "disks").mkdir()
        files = FileStorage(lambda: directories)
        self.storage: Storage = files
        self.disks = (
            file_disk(DISK, f"{root}/disks/disk", size=16),
            file_disk(SEED_DISK, f"{root}/disks/seed", size=4),
        )
        if is_qcow2:
            self.storage = Qcow2Storage(lambda: directories, files, NobodyHasThem())
            self.disks = (in_image(self.disks[0]), in_image(self.disks[1]))
        places = Places(
            search_path=(), runs=root / "run", logs=root / "logs",
            built_in=(image_definition(self.cache, self.rules),),
        )  # fmt: skip
        self.driver = ProcessOsDriver(places, self.storage.open)
        for part in (root, *root.parents):  # an image has to be readable for nobody in particular
            if part.stat().st_uid == os.geteuid():
                part.chmod(part.stat().st_mode | 0o011)

    def order(self, *, seed: bool = True, **parameters: str) -> ScriptOrder:
        order = order_for(self.disks[0], Script.CREATE, os="image")
        disks = self.disks if seed else self.disks[:1]
        subject = replace(order.subject, disks=disks, disk_names=("", "cidata"))
        return replace(order, subject=subject, parameters=parameters)

    def install(self, *, seed: bool = True, **parameters: str) -> tuple[str, ScriptReport]:
        order = self.order(seed=seed, **parameters)

        async def story() -> tuple[str, ScriptReport]:
            for disk in order.subject.disks:
                await self.storage.ensure_present(disk)
                await self.storage.attach(disk, Access.SOLE)
            await self.driver.check(order)
            await self.driver.begin(RUN, order)
            told = await ended(self.driver, RUN)
            await self.driver.end(RUN)
            return told

        return run(story())

    def content(self, disk: str) -> bytes:
        return (self.root / "disks" / disk).read_bytes()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    return Node(tmp_path)


class Web:
    """A server of one file that counts how often it is asked."""

    def __init__(self, content: bytes) -> None:
        self.asked = 0
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked += 1
                self.send_response(200 if self.path == "/image" else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/image"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@contextmanager
def served(content: bytes) -> Iterator[Web]:
    web = Web(content)
    try:
        yield web
    finally:
        web.server.shutdown()
        web.server.server_close()


@needs("mtype")
def test_a_file_becomes_a_disk_and_the_guest_is_told_its_name_and_key(node: Node) -> None:
    content = raw_image(node.images / "debian.raw")
    path = str(node.images / "debian.raw")
    said, report = node.install(file=path, user="jane", ssh_key="ssh-rsa AAAA")
    assert report.problem == "", said
    assert node.content("disk") == content + bytes(16 * MIB - SIZE)
    seed = node.root / "disks/seed"
    user = run(execute("mtype", "-i", str(seed), "::user-data", timeout_s=20)).stdout
    assert b"ssh-rsa AAAA" in user
    meta = run(execute("mtype", "-i", str(seed), "::meta-data", timeout_s=20)).stdout
    assert b'"local-hostname": "web1"' in meta


@needs("mtype")
@needs("qemu-img")
def test_an_image_is_put_on_a_disk_that_is_kept_in_one(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("scripts get names of processes of their own, for which it takes root")
    node = Node(tmp_path, is_qcow2=True)
    content = raw_image(node.images / "debian.raw")
    said, report = node.install(file=str(node.images / "debian.raw"), user="jane")
    assert report.problem == "", said
    for number, disk in enumerate(node.disks):
        raw = node.root / f"{number}.raw"
        convert = ("qemu-img", "convert", "-f", "qcow2", "-O", "raw", disk.backing.where, str(raw))
        run(execute(*convert, timeout_s=30))
    assert (node.root / "0.raw").read_bytes() == content + bytes(16 * MIB - SIZE)
    user = run(execute("mtype", "-i", str(node.root / "1.raw"), "::user-data", timeout_s=20)).stdout
    assert b"jane" in user


def test_an_image_is_fetched_once(node: Node) -> None:
    content = raw_image(node.root / "raw")
    digest = hashlib.sha256(content).hexdigest()
    with served(content) as web:
        first, _ = node.install(seed=False, url=web.url, sha256=digest)
        said, report = node.install(seed=False, url=web.url, sha256=digest)
        assert report.problem == "", (first, said)
        assert web.asked == 1
    assert "is here already" in said
    assert node.content("disk")[:SIZE] == content
    assert [path.name for path in node.cache.iterdir()] == [digest]


def test_another_image_than_the_sum_says_is_not_written(node: Node) -> None:
    with served(b"evil".ljust(SIZE)) as web:
        _, report = node.install(seed=False, url=web.url, sha256="0" * 64)
    assert "is another image: its SHA-256 is" in report.problem
    assert not any(node.content("disk"))
    assert not any(node.cache.iterdir())


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({}, "with one of url and file"),
        ({"url": "http://h/x", "file": "/srv/x"}, "with one of url and file"),
        ({"url": "http://h/x"}, "an image from a url needs its sha256"),
        ({"url": "file:///etc/shadow", "sha256": "0" * 64}, "url begins with http or https"),
        ({"file": "/etc/shadow"}, "may not be given to guests here"),
        ({"file": "IMAGES/../guests"}, "may not be given to guests here"),
        ({"file": "IMAGES/none"}, "No such file"),
        ({"file": "IMAGES/x", "sha256": "abc"}, "64 hexadecimal digits"),
        ({"file": "IMAGES/x", "user": "jane"}, "--disk 1:size=4M,name=cidata,mode=ro"),
    ],
)
def test_what_cannot_be_done_is_told_before_there_is_a_disk(
    node: Node, parameters: dict[str, str], why: str
) -> None:
    given = {key: text.replace("IMAGES", str(node.images)) for key, text in parameters.items()}
    with pytest.raises(NodeFailure, match="image cannot be installed with these") as caught:
        run(node.driver.check(node.order(seed=False, **given)))
    assert why in caught.value.message


def test_what_cannot_be_fetched_is_told_and_nothing_is_written(node: Node) -> None:
    _, report = node.install(seed=False, url="http://127.0.0.1:1/x", sha256="0" * 64)
    assert "cannot be fetched" in report.problem
    assert not any(node.content("disk"))
