"""Which certificate each display of a guest shows."""

import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from common.errors import InvalidRequest, NodeFailure
from common.model.kvm import KvmParameters
from common.tls.certificate import read_pem
from noded.hypervisor.kvm.display_tls import AUTHORITY, CERTIFICATE, FILES, KEY
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
        NodeFailure: a file is missing, not allowed, or its key is for others to read; or QEMU
            would not take them.
    """

    def read(directory: str) -> Pem:
        found = {
            name: read_secret(
                rules,
                f"{directory.rstrip('/')}/{name}",
                never=never,
                limit=_LONGEST,
                is_public=name != KEY,
            )
            for name in FILES
        }
        _check_key(Path(directory))
        return found

    vnc = spice = None
    if parameters.vnc_bind_address and parameters.vnc_tls and parameters.vnc_x509_path:
        vnc = read(parameters.vnc_x509_path)
        _check_time(Path(parameters.vnc_x509_path), vnc)  # that of SPICE, QEMU does not look at
    if parameters.spice_bind and parameters.spice_use_tls:
        if not rules.spice:
            raise NodeFailure(
                "Its spice_use_tls needs a certificate on this node; root says in "
                f"{rules.source} in which directory it is (“spice /DIRECTORY”).",
                path=rules.source,
            )
        spice = read(rules.spice)
    return Certificates(vnc, spice)


def _check_key(directory: Path) -> None:
    certificate, key = directory / CERTIFICATE, directory / KEY
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")  # how strong it is to be, QEMU says
    try:
        context.load_cert_chain(certificate, key, password="")  # else somebody is asked for one
    except (OSError, ssl.SSLError) as error:
        raise NodeFailure(
            f"{key} is not the key of {certificate}, or has a password, so no display can show "
            "that.",
            path=str(key),
        ) from error


def _check_time(directory: Path, shown: Pem) -> None:
    """Refuse what QEMU refuses: a certificate, or its authority's, that is not valid now."""
    now = time.time()
    for name in (AUTHORITY, CERTIFICATE):
        path = directory / name
        try:
            contents = read_pem(shown[name].decode("ascii", "replace"))
        except InvalidRequest as error:
            raise NodeFailure(f"{path}: {error.message}", path=str(path)) from error
        if not contents.valid_from <= now < contents.valid_until:
            raise NodeFailure(
                f"{path} has expired, or is not valid yet, so QEMU shows it at no display.",
                path=str(path),
            )
