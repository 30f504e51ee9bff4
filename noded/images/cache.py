"""Images that were fetched from elsewhere, kept on a node by the sums of what is in them."""

import hashlib
import os
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from noded.images.qcow2 import BadImage

MOST_KEPT = 8
CHUNK = 1 << 20
PATIENCE_S = 60.0  # with whoever sends, for each piece
SUM = re.compile(r"[0-9a-f]{64}")
SCHEMES = ("http", "https")

Tell = Callable[[str], None]
Confined = Callable[[Callable[[], None]], None]


class ImageCache:
    """A directory of root's. What is used least recently goes when there are many."""

    def __init__(self, directory: Path, confined: Confined) -> None:
        """Keep images in ``directory``; ``confined`` runs what talks to strangers."""
        self._directory, self._confined = directory, confined

    def open(self, url: str, sha256: str, tell: Tell) -> int:
        """Return a descriptor of an image, fetched if it is not there.

        Raises:
            BadImage: it cannot be had, or is another one.
        """
        path = self._directory / sha256
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            os.utime(descriptor)
        except FileNotFoundError:
            return self._fetch(url, sha256, path, tell)
        tell(f"the image {sha256[:12]}… is here already")
        return descriptor

    def _fetch(self, url: str, sha256: str, path: Path, tell: Tell) -> int:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._drop_old()
        with self._unfinished() as file:
            tell(f"fetching {url}")
            self._confined(lambda: _download(url, file, tell))
            found = sum_of(file.fileno())
            if found != sha256:
                raise BadImage(f"{url} is another image: its SHA-256 is {found}, not {sha256}")
            os.fsync(file.fileno())
            Path(file.name).rename(path)
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @contextmanager
    def _unfinished(self) -> Iterator[IO[bytes]]:
        with tempfile.NamedTemporaryFile(
            prefix=".unfinished-", dir=self._directory, delete=False
        ) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    def _drop_old(self) -> None:
        kept = [path for path in self._directory.iterdir() if SUM.fullmatch(path.name)]
        kept.sort(key=lambda path: path.stat().st_mtime)
        for path in kept[: max(0, len(kept) + 1 - MOST_KEPT)]:
            path.unlink(missing_ok=True)


def sum_of(descriptor: int) -> str:
    """Return the SHA-256 of a file."""
    total, offset = hashlib.sha256(), 0
    while data := os.pread(descriptor, CHUNK, offset):
        total.update(data)
        offset += len(data)
    return total.hexdigest()


def _download(url: str, file: IO[bytes], tell: Tell) -> None:
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(), urllib.request.HTTPHandler(), urllib.request.HTTPSHandler()
    )
    try:
        with opener.open(url, timeout=PATIENCE_S) as answer:
            length, done, told = int(answer.headers.get("Content-Length") or 0), 0, 0
            while data := answer.read(CHUNK):
                file.write(data)
                done += len(data)
                if length and (tenth := done * 10 // length) > told:
                    told = tenth
                    tell(f"{tenth * 10} % of {length >> 20} MiB have come")
        file.flush()
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise BadImage(f"{url} cannot be fetched: {error}") from error
