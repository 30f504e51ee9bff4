"""Images are installed by a script: from a file, or fetched over HTTP."""

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.model.backing import Qcow2Backing
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.operating_systems import Script, ScriptOrder, ScriptReport
from noded.images.definition import image_definition
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
from tests.support.raw_image import MIB, SIZE, raw_image
from tests.support.script_rigs import DISK, RUN, ended, order_for

SEED_DISK = "dddddddd-0000-4000-8000-00000000000b"


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
