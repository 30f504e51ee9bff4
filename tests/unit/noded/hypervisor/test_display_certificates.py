"""A guest is not stopped for a display whose certificate QEMU would refuse."""

import time
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.kvm import KvmParameters
from common.names import ClusterName, NodeName
from common.tls.authority import issue, make_authority
from common.tls.keys import KeyPair, make_key, make_request
from noded.hypervisor.kvm.display_certificates import read_certificates
from noded.hypervisor.kvm.display_tls import AUTHORITY, CERTIFICATE, KEY
from noded.hypervisor.rules import Rules

NOW = time.time()


def authority(name: str) -> KeyPair:
    return make_authority(ClusterName(name), now=NOW)


def shown(directory: Path, signer: KeyPair, trusted: str) -> None:
    """Put what displays show into a directory: signed by one, with the certificates of others."""
    node, key = NodeName("alpha"), make_key()
    request = make_request(key, node)
    certificate = issue(signer, request, node=node, addresses=("192.0.2.1",), now=NOW)
    for name, text in ((KEY, key), (CERTIFICATE, certificate), (AUTHORITY, trusted)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o600)


def read(directory: Path) -> None:
    parameters = KvmParameters(
        vnc_bind_address="127.0.0.1", vnc_tls=True, vnc_x509_path=str(directory)
    )
    rules = Rules(source="rules", secrets=(str(directory),))
    found = read_certificates(rules, parameters, never=())
    assert found.vnc
    assert set(found.vnc) == {KEY, CERTIFICATE, AUTHORITY}


def test_what_its_authority_has_signed_is_shown(tmp_path: Path) -> None:
    own = authority("shop")
    shown(tmp_path, own, own.certificate)
    read(tmp_path)


def test_one_of_several_authorities_is_enough(tmp_path: Path) -> None:
    own = authority("shop")
    shown(tmp_path, own, authority("another").certificate + own.certificate)
    read(tmp_path)


@pytest.mark.parametrize("name", ["shop", "another"])
def test_what_another_authority_has_signed_is_refused(tmp_path: Path, name: str) -> None:
    """One of the same name, too: it may have been made anew since."""
    shown(tmp_path, authority("shop"), authority(name).certificate)
    with pytest.raises(NodeFailure, match=r"ca-cert.pem has not signed .*server-cert.pem"):
        read(tmp_path)
