"""The simulated disks lose what a real one may lose, and nothing else."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from common.names import ClusterId, ClusterName, Epoch, KeyId, NodeId, NodeName, Serial
from common.noderpc.identity import Membership
from common.noderpc.roster import Revocations, Roster
from common.revoked_keys import RevokedKeys
from common.tls.authority import issue, make_authority
from common.tls.keys import make_key, make_request
from noded.calls.grants import Grant, GrantFile
from noded.calls.revoked import RevokedFile
from noded.calls.roster import KnownCandidates
from noded.durable_file import sync_directory, write_durably
from noded.identity.directory import IdentityDirectory
from noded.replica.store import ReplicaFile
from tests.support.clock import simulate
from tests.support.disk import Disk
from tests.support.replica_states import COMMITS, STATES, contents

TRIES = 30
KEYS = tuple(KeyId(f"{number:064x}") for number in range(5))


def _found(root: Path, work: Callable[[Path], None], look: Callable[[Path], object]) -> set[object]:
    """Do some work on a disk; return all that may be found after a power cut right then."""
    found: set[object] = set()
    for seed in range(TRIES):
        place = root / str(seed)
        place.mkdir()
        disk = Disk(place, Random(seed))
        with disk.watched():
            work(place)
            disk.become(place, disk.after_a_power_cut(place))
        found.add(look(place))
    return found


def _text(place: Path) -> str | None:
    path = place / "file"
    return path.read_text() if path.exists() else None


def test_a_file_that_is_written_durably_is_there(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        write_durably(place / "file", b"old")
        write_durably(place / "file", b"new")

    assert _found(tmp_path, work, _text) == {"new"}


def test_a_file_that_was_not_synced_may_be_empty_or_absent(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        (place / "file").write_text("new")

    assert _found(tmp_path, work, _text) == {"new", "", None}


def test_a_name_that_was_not_synced_may_be_the_old_one(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        write_durably(place / "file", b"old")
        with (place / "next").open("wb") as file:
            file.write(b"new")
            file.flush()
            os.fsync(file.fileno())
        (place / "next").rename(place / "file")

    assert _found(tmp_path, work, _text) == {"old", "new"}


def test_a_grant_that_was_read_is_there_though_who_wrote_it_was_killed(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        file = GrantFile(place / "grant")
        simulate(file.save(Grant(epoch=Epoch(1), master=NodeName("alpha"))))
        with patch("noded.durable_file.sync_directory"):  # it does not come to that
            simulate(file.save(Grant(epoch=Epoch(7), master=NodeName("beta"))))
        assert file.load().epoch == 7

    assert _found(tmp_path, work, lambda place: GrantFile(place / "grant").load().epoch) == {7}


def test_keys_that_were_read_stay_revoked_though_who_wrote_them_was_killed(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        file = RevokedFile(place / "keys")
        file.write(RevokedKeys(KEYS[:2]))
        with patch("noded.calls.revoked.os.fsync"):  # it does not come to that
            file.write(RevokedKeys(KEYS))
        assert RevokedFile(place / "keys").list.keys == KEYS

    assert _found(tmp_path, work, lambda place: RevokedFile(place / "keys").list.keys) == {KEYS}


def test_a_roster_that_was_read_is_in_force_though_who_wrote_it_was_killed(tmp_path: Path) -> None:
    def rosters(place: Path) -> KnownCandidates:
        elsewhere = place / "elsewhere"  # else what syncs the names there syncs the roster's
        elsewhere.mkdir(exist_ok=True)
        return KnownCandidates(place / "roster", elsewhere / "keys", place / "names")

    def work(place: Path) -> None:
        simulate(rosters(place).begin(Roster(epoch=Epoch(1), serial=Serial(1))))
        with patch("noded.durable_file.sync_directory"):  # it does not come to that
            simulate(rosters(place).update(Roster(epoch=Epoch(1), serial=Serial(2)), Revocations()))
        assert rosters(place).roster.serial == 2

    assert _found(tmp_path, work, lambda place: rosters(place).roster.serial) == {2}


def test_a_member_that_was_one_stays_one_though_who_made_it_was_killed(tmp_path: Path) -> None:
    name, key = NodeName("beta"), make_key()
    authority = make_authority(ClusterName("shop"), now=time.time())
    request = make_request(key, name)
    membership = Membership(
        cluster=ClusterName("shop"), cluster_uuid=ClusterId("c"), node=name,
        node_uuid=NodeId("b"), authority=authority.certificate, roster=Roster(),
        certificate=issue(authority, request, node=name, addresses=(), now=time.time()),
    )  # fmt: skip

    def member(place: Path) -> NodeName | None:
        found = IdentityDirectory(place / "identity").load()
        return found.node if found else None

    def work(place: Path) -> None:
        with patch("noded.identity.directory.sync_directory"):  # it does not come to that
            IdentityDirectory(place / "identity").become(membership, key.encode())
        assert member(place) == name

    with patch("noded.identity.directory.check_identity"):  # a handshake, which takes long
        assert _found(tmp_path, work, member) == {name}


def test_a_grant_is_there(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        file = GrantFile(place / "grant")
        simulate(file.save(Grant(epoch=Epoch(1), master=NodeName("alpha"))))
        simulate(file.save(Grant(epoch=Epoch(7), master=NodeName("beta"))))

    assert _found(tmp_path, work, lambda place: GrantFile(place / "grant").load().epoch) == {7}


def _commit(place: Path) -> None:
    replica = ReplicaFile(place / "state.sqlite")
    for commit in COMMITS[:5]:
        replica.append((commit,))


def _newest(place: Path) -> int:
    stamp, rows = contents(place / "state.sqlite")
    assert rows == STATES[stamp]
    return stamp.serial


def test_every_commit_is_there(tmp_path: Path) -> None:
    assert _found(tmp_path, _commit, _newest) == {COMMITS[4].serial}


def _count(place: Path) -> object:
    db = sqlite3.connect(place / "file.sqlite")
    return db.execute("SELECT count(*) FROM numbers").fetchone()[0]


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_commits_that_sqlite_does_not_sync_may_be_lost(tmp_path: Path, synchronous: str) -> None:
    still_open = []  # closing it would sync

    def work(place: Path) -> None:
        db = sqlite3.connect(place / "file.sqlite", isolation_level=None)
        still_open.append(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE numbers (number INTEGER)")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sync_directory(place)
        db.execute(f"PRAGMA synchronous={synchronous}")
        for number in range(3):
            db.execute("INSERT INTO numbers VALUES (?)", (number,))

    assert {0, 3} <= _found(tmp_path, work, _count)


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_log_keeps_what_was_synced_and_may_be_torn_behind_it(
    tmp_path: Path, begins_anew: bool
) -> None:
    still_open = []  # closing it would sync

    def work(place: Path) -> None:
        db = sqlite3.connect(place / "file.sqlite", isolation_level=None)
        still_open.append(db)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE numbers (number INTEGER)")
        sync_directory(place)
        for number in range(2):
            db.execute("INSERT INTO numbers VALUES (?)", (number,))
        if begins_anew:
            db.execute("PRAGMA wal_checkpoint")  # the next commit is written over the first
        db.execute("PRAGMA synchronous=OFF")
        for number in range(4):
            db.execute("INSERT INTO numbers VALUES (?)", (number,))

    found = _found(tmp_path, work, _count)
    assert {2, 6} < found <= {2, 3, 4, 5, 6}


def test_a_file_that_was_deleted_durably_stays_away(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        _commit(place)
        ReplicaFile(place / "state.sqlite").erase()

    assert _found(tmp_path, work, lambda place: tuple(place.iterdir())) == {()}
