"""Which certificate each display of a guest shows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from noded.hypervisor.kvm.display_tls import FILES, KEY
from noded.hypervisor.rules import Rules, read_secret

_LONGEST = 1 << 18  # bytes of a file

Pem = Mapping[str, bytes]


class Certificates(NamedTuple):
    """Of displays, file by file; None where there is none."""

    vnc: Pem | None
    spice: Pem | None


def read_certificates(
    rules: Rules, parameters: KvmParameters, *, never: Sequence[Path]
) -> Certificates:
    """Return what a guest's displays show.

    Args:
        rules: of this node.
        parameters: of the guest.
        never: directories of noded's own.

    Raises:
        NodeFailure: a file is missing, not allowed, or its key is for others to read.
    """

    def read(directory: str) -> Pem:
        return {
            name: read_secret(
                rules,
                f"{directory.rstrip('/')}/{name}",
                never=never,
                limit=_LONGEST,
                is_public=name != KEY,
            )
            for name in FILES
        }

    vnc = spice = None
    if parameters.vnc_bind_address and parameters.vnc_tls and parameters.vnc_x509_path:
        vnc = read(parameters.vnc_x509_path)
    if parameters.spice_bind and parameters.spice_use_tls:
        if not rules.spice:
            raise NodeFailure(
                "Its spice_use_tls needs a certificate on this node; root says in "
                f"{rules.source} in which directory it is (“spice /DIRECTORY”).",
                path=rules.source,
            )
        spice = read(rules.spice)
    return Certificates(vnc, spice)
