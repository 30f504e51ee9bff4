import pytest

from common.errors import Conflict
from common.names import ClusterName, NodeName
from common.noderpc.identity import Identity, Join
from common.noderpc.instances import Instances
from common.noderpc.mastership import Mastership
from common.rpc.declare import CallSpec
from common.tls.context import Peer
from noded.calls.caller import check_caller

JOIN = Join.calls["request"]
ORDER = Instances.calls["ensure_gone"]
GRANT = Mastership.calls["grant"]
VOTE = Mastership.calls["vote"]  # open to nodes
LEAVE = Identity.calls["leave"]

CLUSTER = ClusterName("one.example.com")
CANDIDATE = Peer(NodeName("alpha"), candidate=True)
REGULAR = Peer(NodeName("gamma"), candidate=False)


@pytest.mark.parametrize(
    ("call", "caller", "cluster"),
    [
        (JOIN, None, None),
        (JOIN, CANDIDATE, None),
        (ORDER, CANDIDATE, CLUSTER),
        (GRANT, CANDIDATE, CLUSTER),
        (VOTE, REGULAR, CLUSTER),
        (LEAVE, CANDIDATE, CLUSTER),
    ],
)
def test_these_may(call: CallSpec, caller: Peer | None, cluster: ClusterName | None) -> None:
    check_caller(call, caller, cluster)


@pytest.mark.parametrize(
    ("call", "caller", "cluster", "why"),
    [
        (ORDER, None, None, "in no cluster yet"),
        (VOTE, None, None, "in no cluster yet"),
        (ORDER, CANDIDATE, None, "in no cluster yet"),
        (JOIN, None, CLUSTER, "in the cluster one.example.com already"),
        (JOIN, CANDIDATE, CLUSTER, "in the cluster one.example.com already"),
        (ORDER, None, CLUSTER, "needs a certificate"),
        (VOTE, None, CLUSTER, "needs a certificate"),
        (ORDER, REGULAR, CLUSTER, "gamma may not ask for instances.ensure_gone"),
        (GRANT, REGULAR, CLUSTER, "no master candidate"),
        (LEAVE, REGULAR, CLUSTER, "no master candidate"),
    ],
)
def test_these_may_not(
    call: CallSpec, caller: Peer | None, cluster: ClusterName | None, why: str
) -> None:
    with pytest.raises(Conflict, match=why):
        check_caller(call, caller, cluster)
