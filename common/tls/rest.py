"""Keys and certificates of REST interfaces, each pair in one PEM text, as its clients know it."""

import datetime
import ipaddress
import os
import ssl
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.x509.oid import NameOID

from common.errors import InvalidRequest

LIFETIME = datetime.timedelta(days=3650)
BACKDATED = datetime.timedelta(days=1)  # clocks of clients may be behind
LONGEST_COMMON_NAME = 64


def make_pair(name: str, also: Iterable[str], now: float) -> str:
    """Make a key, and a certificate that it has signed itself.

    Args:
        name: under which it is known.
        also: further names and IP addresses under which clients may ask.
        now: seconds since 1970.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:LONGEST_COMMON_NAME])])
    names = map(_general_name, dict.fromkeys((name, "localhost", "127.0.0.1", *also)))
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return (private + certificate.public_bytes(serialization.Encoding.PEM)).decode()


def check_pair(pem: str, now: float) -> None:
    """Refuse a text that is no key with its certificate, or that servers cannot show clients.

    Certificates of those who signed it may follow it.

    Raises:
        InvalidRequest: says what is missing, or wrong.
    """
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
        certificate = x509.load_pem_x509_certificates(pem.encode())[0]
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            "The file has to hold a private key without a password, and its certificate, both as "
            f"PEM: {error}."
        ) from error
    if _public(key.public_key()) != _public(certificate.public_key()):
        raise InvalidRequest("The key in the file is not that of the first certificate in it.")
    if certificate.not_valid_after_utc.timestamp() <= now:
        raise InvalidRequest(f"The certificate ended at {certificate.not_valid_after_utc}.")
    _check_usable(pem)


def _check_usable(pem: str) -> None:
    """Load it as a server does: OpenSSL judges more than its form, as how long keys have to be."""
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)  # a key is on no disk by this
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(pem.encode())
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(f"/proc/self/fd/{file}")
    except ssl.SSLError as error:
        raise InvalidRequest(
            f"No server can use the certificate: {error.reason or error}. Is its key too short, or "
            "its signature of a kind that is not trusted any more?"
        ) from error
    finally:
        os.close(file)


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _public(key: PublicKeyTypes) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
