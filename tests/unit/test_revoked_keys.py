"""Keys that open nothing any more: how many are kept, and how nodes come to know all of them."""

from random import Random
from typing import Any

import pytest

from common.errors import Conflict
from common.messages import from_json, to_json
from common.model.cluster import Cluster
from common.names import ClusterId, ClusterName, KeyId, NodeId, NodeName
from common.noderpc.identity import Join, Membership
from common.noderpc.roster import HeldKeys, Revocations, Roster, Rosters
from common.revoked_keys import AT_FIRST, RevokedKeys
from coordinator.operations.node.revoking import (
    FOR_REMOVALS,
    MOST_REVOKED,
    allow_again,
    check_room,
    revoke,
)
from coordinator.state.config import Config
from coordinator.state.rows import Put, settle

KEYS = tuple(KeyId(f"{number:064x}") for number in range(MOST_REVOKED))
NODES, ROTATIONS = 2000, 4


def config_with(*former: KeyId) -> Config:
    """Return a configuration of an older version, with keys that are revoked."""
    cluster = Cluster(
        uuid=ClusterId("cluster"), name=ClusterName("test"), master=NodeId("alpha"),
        revoked_keys=former,
    )  # fmt: skip
    return Config().apply([Put(cluster)])


def revoking(config: Config, *keys: KeyId) -> Config:
    return config.apply(revoke(config, *keys))


def test_the_former_keys_of_two_thousand_nodes_open_nothing_after_four_rotations_of_all() -> None:
    rotated = KEYS[: NODES * ROTATIONS]
    config = revoking(config_with(*rotated[:-2]), rotated[-2])
    assert revoking(config, rotated[-1]).revoked.keys == rotated


def test_one_more_key_is_one_more_row() -> None:
    config = revoking(config_with(), *KEYS[:5000])
    (update,) = revoke(config, KEYS[5000])
    _, change = settle(update)
    assert len(to_json(change)) < 300


def test_a_version_that_does_not_know_these_rows_may_not_be_master_over_them() -> None:
    """It would publish a list without them. Rows that it may be master over say so: since 0."""
    (update,) = revoke(config_with(), KEYS[0])
    _, change = settle(update)
    schema = from_json(bytes(change.body), dict[str, Any], what="a row").get("schema")
    assert schema is None or schema[1] > 0


def test_what_an_older_version_has_kept_goes_before_all_that_comes_later() -> None:
    config = revoking(config_with(*KEYS[5:8]), KEYS[1], KEYS[2])
    assert config.cluster.revoked_keys == ()
    assert config.revoked.keys == (*KEYS[5:8], *KEYS[1:3])
    assert revoking(config, KEYS[0]).revoked.keys == (*KEYS[5:8], *KEYS[1:3], KEYS[0])


def test_a_key_that_is_revoked_again_stays_where_it_is_and_one_that_is_none_is_no_key() -> None:
    config = revoking(config_with(KEYS[7]), KEYS[1], KEYS[2], KEYS[1])
    assert not list(revoke(config, KEYS[7], KeyId(""), KEYS[1]))
    assert config.revoked.keys == (KEYS[7], KEYS[1], KEYS[2])


def test_what_is_allowed_again_leaves_all_others_revoked() -> None:
    config = config_with(*KEYS[:3])
    after = config.apply(allow_again(config, (KEYS[1], KeyId(""))))
    assert after.revoked.keys == (KEYS[0], KEYS[2])


def test_no_key_is_forgotten_for_another_one() -> None:
    config = revoking(config_with(*KEYS), KeyId("f" * 64))
    assert config.revoked.keys == (*KEYS, KeyId("f" * 64))


def test_more_keys_than_nodes_keep_are_refused_and_it_is_said_what_makes_room() -> None:
    usual = KEYS[:-FOR_REMOVALS]
    check_room(config_with(*usual[:-1]))
    with pytest.raises(Conflict, match="--new-cluster-certificate” begin the list anew"):
        check_room(config_with(*usual))
    check_room(config_with(*KEYS[:-1]), is_removal=True)
    with pytest.raises(Conflict, match=f"{MOST_REVOKED} keys are revoked"):
        check_room(config_with(*KEYS), is_removal=True)


def test_the_keys_that_are_kept_fit_into_the_calls_that_carry_them() -> None:
    key, list_ = KEYS[0], RevokedKeys(KEYS)
    roster = Roster(candidates={NodeName(f"node{n}"): key for n in range(500)}, revoked=KEYS)
    told = len(to_json({"roster": roster, "revocations": list_.lately()}))
    for call in Rosters.calls.values():
        assert told < min(call.largest_question, call.largest_answer)
    member = Membership(
        cluster=ClusterName("test"), cluster_uuid=ClusterId("cluster"), node=NodeName("beta"),
        node_uuid=NodeId("beta"), authority="", certificate="", roster=roster,
        ssconf={"node_list": "n" * (256 << 10)},
    )  # fmt: skip
    assert len(to_json({"membership": member})) < Join.calls["accept"].largest_question


def test_what_everybody_is_told_of_a_long_list_is_short() -> None:
    assert len(to_json(RevokedKeys(KEYS).lately())) < 1000


def test_who_lacks_less_than_everybody_is_told_has_all_of_it_at_once() -> None:
    list_ = RevokedKeys(KEYS[:40])
    for known in range(40):
        made = RevokedKeys(KEYS[:known]).made(list_.lately())
        assert (made is not None) == (known >= 40 - AT_FIRST)
        assert made is None or made.keys == list_.keys


def test_whoever_says_what_it_has_is_told_the_rest() -> None:
    list_, random = RevokedKeys(KEYS[:200]), Random(7)
    for _ in range(50):
        node = RevokedKeys(KEYS[: random.randrange(201)])
        known = list_.known_to(node.held)
        assert known == len(node.keys)
        made = node.made(list_.after(known))
        assert made is not None
        assert made.keys == list_.keys


@pytest.mark.parametrize(
    "had",
    [
        (),
        KEYS[50:70],  # of another history
        KEYS[:30] + KEYS[90:99],  # that went on in another way
        tuple(reversed(KEYS[:40])),
        KEYS[:100],  # more of it than there is
    ],
)
def test_whatever_a_node_has_it_ends_with_the_list_that_there_is(had: tuple[KeyId, ...]) -> None:
    list_, node = RevokedKeys(KEYS[:40]), RevokedKeys(had)
    after = node.made(list_.lately()) or node.made(list_.after(list_.known_to(node.held)))
    assert after is not None
    assert after.keys == list_.keys


@pytest.mark.parametrize(
    "said",
    [
        HeldKeys(count=2**53, digest="0" * 64),
        HeldKeys(count=20, digest="0" * 64),
        HeldKeys(count=20, digest=""),
        HeldKeys(count=19, digest=RevokedKeys(KEYS[:20]).digest),
    ],
)
def test_who_says_what_cannot_be_is_told_everything(said: HeldKeys) -> None:
    list_ = RevokedKeys(KEYS[:40])
    assert list_.after(list_.known_to(said)).latest == list_.keys


@pytest.mark.parametrize(
    "told",
    [
        Revocations(count=3, digest=RevokedKeys(KEYS[:3]).digest, latest=KEYS[1:2]),
        Revocations(count=2, digest=RevokedKeys(KEYS[:3]).digest, latest=KEYS[1:3]),
        Revocations(count=1, digest=RevokedKeys(KEYS[:3]).digest, latest=KEYS[:3]),
        Revocations(count=2**53, digest="", latest=KEYS[:3]),
    ],
)
def test_half_a_list_is_no_list(told: Revocations) -> None:
    assert RevokedKeys(KEYS[:2]).made(told) is None
