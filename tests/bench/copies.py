"""How fast a disk is copied from node to node, beside cp and dd on the same disk."""

import argparse
import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from common.names import DiskId, NodeName
from common.noderpc.copies import Compression, Peer
from noded.copies.chunks import CHUNK
from noded.copies.driver import ProcessCopier
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from tests.support.disks import file_disk
from tests.support.https_node import LOCALHOST, TestCluster

SIZE = 1024  # MiB
DISK = DiskId("dddddddd-0000-4000-8000-00000000000a")
LOOK_EVERY_S = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, metavar="MIB")
    parser.add_argument("--directory", help="where the disks are (a temporary one)")
    options = parser.parse_args()
    size: int = options.size
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        bench = Bench(Path(name), size)
        print(f"copying a disk of {size} MiB over loopback, to one that is durable, MiB/s")
        for what, fill in (("random", _random), ("text", _text), ("zeros", _nothing)):
            bench.fill(fill)
            rates = [f"cp {bench.rate(bench.cp):.0f}", f"dd {bench.rate(bench.dd):.0f}"]
            for compression in (Compression.NONE, Compression.FAST):
                rate = bench.rate(lambda kind=compression: asyncio.run(bench.copy(kind)))  # type: ignore[misc]
                rates.append(f"{compression} {rate:.0f}")
            print(f"  {what:8} {', '.join(rates)}")


class Bench:
    """Two nodes on this machine, with a disk each."""

    def __init__(self, root: Path, size: int) -> None:
        self.size = size
        cluster = TestCluster(root / "identities")
        self.peers = {
            name: Peer(name=NodeName(name), key=cluster.key(name)) for name in ("alpha", "beta")
        }
        self.copiers, self.paths, self.disks = {}, {}, {}
        for name in self.peers:
            directory = root / name
            directory.mkdir()
            storage = FileStorage(lambda at=directory: Directories(local=str(at)))  # type: ignore[misc]
            self.paths[name] = directory / "disk"
            self.disks[name] = file_disk(DISK, str(self.paths[name]), size=size)
            asyncio.run(storage.ensure_present(self.disks[name]))
            self.copiers[name] = ProcessCopier(
                root / f"run-{name}", identity=cluster.identity(name), address=LOCALHOST,
                open_disk=storage.open,
            )  # fmt: skip

    def fill(self, fill: Callable[[Path, int], None]) -> None:
        with self.paths["alpha"].open("r+b") as file:
            file.truncate(0)
            file.truncate(self.size * CHUNK)
        fill(self.paths["alpha"], self.size)
        subprocess.run(["sync"], check=True)

    def rate(self, work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        return self.size / (time.perf_counter() - began)

    def cp(self) -> None:
        copy = self.paths["alpha"].with_name("copy")
        subprocess.run(["cp", "--reflink=never", self.paths["alpha"], copy], check=True)
        subprocess.run(["sync", copy], check=True)
        copy.unlink()

    def dd(self) -> None:
        copy = self.paths["alpha"].with_name("copy")
        argv = ["dd", f"if={self.paths['alpha']}", f"of={copy}", "bs=1M", "conv=fsync"]
        subprocess.run(argv, check=True, capture_output=True)
        copy.unlink()

    async def copy(self, compression: Compression) -> None:
        source, target = self.copiers["alpha"], self.copiers["beta"]
        offer = await source.offer("1", self.disks["alpha"], self.peers["beta"], compression, 0)
        await target.fetch("1", self.disks["beta"], self.peers["alpha"], LOCALHOST, offer)
        await self._ended(target)
        for copier in (target, source):
            await copier.end("1")

    async def _ended(self, target: ProcessCopier) -> None:
        while True:
            if (await target.look("1")).has_ended:
                return
            await asyncio.sleep(LOOK_EVERY_S)


def _random(path: Path, size: int) -> None:
    argv = ["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={size}", "conv=notrunc"]
    subprocess.run(argv, check=True, capture_output=True)


def _text(path: Path, size: int) -> None:
    """Write what packs well, as logs and programs do."""
    line = "".join(f"{number:x} all work and no play\n" for number in range(100_000)).encode()
    chunk = (line * (CHUNK // len(line) + 1))[:CHUNK]
    with path.open("r+b") as file:
        for _ in range(size):
            file.write(chunk)


def _nothing(path: Path, size: int) -> None:
    """Leave all of it as it is: holes."""


if __name__ == "__main__":
    main()
