"""Stores of identities below a directory, and who signs what they ask for."""

import time
from pathlib import Path

from common.names import ClusterId, ClusterName, NodeId, NodeName
from common.noderpc.identity import Membership
from common.noderpc.roster import Roster
from common.paths import Paths
from common.tls.authority import issue
from common.tls.keys import KeyPair
from noded.identity.keys import OwnKeyMaker
from noded.identity.store import IdentityStore

BETA = NodeName("beta")


def open_store(root: Path) -> IdentityStore:
    paths = Paths(str(root))
    paths.state.mkdir(parents=True, exist_ok=True)
    return IdentityStore(paths, OwnKeyMaker(), now=time.time)


def certificate(authority: KeyPair, csr: str) -> str:
    return issue(authority, csr, node=BETA, addresses=(), now=time.time())


async def join(store: IdentityStore, authority: KeyPair) -> None:
    csr = await store.request(BETA)
    await store.accept(
        Membership(
            cluster=ClusterName("one"), cluster_uuid=ClusterId("c"),
            node=BETA, node_uuid=NodeId("b"),
            authority=authority.certificate, certificate=certificate(authority, csr),
            roster=Roster(),
        )
    )  # fmt: skip
