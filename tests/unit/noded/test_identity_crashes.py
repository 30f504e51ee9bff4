"""An identity that is whole or absent, wherever a crash cuts its making short."""

import asyncio
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import noded.identity.directory as directory_module
import noded.identity.store as store_module
from common.errors import InvalidRequest
from common.names import ClusterName, NodeName
from common.tls.authority import issue, make_authority
from common.tls.certificate import read_pem
from common.tls.context import fit_together
from common.tls.keys import KeyPair
from noded.identity import own_token
from noded.identity.store import IdentityStore
from tests.support.clock import simulate
from tests.unit.noded.identities import BETA, certificate, join, open_store


class Crash(BaseException):
    """The power fails."""


class Fuse:
    """Lets a number of disk operations pass, and fails at the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 10**6
        self._watch(monkeypatch, store_module, "write_durably")
        self._watch(monkeypatch, directory_module, "write_durably")
        self._watch(monkeypatch, own_token, "write_durably")
        self._watch(monkeypatch, store_module, "remove_durably")
        self._watch(monkeypatch, directory_module, "sync_directory")
        self._watch(monkeypatch, Path, "rename")
        self._watch(monkeypatch, Path, "mkdir")
        self._watch(monkeypatch, shutil, "rmtree")

    def _watch(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def fused(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Crash
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, fused)


def burn(fuse: Fuse, operations: int, work: Callable[[], Any]) -> bool:
    """Do ``work`` with a fuse of so many operations; tell whether it came to its end."""
    fuse.left = operations
    try:
        asyncio.run(work())
    except Crash:
        return False
    finally:
        fuse.left = 10**6
    return True


def test_a_crash_while_joining_leaves_a_member_or_a_node_that_can_join(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse = Fuse(monkeypatch)
    done, operations, members = False, 0, 0
    while not done:
        root = tmp_path / str(operations)
        store = open_store(root)

        async def work(store: IdentityStore = store) -> None:
            await store.prepare()
            await join(store, authority)

        done = burn(fuse, operations, work)
        again = open_store(root)
        simulate(again.prepare())
        assert (again.member is None) == (again.token is not None)
        if again.member is None:
            simulate(join(again, authority))
        else:
            members += 1
        assert again.member
        assert again.member.node == BETA
        operations += 1
    assert operations > 10
    assert members > 1


def test_a_crash_while_leaving_leaves_a_member_or_a_node_that_can_join(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse = Fuse(monkeypatch)
    done, operations, members = False, 0, 0
    while not done:
        root = tmp_path / str(operations)
        store = open_store(root)
        simulate(store.prepare())
        simulate(join(store, authority))
        done = burn(fuse, operations, store.leave)
        again = open_store(root)
        simulate(again.prepare())
        if again.member is None:
            simulate(join(again, authority))
        else:
            members += 1
        assert again.member
        operations += 1
    assert operations > 5
    assert members >= 1


def shown_end(root: Path) -> float:
    return read_pem((root / "var/lib/gantry/identity/certificate.pem").read_text()).valid_until


def test_a_crash_while_renewing_leaves_one_of_the_two_certificates(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse = Fuse(monkeypatch)
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    done, operations, renewed = False, 0, ""
    while not done:
        renewed = certificate(authority, simulate(store.renewal_request()))
        done = burn(fuse, operations, partial(store.renew, renewed))
        assert store.valid_until == shown_end(tmp_path)
        store = open_store(tmp_path)  # refuses what does not fit together
        simulate(store.prepare())
        assert store.member
        assert store.valid_until == shown_end(tmp_path)
        operations += 1
    assert (tmp_path / "var/lib/gantry/identity/certificate.pem").read_text() == renewed
    assert not (tmp_path / "var/lib/gantry/identity.unfinished").exists()


def test_a_crash_while_the_key_is_replaced_leaves_a_member_with_one_of_both(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse = Fuse(monkeypatch)
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    first = store.who().key
    identity = tmp_path / "var/lib/gantry/identity"
    requested: set[str] = set()
    done, operations = False, 0

    async def replace_key() -> None:
        made = certificate(authority, await store.renewal_request(first))
        requested.add(read_pem(made).key)
        await store.renew(made)

    while not done:
        done = burn(fuse, operations, replace_key)
        store = open_store(tmp_path)  # refuses what does not fit together
        simulate(store.prepare())
        assert store.who().key in (first, *requested)
        assert fit_together(identity / "certificate.pem", identity / "key.pem")
        operations += 1
    assert operations > 5
    assert {store.who().key} == requested, "a repeat has made a further key"
    assert first not in requested
    assert not (identity / "next-key.pem").exists()


@pytest.mark.parametrize("trusted_before", [1, 2])
def test_a_crash_while_trust_changes_leaves_a_certificate_that_is_trusted(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch, trusted_before: int
) -> None:
    fuse = Fuse(monkeypatch)
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    other = make_authority(ClusterName("one"), now=time.time())
    csr = simulate(store.renewal_request())
    both = authority.certificate + other.certificate
    if trusted_before == 2:
        simulate(store.renew(certificate(authority, csr), both))
    trusted = other.certificate if trusted_before == 2 else both
    new = certificate(other, csr)
    done, operations = False, 0
    while not done:
        done = burn(fuse, operations, partial(store.renew, new, trusted))
        store = open_store(tmp_path)  # refuses what does not fit together
        simulate(store.prepare())
        operations += 1
    assert operations > 5
    assert store.who().certificate == new
    assert (tmp_path / "var/lib/gantry/identity/authority.pem").read_text() == trusted


def test_a_crash_while_renaming_leaves_a_member_of_one_of_both_names(
    tmp_path: Path, authority: KeyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse = Fuse(monkeypatch)
    store = open_store(tmp_path)
    simulate(store.prepare())
    simulate(join(store, authority))
    bernd = NodeName("bernd")
    with pytest.raises(InvalidRequest, match="does not make this node bernd"):
        simulate(store.rename(bernd))
    assert store.member
    assert store.member.node == BETA
    csr = simulate(store.renewal_request())
    both = issue(authority, csr, node=BETA, addresses=(), now=time.time(), also=bernd)
    simulate(store.renew(both))
    done, operations = False, 0
    while not done:
        done = burn(fuse, operations, partial(store.rename, bernd))
        store = open_store(tmp_path)
        simulate(store.prepare())
        assert store.member
        assert store.member.node in (BETA, bernd)
        operations += 1
    assert store.member
    assert store.member.node == bernd
    alone = issue(authority, csr, node=bernd, addresses=(), now=time.time())
    simulate(store.renew(alone))
    assert open_store(tmp_path).member == store.member
