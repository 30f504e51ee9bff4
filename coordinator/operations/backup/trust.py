"""What clusters that know one secret believe one another: each thing said is signed with it.

The forms are Ganeti's, whose tools carry them from cluster to cluster. What is signed, and what
nodes say to one another afterwards, is not: the version tells the two apart.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple

from common.errors import Conflict, InvalidRequest
from common.model.secret import DOMAIN_KEY
from common.noderpc.copies import Offer
from coordinator.state.state import State

VERSION = "gantry-1"
BY_SCRIPT = "gantry-2"  # who says so sends what a script writes, if the other side has one, too
HEADER = "X-Ganeti-Signature"
_HELLO = {
    VERSION: "an instance is moved from cluster to cluster",
    BY_SCRIPT: "an instance is moved from cluster to cluster, by scripts if both have them",
}

_PLACES = {False: "place", True: "place of a script"}  # by what is expected there

Place = tuple[str, int, str, str, str]  # address, port, secret, signature, salt
Signed = tuple[str, str, str]  # text, signature, salt


class Destination(NamedTuple):
    """Where one disk is expected, or what a script makes of it."""

    host: str
    offer: Offer
    is_script: bool = False


class Trust(NamedTuple):
    """Signs with a secret, and checks what others have signed with theirs."""

    secret: str

    def handshake(self, salt: str, *, by_script: bool = False) -> Signed:
        version = BY_SCRIPT if by_script else VERSION
        return version, self._sign("handshake", _HELLO[version], salt), salt

    def check_handshake(self, told: Sequence[Any]) -> bool:
        """Refuse a cluster that does not know the secret, or speaks otherwise.

        Returns:
            Whether it can send what a script writes as well.

        Raises:
            InvalidRequest: which of the two.
        """
        version, signature, salt = _texts(told, 3, "The handshake of the other cluster")
        if version not in _HELLO:
            raise InvalidRequest(
                f"The other cluster sends its disks in another way ({version}) than this one takes "
                f"them ({' or '.join(_HELLO)}). Export the instance there to a node, and import it "
                "here."
            )
        if not self._is_signed("handshake", _HELLO[version], signature, salt):
            raise InvalidRequest(
                "The two clusters do not know the same secret: give both the same file with "
                "“gnt-cluster renew-crypto --cluster-domain-secret=FILE”."
            )
        return version == BY_SCRIPT

    def name_key(self, name: str, salt: str) -> Signed:
        return name, self._sign("key", name, salt), salt

    def read_key_name(self, told: Sequence[Any]) -> str:
        """Return the name of a key that this cluster, or one like it, has signed."""
        name, signature, salt = _texts(told, 3, "The name of the key")
        if not self._is_signed("key", name, signature, salt):
            raise InvalidRequest("The name of the key was not signed by this cluster.")
        return name

    def sign_certificate(self, certificate: str, salt: str) -> str:
        signature = self._sign("certificate", certificate, salt)
        return f"{HEADER}: {salt}/{signature}\n\n{certificate}"

    def read_certificate(self, told: str) -> str:
        """Return a certificate of the other cluster's.

        Raises:
            InvalidRequest: it was signed by somebody else, or not at all.
        """
        head, _, certificate = told.partition("\n\n")
        name, _, value = head.partition(":")
        salt, _, signature = value.strip().partition("/")
        is_it = name == HEADER and self._is_signed("certificate", certificate, signature, salt)
        if not is_it:
            raise InvalidRequest("The certificate was not signed by a cluster that is trusted.")
        return certificate

    def name_place(self, index: int, destination: Destination, salt: str) -> Place:
        host, offer, is_script = destination
        signature = self._sign(_PLACES[is_script], _place(index, destination), salt)
        return host, offer.port, offer.secret, signature, salt

    def read_place(self, index: int, told: Place) -> Destination:
        """Return where a disk is expected; whether a script's stream is, the signature tells.

        Raises:
            InvalidRequest: another cluster says so, or of another disk.
        """
        host, port, secret, signature, salt = told
        text = _place(index, Destination(host, Offer(port=port, secret=secret)))
        signed = [
            is_it for is_it, what in _PLACES.items() if self._is_signed(what, text, signature, salt)
        ]
        if not signed:
            raise InvalidRequest(
                f"Where disk {index} is expected was not signed by a cluster that is trusted."
            )
        return Destination(host, Offer(port=port, secret=secret), is_script=signed[0])

    def _sign(self, what: str, text: str, salt: str) -> str:
        message = "\0".join((VERSION, what, salt, text))
        return hmac.new(self.secret.encode(), message.encode(), hashlib.sha256).hexdigest()

    def _is_signed(self, what: str, text: str, signature: str, salt: str) -> bool:
        expected = self._sign(what, text, salt)
        return hmac.compare_digest(expected.encode(), signature.encode())


def trust_of(state: State) -> Trust:
    """Return what this cluster signs with.

    Raises:
        Conflict: it shares no secret with any other.
    """
    if DOMAIN_KEY not in state.secrets:
        raise Conflict(
            "This cluster knows no secret that another one knows, too. Make one, such as by "
            "“openssl rand -hex 32 >FILE”, and give it to both with “gnt-cluster renew-crypto "
            "--cluster-domain-secret=FILE”."
        )
    return Trust(state.secrets[DOMAIN_KEY].value)


def _place(index: int, destination: Destination) -> str:
    host, offer, _ = destination
    return f"{index}:{host}:{offer.port}:{offer.secret}"


def _texts(told: Sequence[Any], count: int, what: str) -> list[str]:
    if isinstance(told, str) or len(told) != count:
        raise InvalidRequest(f"{what} is not of its form: it has {count} parts.")
    return [str(part) for part in told]
