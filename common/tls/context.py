"""TLS between the processes of a cluster: version 1.3, and both sides show a certificate.

A node's identity is a directory of three PEM files. Whoever connects knows the name of the
node it wants; the address may be any.
"""

import datetime
import ssl
import time
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import InvalidRequest
from common.names import KeyId, NodeName
from common.tls.certificate import read_certificate, read_pem

KEY, CERTIFICATE, AUTHORITY = "key.pem", "certificate.pem", "authority.pem"
NOT_YET_VALID, EXPIRED = 9, 10  # X509_V_ERR_… of OpenSSL


class Peer(NamedTuple):
    """Who is at the other end, by a certificate that was checked."""

    node: NodeName
    key: KeyId


class WrongTime(InvalidRequest):
    """A certificate is not valid now, as far as this machine's clock tells."""

    code = "invalid-request.wrong-time"


def server_context(identity: Path) -> ssl.SSLContext:
    """Serve as the node of ``identity``; clients without a certificate of its cluster fail.

    Raises:
        InvalidRequest: a file is missing, or they do not belong together.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    load_identity(context, identity)
    return context


def client_context(identity: Path) -> ssl.SSLContext:
    """Call as the node of ``identity``; give the name of the called one as ``server_hostname``.

    Raises:
        InvalidRequest: a file is missing, or they do not belong together.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    load_identity(context, identity)
    return context


def stranger_context(identity: Path, certificate: str, *, serves: bool) -> ssl.SSLContext:
    """Speak as the node of ``identity`` with the one that has this very certificate.

    Who that is need not be known: it is nobody of this cluster.

    Raises:
        InvalidRequest: a file is missing, or this is no certificate.
    """
    context = _context(ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # who has issued it does not matter
    try:
        context.load_cert_chain(identity / CERTIFICATE, identity / KEY)
        context.load_verify_locations(cadata=certificate)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise InvalidRequest(f"Cannot speak with another cluster's node: {error}.") from error
    return context


def load_identity(context: ssl.SSLContext, identity: Path) -> None:
    """Use the files of ``identity`` for new connections; those that are open go on.

    Raises:
        InvalidRequest: a file is missing, or they do not belong together.
    """
    try:
        context.load_cert_chain(identity / CERTIFICATE, identity / KEY)
        context.load_verify_locations(identity / AUTHORITY)
    except (OSError, ssl.SSLError) as error:
        raise InvalidRequest(f"Cannot use the identity in {identity}: {error}.") from error


def fit_together(certificate: Path, key: Path) -> bool:
    """Tell whether both files are there, and the certificate is for that key."""
    if not (certificate.exists() and key.exists()):
        return False  # as mostly; a context takes a hundred times as long
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError):
        return False
    return True


def joining_server_context(key: Path, certificate: Path) -> ssl.SSLContext:
    """Serve with a certificate that is known by its fingerprint only, and ask for none."""
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def joining_client_context() -> ssl.SSLContext:
    """Call a node that is in no cluster.

    The caller must compare the fingerprint with the join token's before it sends anything.
    """
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def read_peer(connection: ssl.SSLObject | ssl.SSLSocket | None) -> Peer | None:
    """Tell who is at the other end of a connection; None where no certificate was shown."""
    certificate = connection.getpeercert() if connection else None
    der = connection.getpeercert(binary_form=True) if connection else None
    if not (certificate and der):
        return None
    alternatives: Any = certificate.get("subjectAltName", ())
    names = [name for kind, name in alternatives if kind == "DNS"]
    return Peer(NodeName(names[0]), read_certificate(der).key) if names else None


def check_identity(identity: Path, node: NodeName) -> Peer:
    """Check that others will accept these files as ``node``, by a handshake with itself.

    So key, chain, dates and name are judged by exactly what will judge them later.

    Raises:
        WrongTime: it is too early or too late for them, by this machine's clock.
        InvalidRequest: why they would not.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context(identity).wrap_bio(to_server, to_client, server_side=True)
    client = client_context(identity).wrap_bio(to_client, to_server, server_hostname=node)
    # With TLS 1.3 the client ends first; the server then checks the client's certificate.
    unfinished = [client, server]
    try:
        for side in (client, server, client, server):
            if side in unfinished:
                try:
                    side.do_handshake()
                    unfinished.remove(side)
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in (NOT_YET_VALID, EXPIRED):
            raise _wrong_time(identity, node) from error
        raise _not_of_cluster(node, error.verify_message) from error
    except ssl.SSLError as error:
        raise _not_of_cluster(node, error.reason or str(error)) from error
    peer = read_peer(server)
    if unfinished or peer is None:
        raise InvalidRequest(f"The certificate does not name node {node}.", node=node)
    return peer


def _not_of_cluster(node: NodeName, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"The certificate does not make this node {node} of its cluster: {reason}.", node=node
    )


def _wrong_time(identity: Path, node: NodeName) -> WrongTime:
    shown = [read_pem((identity / name).read_text("ascii")) for name in (CERTIFICATE, AUTHORITY)]
    begin = max(contents.valid_from for contents in shown)
    end = min(contents.valid_until for contents in shown)
    return WrongTime(
        f"By its clock this machine has {_day(time.time())}, but the certificate of node {node} "
        f"is valid from {_day(begin)} to {_day(end)} only. If the clock is wrong, set it; "
        "else the certificate has to be renewed.",
        node=node,
    )


def _day(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        # A resumed session would skip the check of a certificate that has expired since.
        context.num_tickets = 0
    return context
