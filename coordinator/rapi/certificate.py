"""The certificate that clients see: the operator's, the cluster's, or one of the node itself."""

import logging
import os
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common.errors import InvalidRequest

log = logging.getLogger(__name__)


class Pair(NamedTuple):
    """Files of a certificate and its key; both are PEM, and the key may be in the first."""

    certificate: Path
    key: Path | None = None


class ServerCertificate:
    """A key and a certificate in files, used anew when these have changed.

    Args:
        places: where they may be; the first pair that is there counts, unless it cannot be used at
            the start, when there is no former one.
        clients: certificates of who signs those of users; None asks for no certificate.
    """

    def __init__(self, places: Sequence[Pair], clients: Path | None = None) -> None:
        """Read the files.

        Raises:
            InvalidRequest: none can be used.
        """
        self._places = places
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._seen = self._stamps()
        self._load_any()
        if clients is not None:
            self._trust(clients)

    def refresh(self) -> None:
        """Use the files for new connections if they have changed; bad ones are told in the log."""
        try:
            if (seen := self._stamps()) != self._seen:
                self._seen = seen
                self._load(self._pair)
                log.info("using the certificate in %s from now on", self._pair.certificate)
        except InvalidRequest as error:
            log.warning("the former certificate stays in use: %s", error)

    @property
    def _pair(self) -> Pair:
        there = (pair for pair in self._places if pair.certificate.exists())
        return next(there, self._places[-1])

    def _stamps(self) -> list[tuple[Path, int, int]]:
        files = [each for each in self._pair if each]
        try:
            return [(each, (found := each.stat()).st_mtime_ns, found.st_ino) for each in files]
        except OSError as error:
            raise InvalidRequest(f"Cannot use {error.filename}: {error.strerror}.") from error

    def _trust(self, clients: Path) -> None:
        self.context.verify_mode = ssl.CERT_OPTIONAL
        try:
            self.context.load_verify_locations(clients)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(f"Cannot use the certificates in {clients}: {error}.") from error

    def _load_any(self) -> None:
        """Use the first that can be used: with another certificate it can be told what is wrong."""
        *others, last = [pair for pair in self._places if pair.certificate.exists()]
        for pair in others:
            try:
                return self._load(pair)
            except InvalidRequest as error:
                log.warning("another certificate is used: %s", error)
        return self._load(last)

    def _load(self, pair: Pair) -> None:
        try:
            self.context.load_cert_chain(*pair)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(
                f"Cannot use the certificate in {pair.certificate}: {error}."
            ) from error


def ensure_certificate(path: Path, host: str) -> None:
    """Make a key and a certificate of its own for ``host``, unless the file is there.

    Raises:
        InvalidRequest: it cannot be written.
    """
    if path.exists():
        return
    from common.tls.rest import make_pair  # large, and needed once in the life of a node

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.touch(mode=0o600)
        with new.open("wb") as file:
            file.write(make_pair(host, (), time.time()).encode())
            os.fsync(file.fileno())
        new.rename(path)
    except OSError as error:
        raise InvalidRequest(f"Cannot write {path}: {error.strerror}.") from error
    log.info("made a certificate for %s in %s", host, path)
