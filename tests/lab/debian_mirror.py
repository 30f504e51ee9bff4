"""Debian's archive for nodes, which see no internet: this machine fetches what one asks for.

It is passed on as it is, so that nodes judge for themselves what Debian has signed.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

from pyroute2 import netns

from deploy.uml.command import Trouble, run
from deploy.uml.fetch import archive
from deploy.uml.place import CACHE, HOST_ADDRESS, Place

KEPT = CACHE / "archive"  # files whose content never changes
FETCH = ("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root", "download-file")
FETCH_S = 300.0
_PATH = re.compile(r"/(?:dists|pool)(?:/\w[\w.+~:-]*)+", re.ASCII)


def is_in_archive(path: str) -> bool:
    """Tell whether a path is one of the archive's, and leads nowhere else."""
    return _PATH.fullmatch(path) is not None


@contextmanager
def serving(place: Place) -> Iterator[str]:
    """Have the archive on the lab's network; give its address.

    Raises:
        Trouble: this machine has no source of Debian's, or the lab is down.
    """
    server = _Mirror(place, archive())
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{HOST_ADDRESS}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Mirror(ThreadingHTTPServer):
    def __init__(self, place: Place, source: str) -> None:
        super().__init__((HOST_ADDRESS, 0), _Answer, bind_and_activate=False)
        self.source = source.rstrip("/")
        self.socket.close()
        # A socket stays in the namespace in which it was made, and we stay where the internet is.
        self.socket = netns.create_socket(place.namespace, flags=0)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_activate()


class _Answer(BaseHTTPRequestHandler):
    server: _Mirror

    def do_GET(self) -> None:
        path = unquote(self.path)
        if not is_in_archive(path):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with tempfile.TemporaryDirectory() as directory:
            try:
                file = self._fetched(path, Path(directory))
            except Trouble:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(file.stat().st_size))
            self.end_headers()
            with file.open("rb") as content:
                shutil.copyfileobj(content, self.wfile)

    def _fetched(self, path: str, directory: Path) -> Path:
        kept = KEPT / path.lstrip("/")
        if kept.exists():
            return kept
        file = directory / "file"
        run((*FETCH, f"{self.server.source}{path}", str(file)), timeout_s=FETCH_S)
        if path.endswith(".deb"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = kept.with_name(f"{directory.name}.part")
            shutil.copyfile(file, part)
            part.rename(kept)
        return file

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: whoever asked says what went wrong."""
