"""Which certificate each display of a guest shows."""

import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from common.errors import InvalidRequest, NodeFailure
from common.model.kvm import KvmParameters
from common.tls.certificate import read_pem
from noded.hypervisor.kvm.display_tls import AUTHORITY, CERTIFICATE, FILES, KEY
from noded.hypervisor.rules import Rules, read_secret

_LONGEST = 1 << 18  # bytes of a file
# By which OpenSSL says that it is not the authority's: a bad signature, or no way to its signer.
# Source: x509_vfy.h. What else it finds, GnuTLS, which QEMU verifies with, may see in another way.
_NOT_ITS = frozenset({7, 18, 19, 20, 21})

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
        _showing(Path(directory))
        return found

    vnc = spice = None
    if parameters.vnc_bind_address and parameters.vnc_tls and parameters.vnc_x509_path:
        vnc = read(parameters.vnc_x509_path)
        directory = Path(parameters.vnc_x509_path)
        _check_time(directory, vnc)  # at that of SPICE, QEMU does not look
        _check_signed(directory)
    if parameters.spice_bind and parameters.spice_use_tls:
        if not rules.spice:
            raise NodeFailure(
                "Its spice_use_tls needs a certificate on this node; root says in "
                f"{rules.source} in which directory it is (“spice /DIRECTORY”).",
                path=rules.source,
            )
        spice = read(rules.spice)
    return Certificates(vnc, spice)


def _showing(directory: Path) -> ssl.SSLContext:
    """Return what shows a certificate; its key has to be of use."""
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
    return context


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


def _check_signed(directory: Path) -> None:
    """Refuse what QEMU refuses: a certificate that its own authority has not signed."""
    viewer = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    viewer.check_hostname = False
    viewer.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority may be below another one
    viewer.set_ciphers("ALL:@SECLEVEL=0")
    certificate, authority = directory / CERTIFICATE, directory / AUTHORITY
    try:
        viewer.load_verify_locations(authority)
        _meet(viewer, _showing(directory))
    except ssl.SSLCertVerificationError as error:
        if error.verify_code in _NOT_ITS:
            raise NodeFailure(
                f"{authority} has not signed {certificate}, so QEMU shows it at no display: "
                f"{error.verify_message}.",
                path=str(certificate),
            ) from error
    except (OSError, ssl.SSLError):
        return  # what is amiss with it QEMU says


def _meet(viewer: ssl.SSLContext, display: ssl.SSLContext) -> None:
    """Have a viewer look at a certificate, without a network."""
    to_viewer, to_display = ssl.MemoryBIO(), ssl.MemoryBIO()
    looks = viewer.wrap_bio(to_viewer, to_display)
    shows = display.wrap_bio(to_display, to_viewer, server_side=True)
    for side in (looks, shows, looks):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
