"""What a coordinator finds on its own node: who it is, and how to call."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import SystemRandom

from common.errors import Conflict
from common.messages import Report, from_json
from common.model.node import Node
from common.names import Epoch, GroupId, NodeId, NodeName
from common.paths import Paths
from common.tls.context import KEY, client_context
from coordinator.nodes.calls import Nodes
from coordinator.nodes.https import HttpsDial


class _Member(Report):
    node: NodeName
    node_uuid: NodeId


class NotInCluster(Conflict):
    """This node is in no cluster."""

    code = "conflict.not-in-cluster"
    exit_code = 5


def identity_directory(paths: Paths) -> Path:
    """Return where key and certificates are: from systemd's credentials, if it passed them.

    The coordinator has no right to read noded's files; systemd hands it copies.
    """
    passed = os.environ.get("CREDENTIALS_DIRECTORY")
    return Path(passed) if passed else paths.identity


def this_node(paths: Paths, port: int) -> Node:
    """Return this node as it can be called before anything is known of the cluster.

    Raises:
        NotInCluster: it is in none.
    """
    file = identity_directory(paths) / "membership.json"
    if not file.exists():
        raise NotInCluster(
            "This node is in no cluster: make one with “gnt-cluster init”, or have it join one "
            "with “gnt-node add” on that cluster's master."
        )
    member = from_json(file.read_bytes(), _Member, what=str(file))
    return Node(
        uuid=member.node_uuid,
        name=member.node,
        primary_ip="127.0.0.1",
        port=port,
        group=GroupId(""),
    )


@asynccontextmanager
async def calling(paths: Paths) -> AsyncIterator[Nodes]:
    """Call other nodes with this node's certificate, without an epoch.

    Raises:
        InvalidRequest: the certificate or key is missing or damaged.
    """
    identity = identity_directory(paths)
    async with HttpsDial(client_context(identity), identity / KEY) as dial:
        yield Nodes(dial, Epoch(0), SystemRandom())
