"""The cluster's certificate authority: made once, then it issues a certificate for each node."""

import datetime
import ipaddress
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from common.errors import InvalidRequest
from common.names import ClusterName, NodeName
from common.tls.keys import BACKDATED, KeyPair, make_key, read_key, subject

AUTHORITY_LIFETIME = datetime.timedelta(days=20 * 365)
NODE_LIFETIME = datetime.timedelta(days=5 * 365)


def make_authority(cluster: ClusterName, *, now: float) -> KeyPair:
    """Make the authority of a new cluster, valid for 20 years.

    Args:
        cluster: its name, for people to read.
        now: seconds since 1970.
    """
    key = read_key(pem := make_key())
    name = subject(f"authority of {cluster}")
    builder = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    )
    return KeyPair(pem, _signed(builder, key, key.public_key()))


def issue(
    authority: KeyPair,
    request: str,
    *,
    node: NodeName,
    addresses: Iterable[str],
    now: float,
    also: NodeName | None = None,
) -> str:
    """Issue a certificate, PEM, for 5 years or as long as the authority's own lasts.

    What the request says of its owner is ignored: a node cannot choose who it is.

    Args:
        authority: as made by ``make_authority``.
        request: PEM, proves that the node has the key.
        node: goes into the SAN, and is what callers check.
        addresses: IP addresses of the node, for programs that know no names.
        now: seconds since 1970.
        also: another name that it goes by, while it is renamed.

    Raises:
        InvalidRequest: the request is malformed, or not signed with its own key.
    """
    public_key = _read_request(request)
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    lifetime = min(NODE_LIFETIME, issuer.not_valid_after_utc - start)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in (node, also) if name]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    builder = (
        _builder(subject(node), issuer.subject, public_key, now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # QEMU's TLS for migration insists on key encipherment, meaningless as it is here.
        .add_extension(_usage(digital_signature=True, key_encipherment=True), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    key = read_key(authority.key)
    return _signed(builder, key, key.public_key())


def _read_request(pem: str) -> ec.EllipticCurvePublicKey:
    try:
        request = x509.load_pem_x509_csr(pem.encode())
    except ValueError as error:
        raise InvalidRequest(f"This is no certificate request: {error}.") from error
    if not request.is_signature_valid:
        raise InvalidRequest("The certificate request is not signed with its own key.")
    key = request.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise InvalidRequest("The certificate request is for no key on an elliptic curve.")
    return key


def _builder(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: float,
    lifetime: datetime.timedelta,
) -> x509.CertificateBuilder:
    start = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    issuer: ec.EllipticCurvePublicKey,
) -> str:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer)
    certificate = builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _usage(**allowed: bool) -> x509.KeyUsage:
    every = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
        "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{usage: allowed.get(usage, False) for usage in every})
