"""Private keys and certificate requests: what a node makes for itself.

Needs ``cryptography``, which is large: noded, whose memory is locked, runs these functions in
a child process (``noded.identity.keys``).
"""

import datetime
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from common.errors import InvalidRequest
from common.names import NodeName

LONGEST_COMMON_NAME = 64  # characters, X.520
TEMPORARY_LIFETIME = datetime.timedelta(days=3650)
BACKDATED = datetime.timedelta(days=1)  # a node's clock may be behind the authority's


class KeyPair(NamedTuple):
    """A private key and the certificate for it, both PEM."""

    key: str
    certificate: str


def make_key() -> str:
    """Make a private key on the curve P-256, as unencrypted PKCS #8 PEM."""
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )


def make_request(key: str, node: NodeName) -> str:
    """Ask for a certificate: a PEM request signed with ``key``, proof of having it.

    Raises:
        InvalidRequest: the key is none.
    """
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject(node))
    return builder.sign(read_key(key), hashes.SHA256()).public_bytes(_PEM).decode()


def make_temporary(*, now: float) -> KeyPair:
    """Make a key with a certificate signed by itself, for a node that is in no cluster.

    Nobody checks more of it than its fingerprint, which the join token carries.

    Args:
        now: seconds since 1970.
    """
    key = read_key(pem := make_key())
    name = subject("not joined")
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + TEMPORARY_LIFETIME)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(pem, certificate.public_bytes(_PEM).decode())


def read_key(pem: str) -> ec.EllipticCurvePrivateKey:
    """Read a private key.

    Raises:
        InvalidRequest: it is no PEM key, or of another kind than ours.
    """
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"This is no private key: {error}.") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InvalidRequest("The private key is none on an elliptic curve.")
    return key


def subject(name: str) -> x509.Name:
    """Return a subject for people to read; programs look at the SAN only."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:LONGEST_COMMON_NAME])])


_PEM = serialization.Encoding.PEM
