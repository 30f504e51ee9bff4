"""Whom a node listens to, and how that changes; over a real file."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import noded.calls.revoked as revoked_module
import noded.calls.roster as roster_module
from common.errors import Conflict, NodeFailure, NotListed
from common.messages import to_json
from common.names import ClusterName, Epoch, KeyId, NodeName, Serial
from common.noderpc.identity import Identity, Join
from common.noderpc.instances import Instances
from common.noderpc.mastership import Mastership
from common.noderpc.roster import Roster
from common.revoked_keys import RevokedKeys
from common.rpc.declare import CallSpec
from common.tls.context import Peer
from noded.calls.caller import check_caller
from noded.calls.roster import KnownCandidates
from tests.support.clock import simulate

JOIN = Join.calls["request"]
ORDER = Instances.calls["ensure_gone"]
GRANT = Mastership.calls["grant"]
VOTE = Mastership.calls["vote"]
LEAVE = Identity.calls["leave"]

CLUSTER = ClusterName("one.example.com")
ALPHA = Peer(NodeName("alpha"), KeyId("a" * 64))
BETA = Peer(NodeName("beta"), KeyId("b" * 64))
FORGED = Peer(NodeName("alpha"), KeyId("f" * 64))
REGULAR = Peer(NodeName("gamma"), KeyId("c" * 64))


def roster(*peers: Peer, epoch: int = 1, serial: int = 1) -> Roster:
    listed = {peer.node: peer.key for peer in peers}
    return Roster(epoch=Epoch(epoch), serial=Serial(serial), candidates=listed)


def known_at(root: Path) -> KnownCandidates:
    return KnownCandidates(root / "roster.json", root / "revoked-keys", root / "master_candidates")


@pytest.fixture
def known(tmp_path: Path) -> KnownCandidates:
    """Know alpha and nobody else."""
    known = known_at(tmp_path)
    simulate(known.begin(roster(ALPHA)))
    return known


@pytest.mark.parametrize(
    ("call", "caller", "cluster"),
    [
        (JOIN, None, None),
        (JOIN, ALPHA, None),
        (ORDER, ALPHA, CLUSTER),
        (GRANT, ALPHA, CLUSTER),
        (VOTE, ALPHA, CLUSTER),
        (LEAVE, ALPHA, CLUSTER),
    ],
)
def test_these_may(
    known: KnownCandidates, call: CallSpec, caller: Peer | None, cluster: ClusterName | None
) -> None:
    check_caller(call, caller, cluster, known)


@pytest.mark.parametrize(
    ("call", "caller", "cluster", "why"),
    [
        (ORDER, None, None, "in no cluster yet"),
        (VOTE, None, None, "in no cluster yet"),
        (ORDER, ALPHA, None, "in no cluster yet"),
        (JOIN, None, CLUSTER, "in the cluster one.example.com already"),
        (JOIN, ALPHA, CLUSTER, "in the cluster one.example.com already"),
        (ORDER, None, CLUSTER, "needs a certificate"),
        (VOTE, None, CLUSTER, "needs a certificate"),
        (ORDER, REGULAR, CLUSTER, "gamma may not ask for instances.ensure_gone"),
        (GRANT, REGULAR, CLUSTER, "no master candidate. This node listens to alpha."),
        (VOTE, REGULAR, CLUSTER, "no master candidate"),
        (LEAVE, REGULAR, CLUSTER, "no master candidate"),
        (ORDER, FORGED, CLUSTER, "no master candidate with this key"),
    ],
)
def test_these_may_not(
    known: KnownCandidates,
    call: CallSpec,
    caller: Peer | None,
    cluster: ClusterName | None,
    why: str,
) -> None:
    with pytest.raises(Conflict, match=why):
        check_caller(call, caller, cluster, known)


def test_who_is_refused_hears_who_is_listed_and_since_which_state(known: KnownCandidates) -> None:
    """Whoever may know more is no silent node to one who takes over without a majority."""
    simulate(known.replace(roster(BETA, epoch=3, serial=7)))
    with pytest.raises(NotListed) as refused:
        check_caller(VOTE, ALPHA, CLUSTER, known)
    assert refused.value.detail == {"listed": ["beta"], "age": [3, 7]}


def test_names_without_a_roster_are_of_no_age(tmp_path: Path) -> None:
    (tmp_path / "master_candidates").write_text("beta\n")
    with pytest.raises(NotListed) as refused:
        check_caller(VOTE, ALPHA, CLUSTER, known_at(tmp_path))
    assert refused.value.detail == {"listed": ["beta"]}


def test_a_roster_survives_a_restart(known: KnownCandidates, tmp_path: Path) -> None:
    simulate(known.replace(roster(BETA, serial=2)))
    again = known_at(tmp_path)
    assert again.roster == roster(BETA, serial=2)
    assert (again.includes(BETA), again.includes(ALPHA)) == (True, False)


@pytest.mark.parametrize(("epoch", "serial"), [(2, 6), (2, 7), (1, 900)])
def test_an_older_roster_brings_nobody_back(
    known: KnownCandidates, tmp_path: Path, epoch: int, serial: int
) -> None:
    simulate(known.replace(roster(BETA, epoch=2, serial=7)))
    simulate(known.replace(roster(ALPHA, epoch=epoch, serial=serial)))
    for each in (known, known_at(tmp_path)):
        assert (each.includes(BETA), each.includes(ALPHA)) == (True, False)


def test_a_later_masters_roster_is_newer_whatever_its_serial(known: KnownCandidates) -> None:
    simulate(known.replace(roster(BETA, epoch=2, serial=700)))
    simulate(known.replace(roster(ALPHA, epoch=3, serial=5)))
    assert known.includes(ALPHA)


def test_a_full_disk_leaves_the_old_roster_in_force(
    known: KnownCandidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise NodeFailure("the disk is full")

    monkeypatch.setattr(roster_module, "write_durably", full)
    with pytest.raises(NodeFailure, match="full"):
        simulate(known.replace(roster(BETA, serial=2)))
    for each in (known, known_at(tmp_path)):
        assert (each.includes(BETA), each.includes(ALPHA)) == (False, True)


def test_a_damaged_roster_is_never_guessed(known: KnownCandidates, tmp_path: Path) -> None:
    (tmp_path / "roster.json").write_text('{"epoch":1,')
    with pytest.raises(NodeFailure, match="Copy the same file from another node"):
        known_at(tmp_path)


def test_after_an_upgrade_the_names_of_ssconf_count_until_there_is_a_roster(tmp_path: Path) -> None:
    (tmp_path / "master_candidates").write_text("alpha\nbeta\n")
    known = known_at(tmp_path)
    assert known.includes(ALPHA)
    assert known.includes(FORGED)  # keys are not known yet
    assert not known.includes(REGULAR)
    simulate(known.replace(roster(ALPHA)))
    assert not known.includes(FORGED)
    assert not known_at(tmp_path).includes(BETA)


def test_a_node_that_left_listens_to_nobody(known: KnownCandidates, tmp_path: Path) -> None:
    simulate(known.forget())
    assert not known.includes(ALPHA)
    assert not known_at(tmp_path).includes(ALPHA)


def test_who_was_removed_is_revoked_by_key_and_durably(
    known: KnownCandidates, tmp_path: Path
) -> None:
    again = Peer(BETA.node, KeyId("d" * 64))  # the same machine, after it has joined anew
    simulate(known.replace(replace(roster(ALPHA, serial=2), revoked=(BETA.key,))))
    for each in (known, known_at(tmp_path)):
        assert [each.has_revoked(peer) for peer in (ALPHA, BETA, again)] == [False, True, False]
    simulate(known.forget())
    assert not known.has_revoked(BETA)


def test_a_candidate_is_listened_to_whatever_else_is_said_of_its_key(
    known: KnownCandidates,
) -> None:
    simulate(known.replace(replace(roster(ALPHA, serial=2), revoked=(ALPHA.key,))))
    assert not known.has_revoked(ALPHA)


def test_keys_that_an_older_version_has_kept_stay_revoked_when_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = replace(roster(ALPHA, serial=2), revoked=(BETA.key, REGULAR.key))
    (tmp_path / "roster.json").write_bytes(to_json(older))

    def full(*_: object) -> None:
        raise NodeFailure("the disk is full")

    monkeypatch.setattr(revoked_module, "write_durably", full)
    more = RevokedKeys((*older.revoked, KeyId("e" * 64)))
    with pytest.raises(NodeFailure, match="full"):
        simulate(known_at(tmp_path).update(roster(ALPHA, serial=3), more.lately()))
    assert known_at(tmp_path).revoked.keys == older.revoked


def test_another_key_counts_for_candidates_alone(known: KnownCandidates) -> None:
    simulate(known.replace(replace(roster(ALPHA, serial=2), following={BETA.node: BETA.key})))
    assert [known.includes(peer) for peer in (ALPHA, BETA)] == [True, False]


def test_where_a_candidates_key_is_not_known_any_will_do_but_one_that_is_revoked(
    known: KnownCandidates,
) -> None:
    former, present = BETA, Peer(BETA.node, KeyId("d" * 64))
    unknown = roster(ALPHA, Peer(BETA.node, KeyId("")), serial=2)
    simulate(known.replace(replace(unknown, revoked=(former.key,))))
    assert [known.has_revoked(peer) for peer in (former, present)] == [True, False]
    assert [known.includes(peer) for peer in (former, present)] == [False, True]


def test_keys_that_an_older_version_has_kept_in_the_roster_stay_revoked(tmp_path: Path) -> None:
    older = replace(roster(ALPHA, serial=2), revoked=(BETA.key, REGULAR.key))
    (tmp_path / "roster.json").write_bytes(to_json(older))
    (tmp_path / "revoked-keys").write_text("d" * 64 + "\n")  # from before it was the older one
    known_at(tmp_path)
    known = known_at(tmp_path)
    assert known.revoked.keys == older.revoked
    assert known.has_revoked(BETA)
    more = RevokedKeys((*older.revoked, KeyId("e" * 64)))
    simulate(known.update(roster(ALPHA, serial=3), more.lately()))
    for each in (known, known_at(tmp_path)):
        assert each.revoked.keys == more.keys
        assert each.roster == roster(ALPHA, serial=3)


@pytest.mark.parametrize(("serial", "is_taken"), [(1, False), (2, True), (3, True)])
def test_keys_are_taken_of_a_list_that_is_no_older(
    known: KnownCandidates, serial: int, is_taken: bool
) -> None:
    first, second = RevokedKeys((BETA.key,)), RevokedKeys((REGULAR.key,))
    simulate(known.update(roster(ALPHA, serial=2), first.lately()))
    simulate(known.update(roster(ALPHA, serial=serial), second.lately()))
    assert known.revoked.keys == (second if is_taken else first).keys


def test_whom_to_obey_is_in_force_though_more_keys_have_to_be_told(known: KnownCandidates) -> None:
    keys = RevokedKeys(KeyId(f"{number:064x}") for number in range(50))
    simulate(known.update(roster(BETA, serial=2), keys.lately()))
    assert known.includes(BETA)
    assert not known.includes(ALPHA)
    assert known.held.revoked == RevokedKeys().held
