"""Users who log in to ``gantry-rapi`` by a certificate instead of a password."""

import datetime
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.rapi import RapiProcess, rapi_process
from tests.support.rest import Answer, parse_answer

YEAR = datetime.timedelta(days=365)


class Authority:
    """Signs certificates of users."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self._name, self._key.public_key(), is_authority=True)

    def issue(self, name: str, path: Path) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + self._sign(subject, key.public_key(), is_authority=False)
        )
        return path

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - YEAR)
            .not_valid_after(now + YEAR)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("ours")


@pytest.fixture(scope="module")
def rapi(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RapiProcess]:
    folder = tmp_path_factory.mktemp("rapi")
    trusted = folder / "clients.pem"
    trusted.write_bytes(authority.certificate)
    with rapi_process(folder, folder / "luxi", "--client-ca", str(trusted)) as process:
        process.paths.rapi_users.write_text("alice {CERTIFICATE} write\nbob secret write\n")
        yield process


def put_tag(rapi: RapiProcess, certificate: Path | None) -> Answer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate)
    plain = socket.create_connection(("127.0.0.1", rapi.port), timeout=20)
    with context.wrap_socket(plain) as secure:
        secure.sendall(b"PUT /2/tags?tag=a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        data = b""
        while part := secure.recv(65536):
            data += part
    return parse_answer(data)


LOGGED_IN = {502, 503}  # there is no coordinator


def test_a_certificate_in_the_name_of_a_user_is_enough(
    rapi: RapiProcess, authority: Authority, tmp_path: Path
) -> None:
    assert put_tag(rapi, authority.issue("alice", tmp_path / "alice.pem")).status in LOGGED_IN
    assert '"PUT /2/tags?tag=a HTTP/1.1"' in rapi.paths.access_log.read_text()
    assert "- alice [" in rapi.paths.access_log.read_text()


def test_certificates_of_nobody_open_nothing(
    rapi: RapiProcess, authority: Authority, tmp_path: Path
) -> None:
    assert put_tag(rapi, None).status == 401
    assert put_tag(rapi, authority.issue("eve", tmp_path / "eve.pem")).status == 401
    assert put_tag(rapi, authority.issue("bob", tmp_path / "bob.pem")).status == 401


def test_certificates_that_others_have_signed_are_refused(
    rapi: RapiProcess, tmp_path: Path
) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
        put_tag(rapi, Authority("theirs").issue("alice", tmp_path / "alice.pem"))
