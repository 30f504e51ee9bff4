"""Put another authority in the place of the cluster's, while everything goes on.

In rounds, each of which all nodes have been through before the next begins: they trust both; they
show what the new one has signed; they trust the new one alone. Up to the last round either side of
any connection trusts whatever the other one shows, so there is a way back. What makes nodes known
to each other are their keys, and these stay.
"""

from collections.abc import Callable, Iterable, Iterator

from common.errors import Conflict, GntError
from common.model.node import Node
from common.model.secret import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_KEY,
    NEXT_CERTIFICATE,
    NEXT_KEY,
    Secret,
)
from common.noderpc.identity import Identity
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.node.revoking import allow_again
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.state import State

IN_AN_ATTEMPT_BEFORE = (
    "the new authority was made in an attempt before, and may have signed for keys that were "
    "revoked after that; with the next authority it begins anew"
)


def check_all_in_service(config: Config) -> None:
    """Refuse to go on without a node: it would know neither side of any connection afterwards.

    Raises:
        Conflict: names those that are offline.
    """
    if away := [node.name for node in config.sorted_nodes() if node.offline]:
        raise Conflict(
            f"The authority is replaced on all nodes or on none, and {', '.join(away)} cannot be "
            "asked: bring what is offline back, or remove it."
        )


def replace_authority(
    cluster: Cluster, nodes: tuple[Node, ...], now: float, *, is_first: bool
) -> Iterator[Step]:
    """Yield the steps; the master is the last of the nodes.

    Args:
        cluster: as the job sees it.
        nodes: all of them.
        now: seconds since 1970.
        is_first: whether the other authority is made now. If an attempt before got stuck with it,
            it may have signed for keys that were revoked since.
    """
    yield record("make another authority", lambda state: _make(state, now), _forget)
    for node in nodes:
        yield _trust_both(cluster, node)
    for node in nodes:
        yield _show_new(cluster, node)
    yield record("have the other authority sign from now on", _switch, point_of_no_return=True)
    for node in nodes:
        yield _trust_new(cluster, node)
    # All nodes are locked, so no key has been revoked that the new authority has signed for.
    yield _forget_revoked(cluster, nodes, is_first=is_first)
    yield tell_roster(cluster, "tell all nodes which keys are revoked")


def _make(state: State, now: float) -> Iterable[Update]:
    from common.tls.authority import make_authority  # large, and needed once in years

    if NEXT_KEY not in state.secrets:
        made = make_authority(state.config.cluster.name, now=now)
        yield Put(Secret(id=NEXT_KEY, value=made.key))
        yield Put(Secret(id=NEXT_CERTIFICATE, value=made.certificate))


def _forget(state: State) -> Iterable[Update]:
    for secret in (NEXT_KEY, NEXT_CERTIFICATE):
        if secret in state.secrets:
            yield Delete(state.secrets[secret])


def _switch(state: State) -> Iterable[Update]:
    for secret, after in ((AUTHORITY_KEY, NEXT_KEY), (AUTHORITY_CERTIFICATE, NEXT_CERTIFICATE)):
        if after in state.secrets:
            yield Put(Secret(id=secret, value=state.secrets[after].value))
            yield Delete(state.secrets[after])


def _trust_both(cluster: Cluster, node: Node) -> Step:
    return act(
        f"have {node.name} trust both authorities",
        lambda: _renew(cluster, node, lambda: cluster.authority.trusted),
        lambda: _renew(cluster, node, lambda: cluster.authority.pem),
    )


def _show_new(cluster: Cluster, node: Node) -> Step:
    return act(
        f"have {node.name} show a certificate of the new authority",
        lambda: _renew(cluster, node, lambda: cluster.authority.trusted, by_next=True),
        lambda: _renew(cluster, node, lambda: cluster.authority.trusted),
    )


def _trust_new(cluster: Cluster, node: Node) -> Step:
    """The last round; a node that does not answer keeps nobody from being done with it."""

    async def renew() -> None:
        try:
            await _renew(cluster, node, lambda: cluster.authority.pem)
        except GntError as error:
            cluster.log(
                f"Node {node.name} trusts the former authority, too, until “gnt-cluster "
                f"renew-crypto --new-node-certificates”: {error}"
            )

    return act(f"have {node.name} trust the new authority alone", renew)


def _forget_revoked(cluster: Cluster, nodes: tuple[Node, ...], *, is_first: bool) -> Step:
    """Shorten the list of revoked keys by those whose certificates open nothing by themselves.

    That is so when nobody trusts the former authority any more, so all nodes have to say that; and
    when the new one has signed for none of these keys, which an attempt before may have had it do.
    """
    is_safe = False

    async def ask() -> None:
        nonlocal is_safe
        why = await _doubt(cluster, nodes) if is_first else IN_AN_ATTEMPT_BEFORE
        is_safe = not why
        if why and cluster.config.revoked.keys:
            cluster.log(f"The list of revoked keys stays as long as it is, since {why}.")

    def edit(state: State) -> Iterable[Update]:
        return allow_again(state.config, state.config.revoked.keys) if is_safe else ()

    return Step(
        "forget revoked keys that no authority has signed for",
        do=ask,
        edit=edit,
        point_of_no_return=True,
    )


async def _doubt(cluster: Cluster, nodes: tuple[Node, ...]) -> str:
    """Tell which nodes may trust the former authority still; nothing if none does."""
    told = await cluster.each({n.name: cluster.call(Identity, n).who() for n in nodes})
    only = cluster.authority.pem
    doubtful = [
        name for name, who in told.items() if isinstance(who, GntError) or who.authority != only
    ]
    names = ", ".join(doubtful)
    return f"of {names} it is not known to trust the new authority alone" if doubtful else ""


async def _renew(
    cluster: Cluster, node: Node, trusted: Callable[[], str], *, by_next: bool = False
) -> None:
    """Give a node a certificate, and say whom to trust; by whom it is signed is as of now."""
    identity = cluster.call(Identity, node)
    request = await identity.request()
    authority = cluster.authority
    certificate = authority.certificate(request.csr, node, by_next=by_next)
    await identity.renew(certificate=certificate, authority=trusted())
