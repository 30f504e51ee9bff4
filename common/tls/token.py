"""The join token: how an operator tells a cluster which new node to trust, and the node whom.

A node of no cluster shows a certificate that it signed itself. Its token is a secret, by which
it knows the cluster again, and that certificate's fingerprint, by which the cluster knows the
node. It is used once.
"""

import hashlib
import hmac
import re
import secrets
import ssl
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidRequest
from common.messages import to_json

SECRET_BYTES = 16
_FORM = re.compile(r"gantry-join\.([A-Za-z0-9_-]{64})")  # 16 bytes of secret, 32 of fingerprint


@dataclass(frozen=True, slots=True)
class JoinToken:
    """``fingerprint`` is the SHA-256 of the certificate in DER form."""

    secret: bytes = field(repr=False)
    fingerprint: bytes

    def __str__(self) -> str:
        return f"gantry-join.{urlsafe_b64encode(self.secret + self.fingerprint).decode()}"

    def prove(self, call: str, arguments: Mapping[str, Any]) -> str:
        """Return the proof to send with ``call``: hex HMAC-SHA256.

        Args:
            call: its name, as in "join.request".
            arguments: all others of the call.
        """
        text = call.encode() + b"\n" + to_json(dict(arguments))
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()

    def check_proof(self, proof: str, call: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a call of somebody who does not have this token.

        Raises:
            InvalidRequest: the proof is not the one that ``prove`` makes.
        """
        if not hmac.compare_digest(proof.encode(), self.prove(call, arguments).encode()):
            raise InvalidRequest(
                "The join token is not this node's; print the right one on the node with "
                "“gantry join-token”."
            )


def make_token(certificate: str) -> JoinToken:
    """Make a token, with a new secret, for a node that shows ``certificate`` (PEM)."""
    return JoinToken(secrets.token_bytes(SECRET_BYTES), fingerprint_of(certificate))


def read_token(text: str) -> JoinToken:
    """Read a token as printed; white space around it is fine.

    Raises:
        InvalidRequest: it is none, or not all of it.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidRequest(
            "This is no join token: it begins with “gantry-join.”, and 64 letters, digits, “-” "
            "or “_” follow. Print it on the new node with “gantry join-token”."
        )
    data = urlsafe_b64decode(match[1])
    return JoinToken(data[:SECRET_BYTES], data[SECRET_BYTES:])


def fingerprint_of(certificate: str) -> bytes:
    """Return the SHA-256 of a PEM certificate's DER form."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).digest()
