"""The certificate that clients see: the operator's files, or one made at the first start."""

import datetime
import ipaddress
import logging
import os
import ssl
from pathlib import Path

from common.errors import InvalidRequest

log = logging.getLogger(__name__)

LIFETIME = datetime.timedelta(days=3650)
BACKDATED = datetime.timedelta(days=1)  # clocks of clients may be behind


class ServerCertificate:
    """A key and a certificate in files, used anew when these have changed.

    Args:
        certificate: PEM; the key may be in it, too.
        key: PEM, where it is in a file of its own.
        clients: certificates of who signs those of users; None asks for no certificate.
    """

    def __init__(
        self, certificate: Path, key: Path | None = None, clients: Path | None = None
    ) -> None:
        """Read the files.

        Raises:
            InvalidRequest: they cannot be used.
        """
        self._certificate, self._key = certificate, key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._seen = self._stamps()
        self._load()
        if clients is not None:
            self._trust(clients)

    def refresh(self) -> None:
        """Use the files for new connections if they have changed; bad ones are told in the log."""
        try:
            if (seen := self._stamps()) != self._seen:
                self._seen = seen
                self._load()
                log.info("using the certificate in %s from now on", self._certificate)
        except InvalidRequest as error:
            log.warning("the former certificate stays in use: %s", error)

    def _stamps(self) -> list[tuple[int, int]]:
        files = [self._certificate, *([self._key] if self._key else [])]
        try:
            return [((found := each.stat()).st_mtime_ns, found.st_ino) for each in files]
        except OSError as error:
            raise InvalidRequest(f"Cannot use {error.filename}: {error.strerror}.") from error

    def _trust(self, clients: Path) -> None:
        self.context.verify_mode = ssl.CERT_OPTIONAL
        try:
            self.context.load_verify_locations(clients)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(f"Cannot use the certificates in {clients}: {error}.") from error

    def _load(self) -> None:
        try:
            self.context.load_cert_chain(self._certificate, self._key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(
                f"Cannot use the certificate in {self._certificate}: {error}."
            ) from error


def ensure_certificate(path: Path, host: str) -> None:
    """Make a key and a certificate of its own for ``host``, unless the file is there.

    Raises:
        InvalidRequest: it cannot be written.
    """
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.touch(mode=0o600)
        with new.open("wb") as file:
            file.write(_make(host))
            os.fsync(file.fileno())
        new.rename(path)
    except OSError as error:
        raise InvalidRequest(f"Cannot write {path}: {error.strerror}.") from error
    log.info("made a certificate for %s in %s", host, path)


def _make(host: str) -> bytes:
    from cryptography import x509  # large, and needed once in the life of a node
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    names: list[x509.GeneralName] = [x509.DNSName(host), x509.DNSName("localhost")]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ) + certificate.public_bytes(serialization.Encoding.PEM)
