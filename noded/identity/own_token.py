"""The join token of a node of no cluster, and the certificate that it names."""

from pathlib import Path

from common.errors import InvalidRequest
from common.tls.context import CERTIFICATE, KEY
from common.tls.token import JoinToken, fingerprint_of, make_token, read_token
from noded.durable_file import explaining, write_durably
from noded.identity.keys import KeyPair


def known_token(file: Path, joining: Path) -> JoinToken | None:
    """Find the token of before a restart: it may be on its way to the cluster already.

    Args:
        file: where the operator finds it.
        joining: directory of the temporary pair that it names.
    """
    try:
        token = read_token(file.read_text(encoding="ascii"))
        shown = (joining / CERTIFICATE).read_text(encoding="ascii")
        has_key = (joining / KEY).exists()
        return token if has_key and fingerprint_of(shown) == token.fingerprint else None
    except (OSError, ValueError, InvalidRequest):
        return None


def keep_token(pair: KeyPair, file: Path, joining: Path) -> JoinToken:
    """Make a token for a temporary pair, and keep both; the token last, as it is what counts.

    Raises:
        NodeFailure: the disk is full or broken.
    """
    token = make_token(pair.certificate)
    with explaining(f"create {joining}"):
        joining.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(joining / KEY, pair.key.encode())
    write_durably(joining / CERTIFICATE, pair.certificate.encode())
    write_durably(file, f"{token}\n".encode())
    return token
