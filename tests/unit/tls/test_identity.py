"""Certificates as the TLS library judges them, not as we read them."""

import hashlib
import ssl
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from common.errors import InvalidRequest
from common.names import ClusterName, KeyId, NodeName
from common.tls.authority import issue, make_authority
from common.tls.certificate import read_certificate, read_pem
from common.tls.context import AUTHORITY, CERTIFICATE, KEY, Peer, WrongTime, check_identity
from common.tls.keys import KeyPair, make_key, make_request, make_temporary, read_key

ALPHA, BETA = NodeName("alpha.example.com"), NodeName("beta.example.com")
YEAR_S = 365 * 86_400.0


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_authority(ClusterName("one.example.com"), now=time.time())


def write(path: Path, authority: str, key: str, certificate: str) -> Path:
    for name, text in ((AUTHORITY, authority), (KEY, key), (CERTIFICATE, certificate)):
        (path / name).write_text(text, encoding="ascii")
    return path


def identity(
    path: Path, authority: KeyPair, node: NodeName = ALPHA, *, now: float | None = None
) -> Path:
    key = make_key()
    certificate = issue(
        authority, make_request(key, node), node=node, addresses=("192.0.2.1", "2001:db8::1"),
        now=time.time() if now is None else now,
    )  # fmt: skip
    return write(path, authority.certificate, key, certificate)


def test_a_certificate_tells_the_node_and_its_key(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority)
    key = read_key((made / KEY).read_text()).public_key()
    whole = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert check_identity(made, ALPHA) == Peer(ALPHA, KeyId(hashlib.sha256(whole).hexdigest()))


def test_a_renewed_certificate_has_the_same_key_and_another_nodes_has_not(
    tmp_path: Path, authority: KeyPair
) -> None:
    key, other = make_key(), make_key()
    requests = [make_request(each, ALPHA) for each in (key, key, other)]
    first, renewed, forged = (
        read_pem(issue(authority, request, node=ALPHA, addresses=(), now=time.time())).key
        for request in requests
    )
    assert first == renewed != forged


@pytest.mark.parametrize("years", [0, 30])  # in UTCTime and, from 2050 on, GeneralizedTime
def test_a_certificate_tells_when_it_is_valid(years: int) -> None:
    now = float(int(time.time() + years * YEAR_S))
    shown = read_pem(make_temporary(now=now).certificate)
    assert shown.valid_from == now - 86_400
    assert shown.valid_until == now + 3650 * 86_400


def test_a_certificate_is_found_below_what_is_told_of_it() -> None:
    pem = make_temporary(now=time.time()).certificate
    assert read_pem(f"Certificate:\n    Data: of alpha\n{pem}{pem}") == read_pem(pem)


@pytest.mark.parametrize("cut", [0, 1, 2, 30, 200])
def test_what_is_no_certificate_is_refused(authority: KeyPair, cut: int) -> None:
    whole = ssl.PEM_cert_to_DER_cert(authority.certificate)
    with pytest.raises(InvalidRequest, match="no certificate"):
        read_certificate(whole[:cut])


def test_the_name_must_be_the_one_asked_for(tmp_path: Path, authority: KeyPair) -> None:
    with pytest.raises(InvalidRequest, match="mismatch"):
        check_identity(identity(tmp_path, authority), BETA)


def test_a_name_too_long_for_the_common_name_is_fine(tmp_path: Path, authority: KeyPair) -> None:
    node = NodeName(".".join(["a" * 40, "b" * 40, "example.com"]))
    assert check_identity(identity(tmp_path, authority, node), node).node == node


def test_a_request_cannot_choose_its_name(tmp_path: Path, authority: KeyPair) -> None:
    key = make_key()
    certificate = issue(
        authority, make_request(key, BETA), node=ALPHA, addresses=(),
        now=time.time(),
    )  # fmt: skip
    made = write(tmp_path, authority.certificate, key, certificate)
    assert check_identity(made, ALPHA).node == ALPHA


def test_an_expired_certificate_is_refused(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority, now=time.time() - 6 * YEAR_S)
    with pytest.raises(WrongTime, match="the certificate has to be renewed"):
        check_identity(made, ALPHA)


def test_a_clock_that_is_behind_is_named(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority, now=time.time() + 6 * YEAR_S)
    year = time.gmtime(time.time() + 6 * YEAR_S - 86_400).tm_year
    with pytest.raises(WrongTime, match=f"valid from {year}.*If the clock is wrong, set it"):
        check_identity(made, ALPHA)


def test_clocks_may_differ_by_hours(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority, now=time.time() + 12 * 3600)
    assert check_identity(made, ALPHA).node == ALPHA


def test_a_certificate_never_outlives_its_authority(tmp_path: Path) -> None:
    old = make_authority(ClusterName("old"), now=time.time() - 17 * YEAR_S)
    assert check_identity(identity(tmp_path, old), ALPHA).node == ALPHA


def test_another_clusters_certificate_is_refused(tmp_path: Path, authority: KeyPair) -> None:
    other = make_authority(ClusterName("one.example.com"), now=time.time())  # of the same name
    made = identity(tmp_path, other)
    (made / AUTHORITY).write_text(authority.certificate, encoding="ascii")
    with pytest.raises(InvalidRequest, match="does not make this node alpha"):
        check_identity(made, ALPHA)


def test_a_certificate_for_another_key_is_refused(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority)
    (made / KEY).write_text(make_key(), encoding="ascii")
    with pytest.raises(InvalidRequest, match="Cannot use the identity"):
        check_identity(made, ALPHA)


def test_a_missing_file_is_named(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority)
    (made / AUTHORITY).unlink()
    with pytest.raises(InvalidRequest, match=str(tmp_path)):
        check_identity(made, ALPHA)


def test_a_node_cannot_act_as_authority(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority, BETA)
    false_authority = KeyPair((made / KEY).read_text(), (made / CERTIFICATE).read_text())
    forged = tmp_path / "forged"
    forged.mkdir()
    key = make_key()
    certificate = issue(
        false_authority, make_request(key, ALPHA), node=ALPHA, addresses=(),
        now=time.time(),
    )  # fmt: skip
    # The whole chain is shown, as an attacker would.
    write(forged, authority.certificate, key, certificate + false_authority.certificate)
    with pytest.raises(InvalidRequest, match=r"CA cert|basic constraints|path length"):
        check_identity(forged, ALPHA)


@pytest.mark.parametrize("text", ["", "garbage", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"])
def test_a_malformed_request_is_refused(authority: KeyPair, text: str) -> None:
    with pytest.raises(InvalidRequest, match="no certificate request"):
        issue(authority, text, node=ALPHA, addresses=(), now=time.time())


def test_a_temporary_certificate_is_none_of_the_cluster(tmp_path: Path, authority: KeyPair) -> None:
    key, certificate = make_temporary(now=time.time())
    with pytest.raises(InvalidRequest, match="does not make this node alpha"):
        check_identity(write(tmp_path, authority.certificate, key, certificate), ALPHA)
