"""Ganeti's burn-in, which makes instances and does all that can be done with them, finds nothing.

It grows disks or imports what it has exported, not both: the import is to make a disk of the size
from before, and what is on a whole disk does not fit.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from common.confd_snapshot import KEY_FILE
from coordinator.confd.files import PublishedFiles
from coordinator.confd.main import Answering
from coordinator.confd.service import Service
from tests.diff.debian_ganeti import Said, Served, needs_ganeti, served_cluster

pytestmark = needs_ganeti

# Confd has a port of Ganeti's own, which somebody else may have here.
_PROGRAM = """
import sys
from ganeti import netutils
from ganeti.tools import burnin
netutils.GetDaemonPort = lambda daemon: {port}
sys.exit(burnin.Main())
"""
GROWING = ("--no-importexport", "--disk-size=1G,256M", "--disk-growth=128m,64m")
EXPORTING = ("--disk-growth=0",)


class UpToDate(Answering):
    """Looks at what is published before each answer."""

    def __init__(self, folder: Path) -> None:
        self._files, self._known = PublishedFiles(folder), Service()
        super().__init__(self._known)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._known.known = self._files.read()
        super().datagram_received(data, addr)


@contextmanager
def confd(served: Served) -> Iterator[int]:
    """Answer for alpha, where Ganeti's programs look for candidates; yield the port."""
    published = served.cluster.machines["alpha"].paths.confd
    folder = served.root / "var/lib/ganeti"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ssconf_master_candidates_ips").write_text("127.0.0.1\n")
    (folder / "hmac.key").symlink_to(published / KEY_FILE)

    async def listen() -> asyncio.DatagramTransport:
        transport, _ = await served.loop.create_datagram_endpoint(
            lambda: UpToDate(published), local_addr=("127.0.0.1", 0)
        )
        return transport

    transport = served.wait_for(listen())
    try:
        yield transport.get_extra_info("sockname")[1]
    finally:
        served.loop.call_soon_threadsafe(transport.close)


def burnt_in(served: Served, *words: str) -> Said:
    with confd(served) as port:
        return served.python(
            _PROGRAM.format(port=port), "--os=debian+stable", "--no-name-check", "--no-ip-check",
            *words,
        )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("--disk-template=plain", *GROWING),
        ("--disk-template=plain", *EXPORTING),
        ("--disk-template=drbd", *GROWING),
        ("--disk-template=drbd", *EXPORTING, "--iallocator=hail"),
        ("--disk-template=drbd", *EXPORTING, "--parallel"),
        ("--disk-template=rbd", *EXPORTING),
        ("--disk-template=file", *GROWING),
        ("--disk-template=sharedfile", *GROWING),
        ("--disk-template=gluster", *GROWING),
    ],
    ids=" ".join,
)
def test_it_ends_well_and_leaves_the_cluster_as_it_was(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with served_cluster(tmp_path) as served:
        before = served.wait_for(served.cluster.snapshot())
        said = burnt_in(served, *words, "--rename=web9", "web1", "web2")
        assert said.code == 0, said.text
        assert "retry" not in said.text
        left = served.wait_for(served.cluster.snapshot()).differences(before)
    assert left == []
    exports = words[1:] != GROWING
    assert ("Exporting and re-importing" in said.text, "Growing" in said.text) == (
        exports,
        not exports,
    )


def test_it_tells_what_went_wrong(tmp_path: Path) -> None:
    with served_cluster(tmp_path) as served:
        said = burnt_in(served, "--disk-template=plain", "--mem-size=64G", "web1")
        assert (said.code, "Error detected" in said.text) == (1, True), said.text
        assert not served.cluster.config.sorted_instances()
