"""Keys that open nothing any more: how many are kept, and that what carries them can."""

from common.messages import to_json
from common.model.cluster import MOST_REVOKED, Cluster
from common.names import ClusterId, ClusterName, KeyId, NodeId, NodeName
from common.noderpc.identity import Join, Membership
from common.noderpc.roster import Roster, Rosters

KEYS = tuple(KeyId(f"{number:064x}") for number in range(MOST_REVOKED))
NODES, ROTATIONS = 2000, 4


def test_the_former_keys_of_two_thousand_nodes_open_nothing_after_four_rotations_of_all() -> None:
    rotated = tuple(KeyId(f"{number:064x}") for number in range(NODES * ROTATIONS))
    before = Cluster(
        uuid=ClusterId("cluster"), name=ClusterName("test"), master=NodeId("alpha"),
        revoked_keys=rotated[:-1],
    )  # fmt: skip
    assert before.revoking(rotated[-1]).revoked_keys == rotated


def test_the_keys_that_are_kept_fit_into_the_calls_that_carry_them() -> None:
    key = KEYS[0]
    roster = Roster(candidates={NodeName(f"node{n}"): key for n in range(500)}, revoked=KEYS)
    told = len(to_json({"roster": roster}))
    for call in Rosters.calls.values():
        assert told < min(call.largest_question, call.largest_answer)
    member = Membership(
        cluster=ClusterName("test"), cluster_uuid=ClusterId("cluster"), node=NodeName("beta"),
        node_uuid=NodeId("beta"), authority="", certificate="", roster=roster,
        ssconf={"node_list": "n" * (256 << 10)},
    )  # fmt: skip
    assert len(to_json({"membership": member})) < Join.calls["accept"].largest_question
