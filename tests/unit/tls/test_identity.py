"""Certificates as the TLS library judges them, not as we read them."""

import time
from pathlib import Path

import pytest

from common.errors import InvalidRequest
from common.names import ClusterName, NodeName
from common.tls.authority import issue, make_authority
from common.tls.context import AUTHORITY, CERTIFICATE, KEY, Peer, check_identity
from common.tls.keys import KeyPair, make_key, make_request, make_temporary

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
    path: Path, authority: KeyPair, node: NodeName = ALPHA, *, candidate: bool = False,
    now: float | None = None,
) -> Path:  # fmt: skip
    key = make_key()
    certificate = issue(
        authority, make_request(key, node), node=node, addresses=("192.0.2.1", "2001:db8::1"),
        candidate=candidate, now=time.time() if now is None else now,
    )  # fmt: skip
    return write(path, authority.certificate, key, certificate)


@pytest.mark.parametrize("candidate", [True, False])
def test_a_certificate_tells_the_node_and_whether_it_gives_orders(
    tmp_path: Path, authority: KeyPair, candidate: bool
) -> None:
    made = identity(tmp_path, authority, candidate=candidate)
    assert check_identity(made, ALPHA) == Peer(ALPHA, candidate)


def test_the_name_must_be_the_one_asked_for(tmp_path: Path, authority: KeyPair) -> None:
    with pytest.raises(InvalidRequest, match="mismatch"):
        check_identity(identity(tmp_path, authority), BETA)


def test_a_name_too_long_for_the_common_name_is_fine(tmp_path: Path, authority: KeyPair) -> None:
    node = NodeName(".".join(["a" * 40, "b" * 40, "example.com"]))
    assert check_identity(identity(tmp_path, authority, node), node).node == node


def test_a_request_cannot_choose_its_name(tmp_path: Path, authority: KeyPair) -> None:
    key = make_key()
    certificate = issue(
        authority, make_request(key, BETA), node=ALPHA, addresses=(), candidate=False,
        now=time.time(),
    )  # fmt: skip
    made = write(tmp_path, authority.certificate, key, certificate)
    assert check_identity(made, ALPHA).node == ALPHA


def test_an_expired_certificate_is_refused(tmp_path: Path, authority: KeyPair) -> None:
    made = identity(tmp_path, authority, now=time.time() - 6 * YEAR_S)
    with pytest.raises(InvalidRequest, match="expired"):
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
    made = identity(tmp_path, authority, BETA, candidate=True)
    false_authority = KeyPair((made / KEY).read_text(), (made / CERTIFICATE).read_text())
    forged = tmp_path / "forged"
    forged.mkdir()
    key = make_key()
    certificate = issue(
        false_authority, make_request(key, ALPHA), node=ALPHA, addresses=(), candidate=True,
        now=time.time(),
    )  # fmt: skip
    # The whole chain is shown, as an attacker would.
    write(forged, authority.certificate, key, certificate + false_authority.certificate)
    with pytest.raises(InvalidRequest, match=r"CA cert|basic constraints|path length"):
        check_identity(forged, ALPHA)


@pytest.mark.parametrize("text", ["", "garbage", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n"])
def test_a_malformed_request_is_refused(authority: KeyPair, text: str) -> None:
    with pytest.raises(InvalidRequest, match="no certificate request"):
        issue(authority, text, node=ALPHA, addresses=(), candidate=False, now=time.time())


def test_a_temporary_certificate_is_none_of_the_cluster(tmp_path: Path, authority: KeyPair) -> None:
    key, certificate = make_temporary(now=time.time())
    with pytest.raises(InvalidRequest, match="does not make this node alpha"):
        check_identity(write(tmp_path, authority.certificate, key, certificate), ALPHA)
