"""Flaws in what nodes are to the cluster: candidates, whom they obey, and by which keys."""

from msgspec.structs import replace

from common.errors import Unreachable
from common.model.revoked_key import RevokedKey
from common.names import Epoch, GroupId, KeyId, NodeName, Serial
from coordinator.checks.finding import Severity
from coordinator.state.rows import Delete, Put
from tests.unit.checks.flaw import Flaw, ballot, facts
from tests.unit.checks.healthy import NOW, STAMP, listening, node

EVERYBODY = {NodeName(name): KeyId(f"of {name}") for name in ("alpha", "beta", "gamma", "delta")}

FLAWS_OF_ROLES = {
    "a node is offline": Flaw(
        "ECLUSTERCFG", "1 offline node(s): beta",
        (Put(node("beta", offline=True, master_candidate=False)),), severity=Severity.NOTICE,
    ),
    "a node is drained": Flaw(
        "ECLUSTERCFG", "1 drained node(s): beta",
        (Put(node("beta", drained=True, master_candidate=False)),), beta=ballot(stamp=None),
        severity=Severity.NOTICE,
    ),
    "the pool is too small": Flaw(
        "ECLUSTERCFG", "3 master candidates, 4 are possible",
        (Put(node("beta", master_candidate=False)),), beta=ballot(stamp=None),
        severity=Severity.WARNING,
    ),
    "a former candidate still has the state": Flaw(
        "ECLUSTERCFG", "has an old copy of the state",
        (Put(node("beta", master_candidate=False, master_capable=False)),),
        severity=Severity.WARNING,
    ),
    "two nodes hold the state": Flaw(
        "ECLUSTERCFG", "only alpha and beta hold the state",
        (Delete(node("gamma")), Delete(node("delta"))), severity=Severity.WARNING,
    ),
    "flags contradict one another": Flaw(
        "ECLUSTERCFG", "is a master candidate, and drained",
        (Put(node("beta", drained=True)),),
    ),
    "a node obeys another master": Flaw(
        "ECLUSTERCFG", "obeys beta (epoch 3), not alpha", beta=ballot(master=NodeName("beta"))
    ),
    "a node obeys nobody": Flaw(
        "ECLUSTERCFG", "obeys nobody", beta=ballot(master=None, epoch=Epoch(0))
    ),
    "a node is of an older epoch": Flaw("ECLUSTERCFG", "epoch 2", beta=ballot(epoch=Epoch(2))),
    "a candidate has no state": Flaw("ECLUSTERCFG", "has no copy", beta=ballot(stamp=None)),
    "a candidate is behind": Flaw(
        "ECLUSTERCFG", "20 commits behind: No space left on device.",
        beta=ballot(stamp=replace(STAMP, serial=Serial(50)))
    ),
    "a node takes orders of a former candidate": Flaw(
        "ECLUSTERCFG", "its list of who may give orders is wrong about omega",
        beta={"roster": listening(candidates=EVERYBODY | {NodeName("omega"): KeyId("")})},
    ),
    "a node takes orders of a former key": Flaw(
        "ECLUSTERCFG", "who may give orders is wrong about beta",
        beta={"roster": listening(candidates=EVERYBODY | {NodeName("beta"): KeyId("old")})},
    ),
    "a node does not know of a removed one": Flaw(
        "ENODESETUP", "does not know which 1 certificate(s) are revoked",
        (Put(RevokedKey(id=KeyId("d" * 64), number=1)),),
        beta={"roster": listening(candidates=EVERYBODY)},
    ),
    "a node does not know another one's other key": Flaw(
        "ECLUSTERCFG", "who may give orders is wrong about beta",
        alpha={"roster": listening(candidates=EVERYBODY, following={NodeName("beta"): KeyId("f")})},
    ),
    "a key is not known yet": Flaw(
        "ECLUSTERCLIENTCERT", "key of its certificate is not known",
        (Put(node("beta", key=KeyId(""))),), severity=Severity.WARNING,
    ),
    "a node was given half of another key": Flaw(
        "ECLUSTERCLIENTCERT", "both count until “gnt-cluster renew-crypto --new-node-keys",
        (Put(node("gamma", next_key=KeyId("f" * 64))),), severity=Severity.WARNING,
    ),
    "a node shows a certificate of another cluster": Flaw(
        "ECLUSTERCLIENTCERT", "shows no certificate of this cluster",
        beta=Unreachable("Node beta shows no certificate of this cluster.", stranger=True),
    ),
    "a certificate ends soon": Flaw(
        "ECLUSTERCERT", "ends on 2027-02-09", beta=facts(certificate_end=NOW + 25 * 86400),
        severity=Severity.WARNING,
    ),
    "a certificate ends within days": Flaw(
        "ECLUSTERCERT", "--new-node-certificates", beta=facts(certificate_end=NOW + 6 * 86400)
    ),
    "a certificate has ended": Flaw(
        "ECLUSTERCERT", "ends on 2027-01-15", beta=facts(certificate_end=NOW - 1)
    ),
    "a node's group is unknown": Flaw(
        "ECLUSTERDANGLINGNODES", "its group is unknown",
        (Put(replace(node("beta"), group=GroupId("gone"))),),
    ),
}  # fmt: skip
