"""An identity is its node's alone, and what does not fit it is not taken."""

import asyncio
import time
from pathlib import Path

import pytest

import noded.identity.directory as directory_module
from common.errors import InvalidRequest, NodeFailure
from common.names import ClusterName
from common.paths import Paths
from common.tls.authority import issue, make_authority
from common.tls.context import AUTHORITY
from common.tls.keys import KeyPair, make_key, make_request
from noded.durable_file import write_durably
from noded.identity.keys import ChildKeyMaker
from tests.support.clock import simulate
from tests.unit.noded.identities import BETA, certificate, join, open_store


def test_a_trust_that_the_disk_has_taken_before_it_failed_is_in_force(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or this node would say to trust the new authority alone, and let in who has the former's."""
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    other = make_authority(ClusterName("one"), now=time.time())
    csr = simulate(store.renewal_request())
    simulate(store.renew(certificate(other, csr), authority.certificate + other.certificate))
    in_force: list[str] = []
    store.on_change = lambda: in_force.append(store.who().authority)

    def broken(path: Path, data: bytes) -> None:
        write_durably(path, data)
        if path.parent.name == "identity" and path.name == AUTHORITY:
            raise NodeFailure("The disk is broken.")

    monkeypatch.setattr(directory_module, "write_durably", broken)
    with pytest.raises(NodeFailure, match="broken"):
        simulate(store.renew(certificate(other, csr), other.certificate))
    assert store.who().authority == other.certificate
    assert in_force == [other.certificate]


def test_a_certificate_for_a_key_that_was_not_asked_for_is_refused(
    tmp_path: Path, authority: KeyPair
) -> None:
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    before = store.who()
    other = certificate(authority, make_request(make_key(), BETA))
    with pytest.raises(InvalidRequest, match="it was asked for none"):
        simulate(store.renew(other))
    simulate(store.renewal_request(before.key))
    with pytest.raises(InvalidRequest, match="Cannot use the identity"):
        simulate(store.renew(other))
    assert open_store(tmp_path).who() == before


def test_keys_and_tokens_are_for_root_only(tmp_path: Path, authority: KeyPair) -> None:
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    identity = tmp_path / "var/lib/gantry/identity"
    assert identity.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o077 == 0 for file in identity.iterdir())


def test_a_token_is_worth_nothing_once_its_node_has_joined(
    tmp_path: Path, authority: KeyPair
) -> None:
    store = open_store(tmp_path)
    simulate(store.prepare())
    paths = Paths(str(tmp_path))
    assert paths.join_token.exists()
    simulate(join(store, authority))
    assert store.token is None
    assert not paths.join_token.exists()
    assert [path.name for path in paths.state.iterdir()] == ["identity"]


def test_an_expired_member_starts_and_warns(
    tmp_path: Path, authority: KeyPair, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    csr = simulate(store.renewal_request())
    old = issue(
        authority, csr, node=BETA, addresses=(), now=time.time() - 2e8
    )  # fmt: skip
    (tmp_path / "var/lib/gantry/identity/certificate.pem").write_text(old)
    assert open_store(tmp_path).member
    assert "If the clock is wrong, set it; else the certificate has to be renewed" in caplog.text


def test_a_member_whose_clock_is_years_behind_starts_and_names_the_clock(
    tmp_path: Path, authority: KeyPair, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    csr = simulate(store.renewal_request())
    later = issue(authority, csr, node=BETA, addresses=(), now=time.time() + 2e8)
    (tmp_path / "var/lib/gantry/identity/certificate.pem").write_text(later)
    assert open_store(tmp_path).member
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert f"By its clock this machine has {today}" in caplog.text
    assert "damaged" not in caplog.text


def test_the_child_process_makes_the_same_as_we_do() -> None:
    async def scenario() -> None:
        children = ChildKeyMaker()
        pair = await children.temporary(time.time())
        assert pair.certificate.startswith("-----BEGIN CERTIFICATE-----")
        made = await children.request(BETA, None)
        again = await children.request(BETA, made.key)
        assert again.key == made.key
        assert "BEGIN CERTIFICATE REQUEST" in again.csr

    asyncio.run(scenario())
