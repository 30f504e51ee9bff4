"""TLS between the processes of a cluster: version 1.3, and both sides show a certificate.

A node's identity is a directory of three PEM files. Whoever connects knows the name of the
node it wants; the address may be any.
"""

import ssl
from pathlib import Path
from typing import Any, NamedTuple

from common.errors import InvalidRequest
from common.names import NodeName

KEY, CERTIFICATE, AUTHORITY = "key.pem", "certificate.pem", "authority.pem"
CANDIDATE = "candidate"  # the organizational unit (OU) of those who may give orders


class Peer(NamedTuple):
    """Who is at the other end, by a certificate that was checked."""

    node: NodeName
    candidate: bool


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


def read_peer(certificate: dict[str, Any] | None) -> Peer | None:
    """Read what ``SSLSocket.getpeercert()`` gave; None where there is no certificate."""
    if not certificate:
        return None
    names = [name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]
    units = [
        value
        for attributes in certificate.get("subject", ())
        for kind, value in attributes
        if kind == "organizationalUnitName"
    ]
    return Peer(NodeName(names[0]), CANDIDATE in units) if names else None


def check_identity(identity: Path, node: NodeName) -> Peer:
    """Check that others will accept these files as ``node``, by a handshake with itself.

    So key, chain, dates and name are judged by exactly what will judge them later.

    Raises:
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
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        raise InvalidRequest(
            f"The certificate does not make this node {node} of its cluster: {reason}.", node=node
        ) from error
    peer = read_peer(server.getpeercert())
    if unfinished or peer is None:
        raise InvalidRequest(f"The certificate does not name node {node}.", node=node)
    return peer


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        # A resumed session would skip the check of a certificate that has expired since.
        context.num_tickets = 0
    return context
